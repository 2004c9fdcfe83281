"""Owns cursors of the change feed: a place in a history as an opaque text, and the feed that it
belongs to."""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

import msgspec

from omnigraph.errors import CursorMismatch, InvalidCursor

BEGINNING = "beginning"
_PREFIX = "omnigraph-cursor-1."


class Place(NamedTuple):
    """A version on the way to the head of a branch. It may be a version of another branch."""

    branch: str
    version: int


class Cursor(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The place after a block, tied to the feed that returned it."""

    graph: str
    branch: str
    incarnation: int
    filter: str
    place: Place
    commit: str

    @property
    def text(self) -> str:
        return _PREFIX + base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")


_DECODER = msgspec.json.Decoder(Cursor)  # made before there are threads: see `store.versions`


def is_cursor(text: str) -> bool:
    return text.startswith(_PREFIX)


def decode_cursor(text: str) -> Cursor:
    body = text.removeprefix(_PREFIX)
    try:
        data = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        return _DECODER.decode(data)
    except (binascii.Error, ValueError):
        raise InvalidCursor("The cursor is damaged.") from None


def check_cursor(cursor: Cursor, *, graph: str, branch: str, incarnation: int, filter: str) -> None:
    """Refuses a cursor that another feed gave."""
    if cursor.graph != graph:
        raise CursorMismatch("The cursor belongs to another graph.", differs="graph")
    if cursor.branch != branch:
        raise CursorMismatch(
            f"The cursor belongs to the branch {cursor.branch!r}, not to {branch!r}.",
            differs="branch",
        )
    if cursor.incarnation != incarnation:
        raise recreated(branch)
    if cursor.filter != filter:
        raise CursorMismatch(
            "The cursor was given for other types, kinds or operations.", differs="filter"
        )


def recreated(branch: str) -> CursorMismatch:
    return CursorMismatch(
        f"The branch {branch!r} was deleted and created again; it is another one now.",
        differs="incarnation",
        help="Begin again with after='beginning'.",
    )
