"""Owns how an error of ours gets from an executor to the caller without Spark's errors around it:
it travels as one word in the message of the Spark error."""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from omnigraph import errors
from omnigraph.errors import OmnigraphError

MARK = "omnigraph-error:"
_TOLD = re.compile(MARK + r"([A-Za-z0-9+/=]+);")


class TaskFailure(Exception):
    """The form in which Spark sees an error of ours."""


def error_word(error: OmnigraphError) -> str:
    """The error as one word."""
    body = msgspec.json.encode(
        {
            "code": error.code,
            "message": error.message,
            "help": error.hint,
            "details": {k: v for k, v in error.details.items() if isinstance(v, str | int | float)},
        }
    )
    return f"{MARK}{base64.b64encode(body).decode()};"


@contextlib.contextmanager
def passing_errors() -> Iterator[None]:
    """Wraps code that runs on an executor."""
    try:
        yield
    except OmnigraphError as error:
        raise TaskFailure(error_word(error)) from None


def decoded_error(error: BaseException | str) -> OmnigraphError | None:
    """The error of ours that an executor raised, or None if it is another error."""
    found = _TOLD.search(str(error))
    if found is None:
        return None
    body: dict[str, Any] = msgspec.json.decode(base64.b64decode(found.group(1)))
    kind = _by_code().get(body["code"], OmnigraphError)
    return kind(body["message"], help=body["help"], **body["details"])


def _by_code() -> dict[str, type[OmnigraphError]]:
    kinds = [held for held in vars(errors).values() if isinstance(held, type)]
    return {kind.code: kind for kind in kinds if issubclass(kind, OmnigraphError)}
