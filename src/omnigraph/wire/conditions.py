"""Owns conditions of requests: commits as entity tags, and keys that identify a repeated write."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote, unquote

from omnigraph.errors import InvalidArgument

_TAG = re.compile(r'(?:W/)?"([\x21\x23-\x7e]*)"')
_KEY = re.compile(r"[\x21-\x7e]{1,128}")
_NUMBER = re.compile(r"[0-9]{1,18}")
_MOST = 64


HOLDING = "omnigraph-branch"
"""The header of a handle on a branch, which must not reach another one of its name."""


def holding(branch: str, incarnation: int) -> str:
    return f"{incarnation}; {quote(branch, safe='')}"


def read_holding(header: str) -> tuple[str, int]:
    """The branch that is meant, and which one of its name."""
    number, _, name = header.partition("; ")
    if _NUMBER.fullmatch(number) is None or not name:
        raise InvalidArgument("Omnigraph-Branch has a number and the name of a branch.")
    return unquote(name), int(number)


def etag_of(commit: str) -> str:
    return f'"{commit}"'


def read_tags(header: str, name: str) -> tuple[str, ...]:
    """The commits that a condition names; none for `*`. They compare without `W/`."""
    if header.strip() == "*":
        return ()
    found = []
    for part in header.split(","):
        match = _TAG.fullmatch(part.strip())
        if match is None or not match[1]:
            raise InvalidArgument(
                f"{name} is a list of entity tags, not {header[:100]!r}.",
                help='Write the ETag of an answer as it was given: "01M7P8FYQ8F3HMPGM5NAKXEY7K".',
            )
        found.append(match[1])
    if len(found) > _MOST:
        raise InvalidArgument(f"{name} has {len(found)} entity tags, and at most {_MOST} are read.")
    return tuple(found)


def read_if_match(header: str | None) -> str | None:
    """The commit that a branch has to be at."""
    if header is None:
        return None
    tags = read_tags(header, "If-Match")
    if len(tags) > 1:
        raise InvalidArgument("If-Match names one commit, that the branch has to be at.")
    return tags[0] if tags else None


def read_key(header: str | None) -> str | None:
    """An Idempotency-Key as the client wrote it."""
    if header is not None and _KEY.fullmatch(header) is None:
        raise InvalidArgument(
            "An Idempotency-Key has 1 to 128 visible characters of ASCII.",
            help="A UUID is a good one.",
        )
    return header


def key_of(actor: str | None, key: str) -> str:
    """The key as the graph keeps it: two actors may use the same one and mean different writes."""
    return hashlib.sha256(f"{actor or ''}\0{key}".encode()).hexdigest()
