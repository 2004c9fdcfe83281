"""Owns the tools that are stored queries: one for each, typed by its parameters and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
import msgspec

from omnigraph.engine.protocols import GraphLike
from omnigraph.errors import InvalidArgument
from omnigraph.lang.gq.stored import QueryParameter, StoredQuery
from omnigraph.mcp.desk import SECONDS, Seat, require_own
from omnigraph.mcp.paging import RowPage, rows_of
from omnigraph.mcp.reading import place_of
from omnigraph.mcp.tool import schema_of
from omnigraph.mcp.writing import Written, written
from omnigraph.plan.digest import digest_values

PREFIX = "q_"
OWN = ("ref", "limit", "cursor", "branch", "message")
"""Arguments beside the parameters. A parameter of such a name is given with `_` after it."""
_KINDS: Mapping[str, dict[str, Any]] = {
    "String": {"type": "string"},
    "Bool": {"type": "boolean"},
    "I32": {"type": "integer"},
    "I64": {"type": "integer"},
    "U32": {"type": "integer", "minimum": 0},
    "U64": {"type": "integer", "minimum": 0},
    "F32": {"type": "number"},
    "F64": {"type": "number"},
    "Date": {"type": "string", "format": "date"},
    "DateTime": {"type": "string", "format": "date-time"},
}


def described_query(query: StoredQuery) -> types.Tool:
    """The query as a tool."""
    words = query.description or query.instruction or f"The stored query {query.name}."
    if query.description and query.instruction:
        words = f"{query.description} {query.instruction}"
    parameters = {argument_of(one.name): _schema(one) for one in query.parameters}
    own = _write_arguments() if query.mutation else _read_arguments()
    required = [argument_of(one.name) for one in query.parameters if one.required]
    if query.mutation:
        required.append("message")
    return types.Tool(
        name=PREFIX + query.name,
        description=words,
        input_schema={
            "type": "object",
            "properties": parameters | own,
            "required": required,
            "additionalProperties": False,
        },
        output_schema=schema_of(Written) if query.mutation else _output(query),
        annotations=types.ToolAnnotations(
            read_only_hint=not query.mutation, destructive_hint=False, open_world_hint=False
        ),
    )


def argument_of(name: str) -> str:
    return f"{name}_" if name in OWN else name


def _schema(parameter: QueryParameter) -> dict[str, Any]:
    found = kind_schema(parameter.kind)
    if parameter.nullable:
        found = {"anyOf": [found, {"type": "null"}]}
    if parameter.default is not None:
        found = found | {"default": parameter.default}
    return found


def kind_schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of a type as the schema language spells it."""
    if kind in _KINDS:
        return dict(_KINDS[kind])
    if kind.startswith("["):
        return {"type": "array", "items": kind_schema(kind[1:-1])}
    if kind.startswith("enum("):
        return {"type": "string", "enum": kind[5:-1].split(", ")}
    if kind.startswith("Vector("):
        size = int(kind[7:-1])
        return {
            "type": "array",
            "items": {"type": "number"},
            "minItems": size,
            "maxItems": size,
        }
    return {}


def _output(query: StoredQuery) -> dict[str, Any]:
    """As `RowPage`, with the columns of this query."""
    whole = schema_of(RowPage)
    columns = {
        one.name: {"description": f"{one.kind}{'?' if one.nullable else ''}"}
        for one in query.columns
    }
    rows = {"type": "array", "items": {"type": "object", "properties": columns}}
    return whole | {"properties": whole["properties"] | {"rows": rows}}


def _read_arguments() -> dict[str, Any]:
    return {
        "ref": {"type": "string", "default": "main"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
        "cursor": {"type": "string"},
    }


def _write_arguments() -> dict[str, Any]:
    words = "where to write; left out, it is your own branch"
    return {
        "message": {"type": "string", "description": "why, for whoever reviews it"},
        "branch": {"type": "string", "description": words},
    }


class _OwnWords(msgspec.Struct, frozen=True, kw_only=True):
    """The types of the arguments beside the parameters."""

    ref: str = "main"
    limit: int | None = None
    cursor: str | None = None
    branch: str | None = None
    message: str | None = None


def run_stored(
    g: GraphLike, query: StoredQuery, given: Mapping[str, Any], seat: Seat
) -> RowPage | Written:
    """Runs it. Its parameters are checked by the query itself."""
    own = {name: given[name] for name in OWN if name in given}
    try:
        msgspec.convert(own, _OwnWords)
    except msgspec.ValidationError as error:
        raise InvalidArgument(f"{PREFIX}{query.name}: {error}.") from None
    names = {argument_of(one.name): one.name for one in query.parameters}
    params = {names.get(name, name): value for name, value in given.items() if name not in own}
    if query.mutation:
        if wrong := own.keys() & {"ref", "limit", "cursor"}:
            raise InvalidArgument(f"A query that writes takes no {min(wrong)}.")
        return _run_mutation(g, query, params, own, seat)
    if wrong := own.keys() & {"branch", "message"}:
        raise InvalidArgument(f"A query that reads takes no {min(wrong)}.")
    ref = own.get("ref", "main")
    of = digest_values(["mcp", seat.graph, query.name, params])
    at, offset = place_of(ref, own.get("cursor"), of)
    found = g.at(at).run_query(query.name, params, timeout=SECONDS, memory_limit=seat.memory)
    return rows_of(found, ref, of, offset, own.get("limit"))


def _run_mutation(
    g: GraphLike, query: StoredQuery, params: dict[str, Any], own: dict[str, Any], seat: Seat
) -> Written:
    branch, made = own.get("branch"), False
    if branch is None:
        branch, made = require_own(g, seat)
    done = g.branch(branch).run_mutation(query.name, params, message=own.get("message"))
    return written(branch, made, done.commit_id, done.counts, done.repeated)
