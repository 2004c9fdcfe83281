"""Tokens of a real issuer over HTTP: who signed, for whom, and until when."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from omnigraph.errors import InvalidArgument, Unauthenticated
from omnigraph.model.caller import Caller
from omnigraph.policy.credentials import BearerCredentials
from omnigraph.policy.oidc import KEPT, REFETCH, Issuer, Oidc
from tests.unit.engine.clock import Clock

MAKERS: dict[str, Callable[[], Any]] = {
    "RS256": lambda: rsa.generate_private_key(65537, 2048),
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
}
ALGORITHMS: dict[str, Any] = {
    "RS256": jwt.algorithms.RSAAlgorithm,
    "ES256": jwt.algorithms.ECAlgorithm,
    "EdDSA": jwt.algorithms.OKPAlgorithm,
}
KEYS = {name: make() for name, make in MAKERS.items()}


class World:
    """An issuer on a real socket. It counts how often it is asked for its keys."""

    def __init__(self) -> None:
        self.published: dict[str, tuple[str, Any]] = {n: (n, key) for n, key in KEYS.items()}
        self.asked = 0
        self.down = False
        world = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = world.answer(self.path)
                self.send_response(503 if world.down else 200)
                self.end_headers()
                self.wfile.write(b"" if world.down else json.dumps(body).encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path: str) -> dict[str, Any]:
        if path.endswith("openid-configuration"):
            return {"issuer": self.address, "jwks_uri": f"{self.address}/keys"}
        self.asked += 1
        keys = []
        for kid, (name, key) in self.published.items():
            held = ALGORITHMS[name].to_jwk(key.public_key(), as_dict=True)
            keys.append(held | {"kid": kid, "alg": name, "use": "sig"})
        return {"keys": keys}

    def token(self, name: str = "RS256", *, kid: str | None = None, **claims: Any) -> str:
        now = int(time.time())
        held = {"iss": self.address, "aud": "omnigraph", "sub": "ada", "exp": now + 600}
        held |= {"groups": ["staff", "eu"]} | claims
        held = {key: value for key, value in held.items() if value is not None}
        return jwt.encode(held, KEYS[name], algorithm=name, headers={"kid": kid or name})


@pytest.fixture
def world() -> Iterator[World]:
    one = World()
    yield one
    one.server.shutdown()
    one.server.server_close()


def verifier(world: World, **given: Any) -> tuple[Oidc, Clock]:
    clock = Clock()
    return Oidc(Issuer(world.address, "omnigraph", **given), clock), clock


@pytest.mark.parametrize("name", KEYS)
def test_each_way_of_signing_names_the_actor(world: World, name: str) -> None:
    caller = BearerCredentials(oidc=verifier(world)[0]).caller_of(f"Bearer {world.token(name)}")
    assert caller == Caller("ada", groups=frozenset({"staff", "eu"}))


def test_claims_are_called_as_the_issuer_calls_them(world: World) -> None:
    claims = {"actor": "email", "groups": "teams", "roles": "og_roles", "graphs": "og_graphs"}
    oidc, _ = verifier(world, claims=claims, jwks=f"{world.address}/keys")
    token = world.token(email="a@b.c", teams="x y", og_roles=["writer"], og_graphs=["papers"])
    caller = oidc.caller_of(token)
    wanted = (frozenset({"x", "y"}), frozenset({"writer"}), frozenset({"papers"}))
    assert caller == Caller("a@b.c", *wanted)
    with pytest.raises(InvalidArgument):
        Issuer("x", "y", claims={"king": "k"})


NOW = int(time.time())
WRONG: dict[str, dict[str, Any]] = {
    "other issuer": {"iss": "https://else.where"},
    "other audience": {"aud": "something"},
    "no audience": {"aud": None},
    "no end": {"exp": None},
    "ended": {"exp": NOW - 1},
    "not begun": {"nbf": NOW + 3600},
    "no actor": {"sub": None},
    "an actor with a slash": {"sub": "agent/ada"},
    "end is no number": {"exp": True},
}


@pytest.mark.parametrize("name", WRONG)
def test_a_token_with_a_wrong_claim_names_nobody(world: World, name: str) -> None:
    oidc, _ = verifier(world)
    with pytest.raises(Unauthenticated):
        oidc.caller_of(world.token(**WRONG[name]))
    assert oidc.caller_of(world.token()).actor == "ada"


def test_a_signature_that_is_another_names_nobody(world: World) -> None:
    oidc, _ = verifier(world)
    token = world.token()
    head, _, signature = token.split(".")
    swapped = world.token(sub="eve").split(".")[1]
    public = KEYS["RS256"].public_key()
    pem = public.public_numbers().n.to_bytes(256, "big")
    forged = jwt.encode(
        {"iss": world.address, "aud": "omnigraph", "sub": "eve", "exp": NOW + 600},
        pem,
        algorithm="HS256",
        headers={"kid": "RS256"},
    )
    none = jwt.encode(
        {"iss": world.address, "aud": "omnigraph", "sub": "eve", "exp": NOW + 600}, "", "none"
    )
    crossed = jwt.encode({"sub": "eve"}, KEYS["ES256"], "ES256", headers={"kid": "RS256"})
    for wrong in (f"{head}.{swapped}.{signature}", token[:-4] + "AAAA", forged, none, crossed):
        with pytest.raises(Unauthenticated):
            oidc.caller_of(wrong)
    for junk in ("", "a.b.c", "x" * 20_000, "\ud800.a.b"):
        with pytest.raises(Unauthenticated):
            oidc.caller_of(junk)


def test_a_new_key_is_found_and_strangers_do_not_make_us_ask(world: World) -> None:
    oidc, clock = verifier(world)
    assert oidc.caller_of(world.token()).actor == "ada"
    assert world.asked == 1
    world.published["new"] = world.published["ES256"]
    for number in range(20):
        with pytest.raises(Unauthenticated):
            oidc.caller_of(world.token("ES256", kid=f"stranger-{number}"))
    assert world.asked == 1
    clock.skip(REFETCH + 1)
    assert oidc.caller_of(world.token("ES256", kid="new")).actor == "ada"
    assert world.asked == 2
    clock.skip(REFETCH + 1)
    world.down = True  # what is known goes on
    with pytest.raises(Unauthenticated):
        oidc.caller_of(world.token("ES256", kid="newer"))
    assert oidc.caller_of(world.token("ES256", kid="new", sub="bob")).actor == "bob"


def test_a_verified_token_is_kept_for_a_minute_and_never_beyond_its_end(world: World) -> None:
    oidc, clock = verifier(world)
    token, short = world.token(), world.token(exp=int(time.time()) + 30)
    for one in (token, short):
        oidc.caller_of(one)
    del world.published["RS256"]
    clock.skip(31)
    with pytest.raises(Unauthenticated):
        oidc.caller_of(short)
    assert oidc.caller_of(token).actor == "ada"
    clock.skip(KEPT)
    with pytest.raises(Unauthenticated):
        Oidc(Issuer(world.address, "omnigraph"), clock).caller_of(token)
