"""Owns what a model is told when something fails: what happened, what to do next, every mistake
with its place, and the corrected text where it is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mcp_types as types
import msgspec

from omnigraph.engine.protocols import GraphLike
from omnigraph.errors import InvalidArgument, InvalidData, InvalidQuery, OmnigraphError
from omnigraph.lang.diagnostics import Located
from omnigraph.mcp.tool import Arguments, Tool
from omnigraph.wire.problems import known_facts
from omnigraph.wire.values import json_text, plain

_TOLD = 20
"""The largest number of diagnostics, violations and conflicts."""


class ToldFailure(Exception):
    """A failure as it is told."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(told["error"])
        self.told = told


def failed(told: dict[str, Any]) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=json_text(told))], structured_content=told, is_error=True
    )


def told_of(error: OmnigraphError) -> dict[str, Any]:
    facts = {
        name: value[:_TOLD] if isinstance(value, list) else value
        for name, value in known_facts(error).items()
    }
    return facts | {
        "code": error.code,
        "error": error.message,
        "help": error.hint or _HELP.get(error.code, ""),
        "retryable": error.retryable,
    }


_HELP = {
    "entity_not_found": "Its id is its key, or the id that it was given: find it with query or "
    "search. What you wrote is on your own branch: give that as ref.",
    "denied": "The tools that are listed are what you may use. Leave `branch` out, and what you "
    "write goes to your own branch, where somebody reviews it.",
}
"""What a model does next, where an error alone says nothing of it."""
_MISSING_END = "Insert the node as well, in the same text, or load the nodes first."


def with_correction(error: InvalidQuery, g: GraphLike, arguments: Arguments) -> dict[str, Any]:
    """The same with lines and columns, and with the text that was probably meant."""
    told = told_of(error)
    text, ref = getattr(arguments, "query", None), getattr(arguments, "ref", None)
    if not isinstance(text, str):
        return told
    found = g.at(ref or "main").check(text)
    told["diagnostics"] = told_diagnostics(found.diagnostics)
    told["corrected"] = found.corrected
    if found.corrected:
        told["help"] = "Call it again with the text in `corrected`, if that is what you mean."
    elif any(one.code.startswith("Q") for one in found.diagnostics):
        told["help"] = "The tool language shows on one page how a query is written, with examples."
    else:
        told["help"] = "The tool schema shows types, properties and edges."
    return told


def with_missing_ends(error: InvalidData) -> dict[str, Any]:
    """The same with what to do about an edge whose end is not there."""
    told = told_of(error)
    if any(one.rule == "endpoint" for one in error.violations):
        told["help"] = f"{told['help']} {_MISSING_END}".strip()
    return told


def told_diagnostics(found: Sequence[Located]) -> list[dict[str, Any]]:
    """With lines and columns alone: a model counts no bytes."""
    shown: list[dict[str, Any]] = plain(found[:_TOLD])
    return [
        {name: value for name, value in one.items() if name not in ("path", "span")}
        for one in shown
    ]


def read_arguments(tool: Tool, given: dict[str, Any] | None) -> Any:
    """The arguments as the tool takes them."""
    try:
        return msgspec.convert(given or {}, tool.takes)
    except msgspec.ValidationError as error:
        names = ", ".join(tool.takes.__struct_fields__)
        raise InvalidArgument(
            f"The arguments of {tool.name} do not fit: {error}.", help=f"It takes {names}."
        ) from None
