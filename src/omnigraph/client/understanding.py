"""Owns the line between what a server says and what is believed of it. A server can be of another
version, or no server of OmniGraph at all, so whatever an answer is instead of what it should be is
told as that, and never as a mistake of the caller."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from omnigraph.errors import BadAnswer

WRONG = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    NotImplementedError,
    msgspec.MsgspecError,
)
"""What reading an answer raises that is not as it should be. Only code that reads answers, and
calls nothing of the caller, is put under `understanding`."""


@contextmanager
def understanding() -> Iterator[None]:
    """Also a decorator."""
    try:
        yield
    except WRONG as error:
        raise BadAnswer(
            f"The server gave an answer that cannot be read: {what_is_wrong(error)}."
        ) from error


def what_is_wrong(error: BaseException) -> str:
    """In a few words, of which none moves a cursor."""
    if isinstance(error, KeyError) and error.args:
        return f"it lacks {ascii(error.args[0])[:60]}"
    first = (str(error).splitlines() or [""])[0]
    return ascii(first)[1:-1][:150].rstrip(".") or type(error).__name__
