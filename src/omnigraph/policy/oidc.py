"""Owns the tokens of an issuer (OIDC): whom a signed token names, by the keys that the issuer
publishes."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jwt
import urllib3

from omnigraph.errors import InvalidArgument, Unauthenticated
from omnigraph.model.caller import Caller
from omnigraph.runtime import SYSTEM, Runtime

ALGORITHMS = ("RS256", "ES256", "EdDSA")
REFETCH = 30.0
"""Seconds between two looks at the keys of an issuer, whoever asks for which key."""
KEPT = 60.0
"""Seconds for which a token that was verified is not verified again."""
_MOST_KEPT = 4096
_LONGEST = 16 * 1024
_LARGEST_KEYS = 1024 * 1024
_LEEWAY = 60.0


@dataclass(frozen=True)
class Issuer:
    """Who issues tokens, and for whom. `jwks` is where the keys are; without it, the issuer's
    discovery document says so. `claims` names the claims that hold the actor, groups and roles."""

    issuer: str
    audience: str
    jwks: str | None = None
    claims: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.claims:
            if name not in ("actor", "groups", "roles", "graphs"):
                raise InvalidArgument(
                    f"{name!r} is not told by a claim.",
                    help="There are actor, groups, roles and graphs.",
                )
        if not self.issuer or not self.audience:
            raise InvalidArgument("An issuer has an address and an audience.")


class Oidc:
    """Verifies the tokens of one issuer."""

    def __init__(self, issuer: Issuer, runtime: Runtime = SYSTEM) -> None:
        self._issuer = issuer
        self._runtime = runtime
        self._lock = threading.Lock()
        self._keys: dict[str, jwt.PyJWK] = {}
        self._looked: float | None = None
        self._known: OrderedDict[bytes, tuple[float, float, Caller]] = OrderedDict()
        self._http = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=5, read=5), retries=urllib3.Retry(1, redirect=0)
        )

    def caller_of(self, token: str) -> Caller:
        """Whom a token names. What is wrong with one that names nobody is not told."""
        if len(token) > _LONGEST or not token.isascii():
            raise _nobody()
        mark = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        if (known := self._recall(mark)) is not None:
            return known
        claims = self._verify(token)
        caller = self._caller(claims)
        now = self._runtime.monotonic()
        with self._lock:
            self._known[mark] = (now + KEPT, float(claims["exp"]), caller)
            while len(self._known) > _MOST_KEPT:
                self._known.popitem(last=False)
        return caller

    def _recall(self, mark: bytes) -> Caller | None:
        with self._lock:
            held = self._known.get(mark)
            if held is None:
                return None
            until, expires, caller = held
            if self._runtime.monotonic() < until and self._seconds() < expires:
                return caller
            del self._known[mark]
            return None

    def _seconds(self) -> float:
        return self._runtime.now() / 1e6

    def _verify(self, token: str) -> dict[str, Any]:
        try:
            header = jwt.get_unverified_header(token)
            algorithm, kid = header.get("alg"), header.get("kid")
            if algorithm not in ALGORITHMS or (kid is not None and not isinstance(kid, str)):
                raise _nobody()
            key = self._key(kid)
            if key.algorithm_name != algorithm:
                raise _nobody()  # a key is for one way of signing
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=[algorithm],
                audience=self._issuer.audience,
                issuer=self._issuer.issuer,
                options={
                    "require": ["iss", "aud", "exp"],
                    "verify_exp": False,  # by our clock, below
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except jwt.PyJWTError:
            raise _nobody() from None
        now = self._seconds()
        begins = claims.get("nbf", 0)
        for moment in (claims["exp"], begins):
            if isinstance(moment, bool) or not isinstance(moment, int | float):
                raise _nobody()
        if claims["exp"] <= now or begins > now + _LEEWAY:
            raise _nobody()
        return claims

    def _key(self, kid: str | None) -> jwt.PyJWK:
        """The key of this id. One that is new is looked for once, and not again for a while: a
        stranger's tokens must not make us ask the issuer."""
        with self._lock:
            if (key := self._find(kid)) is not None:
                return key
            now = self._runtime.monotonic()
            if self._looked is None or now - self._looked >= REFETCH:
                self._looked = now
                self._keys = self._fetch()
            if (key := self._find(kid)) is not None:
                return key
        raise _nobody()

    def _find(self, kid: str | None) -> jwt.PyJWK | None:
        if kid is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(kid)

    def _fetch(self) -> dict[str, jwt.PyJWK]:
        """Raises if the issuer does not answer; what was known is kept."""
        try:
            where = self._issuer.jwks
            if where is None:
                root = self._issuer.issuer.rstrip("/")
                found = self._get(f"{root}/.well-known/openid-configuration")
                if found.get("issuer") != self._issuer.issuer:
                    raise ValueError("another issuer")
                where = str(found["jwks_uri"])
            listed = self._get(where)["keys"]
        except (urllib3.exceptions.HTTPError, ValueError, KeyError, TypeError):
            return self._keys
        keys = {}
        for number, one in enumerate(listed if isinstance(listed, list) else []):
            try:
                if one.get("use", "sig") == "sig":
                    key = jwt.PyJWK(one)
                    keys[str(one.get("kid", f"#{number}"))] = key
            except (jwt.PyJWTError, AttributeError, TypeError, ValueError, KeyError):
                continue  # of a kind that is unknown here
        return keys

    def _get(self, address: str) -> dict[str, Any]:
        answer = self._http.request("GET", address, preload_content=False)
        try:
            if answer.status != 200:
                raise ValueError(f"status {answer.status}")
            data = answer.read(_LARGEST_KEYS + 1)
        finally:
            answer.release_conn()
        if len(data) > _LARGEST_KEYS:
            raise ValueError("too long")
        held = json.loads(data)
        if not isinstance(held, dict):
            raise TypeError("no object")
        return held

    def _caller(self, claims: Mapping[str, Any]) -> Caller:
        named = self._issuer.claims
        actor = claims.get(named.get("actor", "sub"))
        groups = _texts(claims.get(named.get("groups", "groups")))
        roles = _texts(claims.get(named["roles"])) if "roles" in named else frozenset()
        graphs = _texts(claims.get(named["graphs"])) if "graphs" in named else None
        named_token = claims.get("jti")
        try:
            token = named_token if isinstance(named_token, str) else None
            return Caller(str(actor) if actor else "", groups, roles, graphs, token)
        except InvalidArgument:
            raise _nobody() from None


def _texts(value: object) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset(value.split())
    if isinstance(value, list):
        return frozenset(one for one in value if isinstance(one, str))
    return frozenset()


def _nobody() -> Unauthenticated:
    return Unauthenticated("The token is not one of the issuer's, or it has ended.")
