"""Owns encoding values to bytes. It decodes the bytes before they are put, so nothing unreadable is
stored."""

from __future__ import annotations

from typing import Any

import msgspec

from omnigraph.errors import InvalidArgument


def encode_readable(value: msgspec.Struct, decoder: msgspec.json.Decoder[Any], what: str) -> bytes:
    """The value as JSON that its decoder has read successfully. Types are enforced only by
    decoding, and an unreadable version would end its branch."""
    try:
        data = msgspec.json.encode(value)
        decoder.decode(data)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(f"{what} could not be read again: {error}.") from error
    return data
