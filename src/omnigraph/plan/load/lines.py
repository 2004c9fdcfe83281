"""Owns the exact reading of one line of a load file: what it says, or what is wrong with it."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from omnigraph.lang.suggestions import near
from omnigraph.model.catalog import Catalog, EdgeType, GraphType
from omnigraph.model.types import Base, ScalarType
from omnigraph.model.violation import show_text, show_value

_NODE_KEYS = ("type", "id", "data")
_EDGE_KEYS = ("edge", "id", "from", "to", "src", "dst", "data")
_ENDS = frozenset({"from", "to", "src", "dst"})
BLOB_PREFIX = "base64:"


@dataclass(frozen=True)
class Entry:
    """One entity as a row of its type."""

    kind: GraphType
    row: dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """Why a line is not an entity. `type` is what it said it was, if it got that far."""

    rule: str
    message: str
    type: str = ""


class _RefusedError(ValueError):
    """JSON that Python reads and a load file must not hold."""


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _RefusedError(f"the member `{show_text(name)}` comes twice")
            seen.add(name)
    return found


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise _RefusedError(f"{show_text(text)} is too large for a number")
    return number


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise _RefusedError(f"a number of {len(text)} digits is too large") from None


def _no_constant(text: str) -> float:
    raise _RefusedError(f"{text} is not JSON; Parquet and Arrow may hold it")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members,
    parse_float=_finite,
    parse_int=_whole,
    parse_constant=_no_constant,
)


def parse_json(line: bytes) -> Any | Fault:
    """The JSON value of a line, read strictly."""
    try:
        text = line.rstrip(b"\r\n").decode()
    except UnicodeDecodeError as error:
        return Fault("json", f"byte {error.start + 1} is not valid UTF-8.")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        return Fault("json", f"this is not JSON: {error.msg} at column {error.colno}.")
    except _RefusedError as error:
        return Fault("json", f"{error}.")
    except RecursionError:
        return Fault("json", "the JSON is nested too deeply.")


def parse_line(catalog: Catalog, line: bytes) -> Entry | Fault:
    """An entity from a line such as {"type":"Person","data":{…}}."""
    value = parse_json(line)
    return value if isinstance(value, Fault) else read_entry(catalog, value)


def read_entry(catalog: Catalog, value: Any) -> Entry | Fault:
    if not isinstance(value, dict):
        return Fault("json", f"a line is a JSON object, but this is {show_value(value)}.")
    kind = _kind_of(catalog, value)
    if isinstance(kind, Fault):
        return kind
    edge = isinstance(kind, EdgeType)
    allowed = _EDGE_KEYS if edge else _NODE_KEYS
    for key in value:
        if key not in allowed:
            guess = near(key, allowed) if isinstance(key, str) else None
            advice = f"did you mean `{guess}`?" if guess else f"it may have {_listed(allowed)}."
            return Fault("json", f"`{show_text(str(key))}` is not a key; {advice}", kind.name)
    data = value.get("data", {})
    if not isinstance(data, dict):
        return Fault("json", f"`data` must be an object, but it is {show_value(data)}.", kind.name)
    if edge and (inside := _ENDS.intersection(data)):
        name = min(inside)
        return Fault(
            "unknown_property",
            f"{kind.name} has no property `{name}`; the ends of an edge stand beside `data`.",
            kind.name,
        )
    if "id" in value and "id" in data:
        message = f"{kind.name} is given `id` both beside and in `data`; give it once."
        return Fault("id", message, kind.name)
    row = dict(data)
    row.update((name, value[name]) for name in allowed if name in value and name not in _OUTER)
    return _with_blobs(kind, row)


_OUTER = frozenset({"type", "edge", "data"})


def read_row(kind: GraphType, value: Any) -> Entry | Fault:
    """A row of a type that is known: the object is the row itself."""
    if not isinstance(value, dict):
        return Fault("json", f"a row is a JSON object, but this is {show_value(value)}.", kind.name)
    return _with_blobs(kind, dict(value))


def _kind_of(catalog: Catalog, value: dict[Any, Any]) -> GraphType | Fault:
    if "type" in value and "edge" in value:
        return Fault("json", "a line has `type` or `edge`, not both.")
    if "type" not in value and "edge" not in value:
        return Fault("json", "the line has neither `type` nor `edge`, so nobody knows what it is.")
    word = "edge" if "edge" in value else "type"
    name = value[word]
    if not isinstance(name, str):
        return Fault("json", f"`{word}` must be the name of a type, but it is {show_value(name)}.")
    names: dict[str, Any] = dict(catalog.edge_names if word == "edge" else catalog.node_names)
    if (kind := names.get(name)) is not None:
        found: GraphType = kind
        return found
    label = "edge type" if word == "edge" else "node type"
    others = catalog.node_names if word == "edge" else catalog.edge_names
    if name in others:
        other = "type" if word == "edge" else "edge"
        advice = f"`{name}` is given with `{other}`."
    else:
        guess = near(name, names)
        advice = f"did you mean `{guess}`?" if guess else f"there are {_listed(tuple(names)[:20])}."
    return Fault("type", f'there is no {label} "{show_text(name)}"; {advice}')


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def blob_columns(kind: GraphType) -> list[str]:
    return [p.name for p in kind.properties if p.type == ScalarType(Base.BLOB)]


def _with_blobs(kind: GraphType, row: dict[str, Any]) -> Entry | Fault:
    for name in blob_columns(kind):
        if row.get(name) is not None:
            decoded = decode_blob(row[name])
            if isinstance(decoded, str):
                return Fault("type", f"`{name}` of {kind.name} must be {decoded}.", kind.name)
            row[name] = decoded
    return Entry(kind, row)


def decode_blob(value: Any) -> bytes | str:
    """The bytes, or what the value should have been."""
    if not isinstance(value, str) or not value.startswith(BLOB_PREFIX):
        return f"text that begins with `{BLOB_PREFIX}`, but it is {show_value(value)}"
    try:
        return base64.b64decode(value[len(BLOB_PREFIX) :], validate=True)
    except (binascii.Error, ValueError):
        return f"valid Base64 after `{BLOB_PREFIX}`, but it is {show_value(value)}"
