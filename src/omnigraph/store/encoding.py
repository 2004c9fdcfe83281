"""Owns encoding values to bytes: it decodes the bytes before they are put, so nothing unreadable
is stored."""

from __future__ import annotations

from typing import Any

import msgspec

from omnigraph.errors import InvalidArgument


def encode_readable(value: msgspec.Struct, decoder: msgspec.json.Decoder[Any], what: str) -> bytes:
    """The value as JSON, which its decoder has read. Types hold only where they are checked, and
    a version that nobody can read ends its branch."""
    try:
        data = msgspec.json.encode(value)
        decoder.decode(data)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(f"{what} could not be read again: {error}.") from error
    return data
