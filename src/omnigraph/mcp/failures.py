"""Owns what a model is told when something fails: what happened, what to do next, every mistake
with its place, and the corrected text where it is known."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import msgspec

from omnigraph.engine.protocols import GraphLike
from omnigraph.errors import InvalidArgument, InvalidQuery, OmnigraphError
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
        "help": error.hint,
        "retryable": error.retryable,
    }


def with_correction(error: InvalidQuery, g: GraphLike, arguments: Arguments) -> dict[str, Any]:
    """The same with lines and columns, and with the text that was probably meant."""
    told = told_of(error)
    text, ref = getattr(arguments, "query", None), getattr(arguments, "ref", None)
    if not isinstance(text, str):
        return told
    found = g.at(ref or "main").check(text)
    told["diagnostics"] = plain(found.diagnostics[:_TOLD])
    told["corrected"] = found.corrected
    told["help"] = (
        "Call it again with the text in `corrected`, if that is what you mean."
        if found.corrected
        else "Look at the diagnostics; the tool schema shows types, properties and edges."
    )
    return told


def read_arguments(tool: Tool, given: dict[str, Any] | None) -> Any:
    """The arguments as the tool takes them."""
    try:
        return msgspec.convert(given or {}, tool.takes)
    except msgspec.ValidationError as error:
        names = ", ".join(tool.takes.__struct_fields__)
        raise InvalidArgument(
            f"The arguments of {tool.name} do not fit: {error}.", help=f"It takes {names}."
        ) from None
