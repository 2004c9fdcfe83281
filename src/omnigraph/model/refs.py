"""Owns refs: the ways to name a version of the graph, as text and as values."""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime

from omnigraph.errors import InvalidBranchName, InvalidRef
from omnigraph.runtime import is_ulid

_UNSEEN = ("Cc", "Zl", "Zp")
"""Categories of characters that control how others are shown, and of line breaks."""


@dataclass(frozen=True)
class BranchRef:
    """The head of a branch, or the commit `back` first-parent steps before it."""

    branch: str
    back: int = 0


@dataclass(frozen=True)
class CommitRef:
    """A commit, looked for on one branch or, with None, on all branches."""

    commit: str
    branch: str | None = None


@dataclass(frozen=True)
class TimeRef:
    """The newest version of a branch at a time, in microseconds."""

    branch: str
    time: int


Ref = BranchRef | CommitRef | TimeRef

_BACK = re.compile(r"(.+)~(\d{0,18})", re.DOTALL)
_AT = re.compile(r"(.+)@([0-9A-Za-z]{26})", re.DOTALL)
_TIME = re.compile(r"(.+)\*(\d{4}-\d{2}-\d{2}.*)", re.DOTALL)


def parse_ref(text: str) -> Ref:
    if not isinstance(text, str) or not text:
        raise InvalidRef("A ref is a text such as 'main'.")
    return _parse(text)


@functools.lru_cache(maxsize=1024)
def _parse(text: str) -> Ref:
    if is_ulid(text.upper()) and len(text) == 26:
        return CommitRef(text.upper())
    if match := _BACK.fullmatch(text):
        return BranchRef(match[1], int(match[2] or 1))
    if (match := _AT.fullmatch(text)) and is_ulid(match[2].upper()):
        return CommitRef(match[2].upper(), branch=match[1])
    if match := _TIME.fullmatch(text):
        return TimeRef(match[1], _parse_time(match[2], text))
    if "*" in text[1:] and text.rsplit("*", 1)[1]:
        raise InvalidRef(f"{text!r} ends in something that is not a time.")
    return BranchRef(text)


def check_branch_name(name: str) -> None:
    """Refuses names that a ref could confuse with something else, or that people could confuse with
    each other. Only new names are checked: an existing one stays valid."""
    if not isinstance(name, str) or not name:
        raise InvalidBranchName("A branch needs a name.")
    if any(unicodedata.category(c) in _UNSEEN for c in name):
        raise InvalidBranchName(f"The branch name {name!r} holds control characters.")
    if name != name.strip():
        raise InvalidBranchName(f"The branch name {name!r} begins or ends with a space.")
    if name in (".", ".."):
        raise InvalidBranchName(f"The branch name {name!r} is that of a directory.")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidBranchName(f"The branch name {name!r} is not a text in UTF-8.") from None
    try:
        plain = parse_ref(name) == BranchRef(name)
    except InvalidRef:
        plain = False
    if not plain:
        raise InvalidBranchName(
            f"The branch name {name!r} reads as another kind of ref.",
            help="Names may not be commit ids nor end in ~n, @commit or *time.",
        )


def _parse_time(text: str, ref: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidRef(f"{ref!r} ends in {text!r}, which is not a time.") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    whole = moment.replace(microsecond=0)
    end = int(whole.timestamp()) * 1_000_000 + moment.microsecond
    # A day includes all of it, so `main*2026-01-31` shows what happened on that day.
    return end + 86_400_000_000 - 1 if len(text) == 10 else end
