"""Owns how errors are shown: one clear sentence and what to do next, or one line of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from omnigraph.cli.colours import Paint, fold
from omnigraph.cli.output import Output
from omnigraph.cli.value_text import one_line
from omnigraph.errors import (
    GraphExists,
    GraphNotFound,
    InvalidData,
    MergeFailed,
    OmnigraphError,
    PreconditionFailed,
    ProtectedBranch,
    RevertFailed,
)
from omnigraph.wire.problems import known_facts
from omnigraph.wire.values import json_text

_SHOWN = 10
_REWORDED = {
    "Give it to mutate().": "Use 'omnigraph mutate'.",
    "Give it to query().": "Use 'omnigraph query'.",
    "Export to a directory, or name one type with types=[…].": "Name a directory, or one --type.",
}
_TYPED = (
    ("mode='merge'", "--mode merge"),
    ("engine='local'", "--engine local"),
    ("and query() only reads", "and 'query' only reads"),
    ("and mutate() takes", "and 'mutate' takes"),
    ("older_than", "--older-than"),
    ("g.recovery.list(), or `omnigraph recover list`", "'omnigraph recover list'"),
)
_HINTS: tuple[tuple[type[OmnigraphError], str], ...] = (
    (GraphNotFound, "Create one with 'omnigraph init ROOT --schema FILE', or check the path."),
    (GraphExists, "Choose another root, or use the graph that is there."),
    (
        PreconditionFailed,
        "Nothing was changed; look at the new commits and give --if-commit again.",
    ),
    (ProtectedBranch, "Write to another branch and merge it, or 'omnigraph unprotect' this one."),
)


def failure_lines(error: OmnigraphError, out: Output) -> Iterator[str]:
    if out.options.json:
        yield json_text(failure_row(error))
        return
    paint = out.note_paint
    message = _message(error).strip().splitlines() or ["It failed."]
    first, *rest = (one_line(line) for line in message)
    width = out.streams.width if out.streams.stderr.isatty() else None
    head, *more = fold(f"error: {first}", width)
    yield paint("wrong", "error:") + head.removeprefix("error:")
    yield from more
    yield from (f"  {line}" if line else "" for line in rest)
    yield from _details(error, paint, out)
    if hint := _hint(error):
        head, *more = fold(f"help: {one_line(hint)}", width)
        yield paint("bold", "help:") + head.removeprefix("help:")
        yield from more


def failure_row(error: OmnigraphError) -> dict[str, Any]:
    """An error for programs, with everything that it knows."""
    told = {"exit_code": error.exit_code, "kind": error.kind}
    return error.to_dict() | told | known_facts(error)


def _message(error: OmnigraphError) -> str:
    if isinstance(error, InvalidData) and len(error.violations) > 1:
        return f"{len(error.violations) + error.more:,} values break the rules."
    return _as_typed(error.message)


def _as_typed(message: str) -> str:
    """Options as they are written on the command line, not as in Python."""
    for python, typed in _TYPED:
        message = message.replace(python, typed)
    return message


def _hint(error: OmnigraphError) -> str:
    """What to do next, in terms of the command line where the Python hint would not help."""
    if error.hint != error.help:
        return _as_typed(_REWORDED.get(error.hint, error.hint))
    told = next((text for kind, text in _HINTS if isinstance(error, kind)), error.hint)
    return _as_typed(told)


def _details(error: OmnigraphError, paint: Paint, out: Output) -> Iterator[str]:
    match error:
        case InvalidData() if len(error.violations) > 1:
            for violation in error.violations[:_SHOWN]:
                shown = violation.id is None or violation.id in violation.message
                where = "" if shown else f" (id {one_line(violation.id)})"
                text = _as_typed(violation.message)
                yield f"  {paint('dim', violation.rule)}: {text}{where}"
            left = len(error.violations) + error.more - _SHOWN
            if left > 0:
                yield paint("dim", f"  … {left:,} more")
        case MergeFailed() | RevertFailed():
            from omnigraph.cli.views.conflicts import conflict_lines

            yield from conflict_lines(error.conflicts, paint, out.streams.width)
