"""Owns what a tool is: its name and words, the structs of its arguments and of its answer, and the
function that does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import mcp_types as types
import msgspec

from omnigraph.engine.protocols import GraphLike
from omnigraph.mcp.desk import Seat
from omnigraph.model.permission import BranchAction

Ref = Annotated[
    str,
    msgspec.Meta(
        description="what to read: main, another branch such as agent/eve, main~2, a commit, a tag"
    ),
]
Message = Annotated[
    str, msgspec.Meta(description="why, in a sentence: whoever reviews the branch reads it")
]
OwnBranch = Annotated[
    str | None,
    msgspec.Meta(description="where to write; left out, it is your own branch agent/<you>"),
]
Key = Annotated[
    str | None,
    msgspec.Meta(description="a name for this write: repeated with it, nothing is done twice"),
]


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a tool takes."""


@dataclass(frozen=True)
class Tool:
    """`done` says in which threads it runs. `needs` is what a caller must be allowed: to the branch
    that it reads, or to its own one."""

    name: str
    words: str
    takes: type[Arguments]
    gives: type[msgspec.Struct]
    run: Callable[[GraphLike, Any, Seat], msgspec.Struct]
    done: Literal["read", "ask", "write"] = "read"
    needs: BranchAction = "read"
    destructive: bool = False


def described(tool: Tool) -> types.Tool:
    """The tool as a client sees it."""
    return types.Tool(
        name=tool.name,
        description=tool.words,
        input_schema=schema_of(tool.takes),
        output_schema=schema_of(tool.gives),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.done != "write",
            destructive_hint=tool.destructive,
            idempotent_hint=tool.done != "write",
            open_world_hint=False,
        ),
    )


def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of a struct, with the object itself at the top."""
    (whole,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    name = whole["$ref"].rsplit("/", 1)[-1]
    top: dict[str, Any] = dict(parts.pop(name))
    top.pop("description", None)
    return top | {"$defs": parts} if parts else top
