"""Owns the options of a commit: what a caller can say about any write."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypedDict

from omnigraph.errors import InvalidArgument
from omnigraph.model.commit_text import plain_words


class CommitWords(TypedDict, total=False):
    """The options as keywords of a call. `options` gives all of them as one value; a keyword beside
    it overrides its field."""

    options: CommitOptions | None
    actor: str | None
    message: str | None
    if_commit: str | None
    idempotency_key: str | None
    retry_for: float | None


@dataclass(frozen=True)
class CommitOptions:
    """Who writes and why; the commit that the branch must be at; a key that identifies a repeated
    call; and for how many seconds to retry when others write first (None: the setting). Every value
    is checked here, before anything is done."""

    actor: str | None = None
    message: str | None = None
    if_commit: str | None = None
    idempotency_key: str | None = None
    retry_for: float | None = None

    def __post_init__(self) -> None:
        plain_words(self)
        if self.retry_for is not None:
            object.__setattr__(self, "retry_for", _read_seconds(self.retry_for))

    def patience(self, usual: float) -> float:
        """The seconds that were given, otherwise the default."""
        return usual if self.retry_for is None else self.retry_for


NO_OPTIONS = CommitOptions()


def read_options(given: CommitWords) -> CommitOptions:
    """The options of a call, given as one value or by keyword. An unknown keyword is refused."""
    known = CommitWords.__annotations__
    for name in given:
        if name not in known:
            raise InvalidArgument(
                f"There is no option {name!r} here.",
                help=f"Every write takes {', '.join(known)}.",
            )
    words = {name: value for name, value in given.items() if name != "options"}
    base = given.get("options")
    if base is None:
        return CommitOptions(**words)  # type: ignore[arg-type]
    if not isinstance(base, CommitOptions):
        raise InvalidArgument(f"options is a CommitOptions, not {type(base).__name__}.")
    return replace(base, **words)  # type: ignore[arg-type]


def _read_seconds(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidArgument(f"retry_for is a number of seconds, not {type(given).__name__}.")
    if not 0 <= given < math.inf:
        raise InvalidArgument(f"retry_for is a number of seconds from 0 on, not {given}.")
    return float(given)
