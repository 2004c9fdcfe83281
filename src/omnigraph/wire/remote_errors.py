"""Owns the errors of another process: the error that a problem was made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from omnigraph.errors import (
    BrokenQueries,
    Conflict,
    InvalidData,
    InvalidParameters,
    InvalidQuery,
    InvalidSchema,
    MergeFailed,
    OmnigraphError,
    RevertFailed,
    UnsupportedChange,
)
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.gq.stored import BrokenQuery
from omnigraph.model.conflicts import MergeConflict
from omnigraph.model.violation import Violation
from omnigraph.plan.rebase import ExpectedVersionMismatch
from omnigraph.wire.problems import SAID
from omnigraph.wire.typed import untyped

_LONGEST = 8_000


def error_of(problem: Mapping[str, Any]) -> OmnigraphError:
    """The error that a problem was made of. A code that is not known here stays as text, and so
    does a problem that says what no error of its code can say."""
    kind = _by_code().get(str(problem.get("code")), OmnigraphError)
    try:
        return _error_of(kind, problem)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
        return OmnigraphError(_text(problem, "error"), help=_text(problem, "help"))


def _text(problem: Mapping[str, Any], name: str) -> str:
    held = problem.get(name, "")
    return held[:_LONGEST] if isinstance(held, str) else ""


def _error_of(kind: type[OmnigraphError], problem: Mapping[str, Any]) -> OmnigraphError:
    error = kind.__new__(kind)
    details = {name: value for name, value in problem.items() if name not in SAID}
    for name, (whole, read) in _LISTS.items():
        if isinstance(error, whole):
            given = details.pop(name, None) or ()
            setattr(error, name, tuple(read(one) for one in given))
    if isinstance(error, InvalidData):
        error.more = msgspec.convert(details.pop("more", 0), int)
    if isinstance(error, Conflict):
        told = details.pop("manifest_conflict", None)
        error.mismatch = None if told is None else msgspec.convert(told, ExpectedVersionMismatch)
    for name in ("commit", "limit", "differs", "allowed", "actual"):
        if name in details:
            setattr(error, name, details[name])
    OmnigraphError.__init__(
        error, _text(problem, "error"), help=_text(problem, "help"), **_free(details)
    )
    return error


def _free(details: dict[str, Any]) -> dict[str, Any]:
    """Names of details that are not those of the arguments of an error."""
    return {name: value for name, value in details.items() if name not in ("message", "self")}


def _conflict(row: Any) -> MergeConflict:
    return msgspec.convert(untyped(row), MergeConflict)


_LISTS: dict[
    str, tuple[type[OmnigraphError] | tuple[type[OmnigraphError], ...], Callable[[Any], Any]]
] = {
    "problems": (InvalidParameters, lambda row: (row["parameter"], row["problem"])),
    "diagnostics": (
        (InvalidSchema, InvalidQuery),
        lambda row: msgspec.convert(row, Diagnostic),
    ),
    "violations": (InvalidData, lambda row: msgspec.convert(row, Violation)),
    "queries": (BrokenQueries, lambda row: msgspec.convert(row, BrokenQuery)),
    "steps": (UnsupportedChange, lambda row: row),
    "conflicts": ((MergeFailed, RevertFailed), _conflict),
}


@cache
def _by_code() -> dict[str, type[OmnigraphError]]:
    """By the code alone: what inherits it is a matter of the other process."""
    found: dict[str, type[OmnigraphError]] = {}
    for kind in _all_kinds(OmnigraphError):
        found.setdefault(kind.code, kind)
    return found


def _all_kinds(kind: type[OmnigraphError]) -> Iterator[type[OmnigraphError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _all_kinds(below)
