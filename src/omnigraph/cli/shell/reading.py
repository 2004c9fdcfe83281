"""Owns the decision whether a statement is complete. An incomplete one waits for another line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.gq import parse_queries
from omnigraph.lang.gq.tree import Query, Statement, Wreck

Item = Query | Statement
State = Literal["empty", "open", "wrong", "complete"]
_OPEN_ENDED = frozenset({"Q003", "Q004", "Q007", "Q008"})


@dataclass(frozen=True)
class ReadText:
    """`open` wants another line; `wrong` has diagnostics; `complete` has statements to run."""

    state: State
    text: str
    items: tuple[Item, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


_GOES_ON = re.compile(r"\s*(order|limit|offset)\b")


def goes_on(line: str) -> bool:
    """Whether a line can only continue the statement above it, even if that is complete."""
    return _GOES_ON.match(line) is not None


def read_statements(text: str) -> ReadText:
    """A statement ends with the line that completes it, or at `;`. A blank line ends an incomplete
    statement, whose errors are then reported."""
    given = text.rstrip()
    ended = given.endswith(";") or (bool(given) and text.endswith("\n\n"))
    given = given.rstrip("; \n\t")
    if not given:
        return ReadText("empty", "")
    parsed = parse_queries(given)
    if not parsed.diagnostics:
        items = tuple(item for item in parsed.file.items if not isinstance(item, Wreck))
        return ReadText("complete" if items else "open", given, items)
    lacks_end = all(d.code in _OPEN_ENDED or d.span.end >= len(given) for d in parsed.diagnostics)
    if lacks_end and not ended:
        return ReadText("open", given)
    return ReadText("wrong", given, diagnostics=parsed.diagnostics)
