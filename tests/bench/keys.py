"""Names the part of a graph that an object key belongs to; pure, and knows only the layout."""

from __future__ import annotations

from typing import Literal, get_args

KeyClass = Literal[
    "graph",
    "version",
    "schema",
    "data",
    "transaction",
    "table_version",
    "deletion",
    "index",
    "hint",
    "wait",
    "other",
]
KEY_CLASSES: tuple[KeyClass, ...] = get_args(KeyClass)

# Directories that may stand at any depth, because a root is any prefix of a bucket.
_DIRECTORIES: dict[str, KeyClass] = {
    "__manifest": "version",
    "_schema": "schema",
    "_queries": "schema",
    "__wait": "wait",
    "__hint": "hint",
    "_transactions": "transaction",
    "_versions": "table_version",
    "_deletions": "deletion",
    "_indices": "index",
    "data": "data",
}


def key_class(key: str) -> KeyClass:
    """The class of an object key, or of the prefix of a listing.

    The innermost known directory decides: a root whose own prefix is called ``data`` must not
    turn every request into a data request.
    """
    segments = [segment for segment in key.split("/") if segment]
    if segments and segments[-1] == "_graph.json":
        return "graph"
    if segments and "hint" in segments[-1]:
        return "hint"
    directories = segments if key.endswith("/") else segments[:-1]
    for segment in reversed(directories):
        if segment in _DIRECTORIES:
            return _DIRECTORIES[segment]
    if segments and not key.endswith("/") and segments[-1] in _DIRECTORIES:
        return _DIRECTORIES[segments[-1]]
    return "other"
