"""Owns cursors of lists and of ordered results: where the next page begins, and of what."""

from __future__ import annotations

import base64
import binascii

import msgspec

from omnigraph.errors import CursorMismatch, InvalidCursor

_PREFIX = "p1."
_MOST = 1 << 53


class PageCursor(msgspec.Struct, frozen=True, array_like=True):
    """`of` is the digest of what was asked, `commit` the version that it was asked of."""

    commit: str
    of: str
    offset: int

    @property
    def text(self) -> str:
        data = msgspec.json.encode(self)
        return _PREFIX + base64.urlsafe_b64encode(data).decode().rstrip("=")


_DECODER = msgspec.json.Decoder(PageCursor)


def read_cursor(text: str, of: str) -> PageCursor:
    """The cursor, which has to be one of the same question."""
    body = text.removeprefix(_PREFIX)
    try:
        if body == text:
            raise ValueError("no cursor")
        data = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        cursor = _DECODER.decode(data)
    except (binascii.Error, ValueError):
        raise InvalidCursor(
            "The cursor is damaged.", help="Use a cursor just as it was given."
        ) from None
    if not 0 <= cursor.offset < _MOST:
        raise InvalidCursor("The cursor is damaged.", help="Use a cursor just as it was given.")
    if cursor.of != of:
        raise CursorMismatch("The cursor belongs to another question.", differs="query")
    return cursor
