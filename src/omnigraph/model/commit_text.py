"""Owns the texts that a caller attaches to a commit: actor, message, keys and names.

They are checked first, because a value that is not valid text could be written and never be read
again.
"""

from __future__ import annotations

from typing import NamedTuple

from omnigraph.errors import InvalidArgument


class _Word(NamedTuple):
    called: str
    longest: int
    shortest: int = 0


WORDS = {
    "actor": _Word("An actor", 1_000),
    "message": _Word("A message", 100_000),
    "idempotency_key": _Word("An idempotency key", 10_000, 1),
    "if_commit": _Word("The commit that a branch must be at", 1_000),
    "job": _Word("The name of a job", 200, 1),
    "stream_id": _Word("The name of a stream", 1_000, 1),
}
"""By the name of the parameter. Lengths are in characters."""


def read_word(name: str, given: object) -> str | None:
    """The text that was passed for a parameter, as a plain string."""
    if given is None:
        return None
    called, longest, shortest = WORDS[name]
    if not isinstance(given, str):
        raise InvalidArgument(f"{called} is a text, not {type(given).__name__}.")
    word = str.__str__(given)  # a subclass could not be stored
    if not shortest <= len(word) <= longest:
        raise InvalidArgument(
            f"{called} has {shortest} to {longest:,} characters, not {len(word):,}."
        )
    if "\0" in word:
        raise InvalidArgument(f"{called} holds a NUL character.")
    try:
        word.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(
            f"{called} holds half of a surrogate pair, which is not Unicode text."
        ) from None
    return word


def plain_words(held: object) -> None:
    """Checks every text in a frozen value and makes it a plain string."""
    for name in WORDS:
        if hasattr(held, name):
            object.__setattr__(held, name, read_word(name, getattr(held, name)))
