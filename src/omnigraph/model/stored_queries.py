"""Owns the stored queries of a graph version as they are stored: texts by name, in one object."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from omnigraph.errors import Corrupt, InvalidArgument
from omnigraph.model.stored_text import UNDECODABLE, Digest

Queries = Mapping[str, str]
QUERY: Final = "query"
"""What stands in the place of a type where a strategy, an answer or a conflict is about a stored
query. No type can have this name."""
NO_QUERIES: Final[Queries] = {}
MOST: Final = 10_000
LONGEST: Final = 256 * 1024
"""Characters of one text."""
LARGEST: Final = 16 * 1024 * 1024
"""Bytes of all texts, as they are stored."""

_NAME: Final = r"[a-z_][A-Za-z0-9_]{0,62}"
_Name = Annotated[str, Meta(pattern=rf"^{_NAME}\Z")]
_Text = Annotated[str, Meta(max_length=LONGEST)]
_DECODER = msgspec.json.Decoder(dict[_Name, _Text])  # made before there are threads


class QueriesChange(msgspec.Struct, frozen=True, kw_only=True):
    """The stored queries that a commit leaves: the hash of their object, None for none."""

    queries: Digest | None = None


def queries_key(digest: str) -> str:
    return f"_queries/{digest}.json"


def require_query_name(name: object) -> str:
    if not isinstance(name, str) or re.fullmatch(_NAME, name) is None:
        raise InvalidArgument(
            f"A stored query cannot be called {name!r}.",
            help="A name begins with a small letter or _, and goes on with letters, digits and _; "
            "it has at most 63 of them.",
        )
    return name


def encode_queries(queries: Queries) -> bytes:
    """The same bytes for the same queries. What could not be read again is refused."""
    if len(queries) > MOST:
        raise InvalidArgument(f"A graph holds at most {MOST:,} stored queries.")
    for name, text in queries.items():
        require_query_name(name)
        if len(text) > LONGEST:
            raise InvalidArgument(
                f"The stored query {name!r} has {len(text):,} characters; {LONGEST:,} are allowed."
            )
    try:
        data = msgspec.json.encode(dict(queries), order="sorted")
        _DECODER.decode(data)
    except UNDECODABLE as error:
        raise InvalidArgument(f"The stored queries cannot be stored: {error}.") from error
    if len(data) > LARGEST:
        raise InvalidArgument(
            f"The stored queries have {len(data):,} bytes; {LARGEST:,} are allowed."
        )
    return data


def decode_queries(data: bytes, key: str) -> Queries:
    """What a graph says is data: it is checked before anything is made of it."""
    try:
        if len(data) > LARGEST:
            raise ValueError(f"it has {len(data):,} bytes")
        found = _DECODER.decode(data)
        if len(found) > MOST:
            raise ValueError(f"it has {len(found):,} queries")
    except UNDECODABLE as error:
        raise Corrupt(f"The stored queries {key} cannot be read: {error}.") from error
    return found
