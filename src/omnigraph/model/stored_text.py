"""Owns the forms of stored values that become part of a path, a key or a loop.

A graph may come from anybody, so its contents are data. msgspec checks these forms wherever a
stored object is decoded: nowhere else can a text of a graph become a path.
"""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta, MsgspecError

UNDECODABLE = (
    MsgspecError,
    AttributeError,
    LookupError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)
"""The errors that decoding, or a step between formats, raises for contents that no program of ours
has written. Bytes that are not UTF-8 are a ValueError."""

_ULID = "[0-7][0-9A-HJKMNP-TV-Z]{25}"
_NAME = "[A-Za-z_][A-Za-z0-9_]*"

Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A count or a number."""
Moment = Annotated[int, Meta(ge=0, le=253_402_300_799_999_999)]
"""Microseconds since 1970, before the year 10,000: no calendar goes on."""
Ulid = Annotated[str, Meta(pattern=rf"^{_ULID}\Z")]
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
"""A SHA-256 digest, the name of the content from which it was made."""
BranchName = Annotated[str, Meta(min_length=1, max_length=200)]
"""Other characters are encoded (`store.versions.encode_branch`)."""
ChainKey = Annotated[str, Meta(pattern=r"^[0-9]{1,19}:[\s\S]")]
"""Incarnation and name of a branch."""
Name = Annotated[str, Meta(pattern=rf"^{_NAME}\Z")]
"""The name of a type, a property or a column: the language allows no others."""
TableKey = Annotated[str, Meta(pattern=rf"^(node|edge):{_NAME}\Z")]
Location = Annotated[str, Meta(pattern=rf"^(nodes|edges)/[0-9a-f]{{16}}-{_ULID}\Z")]
"""The location of a table below the root."""
LanceVersion = Annotated[str, Meta(pattern=r"^[0-9]{1,20}\Z")]
Key = Annotated[str, Meta(pattern=r"(?s)^(?!/)(?!(.*/)?\.{0,2}(/|\Z))[^\\\x00]*\Z")]
"""The key of a file below the root: no part of it is empty, `.` or `..`."""

_FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")

FileName = Annotated[str, Meta(pattern=rf"^{_FILE_NAME.pattern}\Z")]
"""The name of a file in a known directory, and nothing above or below it."""


def is_file_name(text: str) -> bool:
    """Whether this names a file in a known directory, and nothing above or below it."""
    return _FILE_NAME.fullmatch(text) is not None
