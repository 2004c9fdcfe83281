"""Owns tokens: the file that holds their hashes, and whom a token names.

The file is read by a server and written by `omnigraph token`. Nothing in it is a secret that works:
of a token it has the SHA-256, and a token has 256 random bits.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from omnigraph.errors import AlreadyExists, InvalidArgument, NotFound, Unauthenticated
from omnigraph.model.caller import Caller, check_actor
from omnigraph.model.stored_text import UNDECODABLE
from omnigraph.policy.roles import check_role
from omnigraph.runtime import SYSTEM, Runtime

_TOKEN = re.compile(r"ogt_([a-z0-9]{12})_([A-Za-z0-9_-]{43})")
_NOBODY = hashlib.sha256(b"nobody").hexdigest()
_OTHERS = 0o077
_Seconds = Annotated[int, Meta(ge=0, le=253_402_300_799)]
"""Since 1970, before the year 10,000."""


class TokenRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One token as the file has it."""

    id: str
    actor: str
    sha256: str
    roles: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    graphs: tuple[str, ...] | None = None
    created: _Seconds = 0
    expires: _Seconds | None = None

    def caller(self) -> Caller:
        graphs = None if self.graphs is None else frozenset(self.graphs)
        return Caller(self.actor, frozenset(self.groups), frozenset(self.roles), graphs, self.id)


class _TokenFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tokens: tuple[TokenRow, ...] = ()


@dataclass(frozen=True)
class NewToken:
    """A token that was made just now: `text` is told once and kept nowhere."""

    text: str = field(repr=False)
    row: TokenRow


class Tokens:
    """The tokens of one file, as they were when it was read."""

    def __init__(self, rows: Sequence[TokenRow], runtime: Runtime = SYSTEM) -> None:
        self._rows = {row.id: row for row in rows}
        self._runtime = runtime

    @classmethod
    def read(cls, path: str | os.PathLike[str], runtime: Runtime = SYSTEM) -> Tokens:
        return cls(read_tokens(path), runtime)

    def caller_of(self, token: str) -> Caller:
        """Whom a token names. What is wrong with one that names nobody is not told."""
        found = _TOKEN.fullmatch(token)
        row = None if found is None else self._rows.get(found[1])
        # A token that is unknown takes as long as one that is wrong.
        held = _NOBODY if row is None else row.sha256
        same = hmac.compare_digest(hash_token(token), held)
        if row is None or not same or _is_over(row, self._runtime):
            raise Unauthenticated("The token is not known here, or it has ended.")
        return row.caller()


def hash_token(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_token(text: str) -> bool:
    """Whether this is one of ours, and not of an issuer."""
    return text.startswith("ogt_")


def create_token(
    path: str | os.PathLike[str],
    actor: str,
    *,
    roles: Sequence[str],
    groups: Sequence[str] = (),
    graphs: Sequence[str] | None = None,
    lasts: float | None = None,
    runtime: Runtime = SYSTEM,
) -> NewToken:
    """Adds a token to the file, which is made if it is not there. An actor may have several, so
    that one takes the place of another without a pause. `lasts` is in seconds."""
    check_actor(actor)
    for role in roles:
        check_role(role)
    if not roles and not groups:
        raise InvalidArgument(
            "A token without a role or a group may do nothing.", help="Give it one with --role."
        )
    now = runtime.now() // 1_000_000
    with _changing(Path(path)) as rows:
        name = _new_id({row.id for row in rows})
        text = f"ogt_{name}_{secrets.token_urlsafe(32)}"
        row = TokenRow(
            id=name,
            actor=actor,
            sha256=hash_token(text),
            roles=tuple(roles),
            groups=tuple(groups),
            graphs=None if graphs is None else tuple(graphs),
            created=now,
            expires=None if lasts is None else now + int(lasts),
        )
        rows.append(row)
    return NewToken(text, row)


def revoke_token(path: str | os.PathLike[str], id: str) -> TokenRow:
    """Takes a token out of the file, by its id or by the whole of it."""
    found = _TOKEN.fullmatch(id)
    wanted = id if found is None else found[1]
    with _changing(Path(path)) as rows:
        for row in rows:
            if row.id == wanted:
                rows.remove(row)
                return row
        raise NotFound(
            f"There is no token {wanted!r} in {path}.", help="`omnigraph token list` shows them."
        )


def read_tokens(path: str | os.PathLike[str]) -> tuple[TokenRow, ...]:
    """The rows of the file. One that others can read or write is refused."""
    place = Path(path)
    try:
        with place.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read()
    except OSError as error:
        raise InvalidArgument(f"The tokens in {place} cannot be read: {error.strerror}.") from None
    except ValueError as error:  # a zero byte in the name
        raise InvalidArgument(f"The tokens in {str(place)!r} cannot be read: {error}.") from None
    if os.name == "posix" and mode & _OTHERS:
        raise InvalidArgument(
            f"Others can read or write the tokens in {place}.", help=f"Say: chmod 600 {place}"
        )
    try:
        held = msgspec.json.decode(data, type=_TokenFile)
    except UNDECODABLE as error:
        raise InvalidArgument(f"{place} is no file of tokens: {error}.") from None
    for row in held.tokens:
        _check_row(row, place)
    if len({row.id for row in held.tokens}) < len(held.tokens):
        raise InvalidArgument(f"{place} has two tokens of one id.")
    return held.tokens


def when_over(row: TokenRow) -> datetime | None:
    return None if row.expires is None else datetime.fromtimestamp(row.expires, UTC)


def _check_row(row: TokenRow, place: Path) -> None:
    check_actor(row.actor)
    for role in row.roles:
        check_role(role)
    if not re.fullmatch(r"[a-z0-9]{12}", row.id) or not re.fullmatch(r"[0-9a-f]{64}", row.sha256):
        raise InvalidArgument(f"A token in {place} has no id, or no SHA-256.")


def _is_over(row: TokenRow, runtime: Runtime) -> bool:
    return row.expires is not None and runtime.now() >= row.expires * 1_000_000


def _new_id(taken: set[str]) -> str:
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    while True:
        name = "".join(secrets.choice(letters) for _ in range(12))
        if name not in taken:
            return name


@contextlib.contextmanager
def _changing(path: Path) -> Iterator[list[TokenRow]]:
    """The rows, which are written back when the block ends well: all of them or none. Two who
    change the file at once do not lose each other's change."""
    lock = path.with_name(path.name + ".lock")
    try:
        held = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise AlreadyExists(
            f"Somebody else is changing {path}.", help=f"If nobody is, delete {lock}."
        ) from None
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be written: {error.strerror}.") from None
    try:
        rows = list(read_tokens(path)) if path.exists() else []
        yield rows
        _replace(path, msgspec.json.format(msgspec.json.encode(_TokenFile(tuple(rows)))))
    finally:
        os.close(held)
        lock.unlink()


def _replace(path: Path, data: bytes) -> None:
    number, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)  # which is 0600
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
