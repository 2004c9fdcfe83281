"""Owns the forms of stored values that become part of a path, a key or a loop.

A graph may come from anybody, so what it says is data. msgspec checks these forms wherever a stored
object is decoded: there is no other place where a text of a graph could become a path.
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
"""What decoding, or a step between formats, comes to when it meets what no program has written.
Bytes that are no UTF-8 are a ValueError."""

_ULID = "[0-7][0-9A-HJKMNP-TV-Z]{25}"
_NAME = "[A-Za-z_][A-Za-z0-9_]*"

Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""How many, which one, or when."""
Ulid = Annotated[str, Meta(pattern=rf"^{_ULID}\Z")]
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
"""SHA-256, the name of what it was made of."""
BranchName = Annotated[str, Meta(min_length=1, max_length=200)]
"""Anything else is encoded (`store.versions.encode_branch`)."""
ChainKey = Annotated[str, Meta(pattern=r"^[0-9]{1,19}:[\s\S]")]
"""Incarnation and name of a branch."""
Name = Annotated[str, Meta(pattern=rf"^{_NAME}\Z")]
"""Of a type, a property or a column: the language has no others."""
TableKey = Annotated[str, Meta(pattern=rf"^(node|edge):{_NAME}\Z")]
Location = Annotated[str, Meta(pattern=rf"^(nodes|edges)/[0-9a-f]{{16}}-{_ULID}\Z")]
"""Where a table lies below the root."""
LanceVersion = Annotated[str, Meta(pattern=r"^[0-9]{1,20}\Z")]
Key = Annotated[str, Meta(pattern=r"(?s)^(?!/)(?!(.*/)?\.{0,2}(/|\Z))[^\\\x00]*\Z")]
"""Of a file below the root: no part of it is empty, `.` or `..`."""

_FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")

FileName = Annotated[str, Meta(pattern=rf"^{_FILE_NAME.pattern}\Z")]
"""Of a file in a directory that is known, and nothing above or below it."""


def is_file_name(text: str) -> bool:
    """Whether this names a file in a directory that is known, and nothing above or below it."""
    return _FILE_NAME.fullmatch(text) is not None
