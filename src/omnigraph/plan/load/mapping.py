"""Owns mapping files: which file contains which type, and which column which property."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import InvalidArgument
from omnigraph.lang.suggestions import near
from omnigraph.toml import parse_toml

_KEYS = ("file", "type", "columns", "from", "to", "id")


@dataclass(frozen=True)
class MappedSource:
    """`columns` maps a property (or `id`, `from`, `to`) to the column that holds it; empty means
    that the columns are called what the properties are."""

    file: str
    type: str
    columns: dict[str, str] = field(default_factory=dict)


def parse_mapping(text: str, name: str) -> list[MappedSource]:
    return read_mapping(parse_toml(text, f"The mapping {name}"), name)


def read_mapping(value: Mapping[str, Any], name: str) -> list[MappedSource]:
    sources = value.get("source")
    if set(value) - {"source"} or not isinstance(sources, list) or not sources:
        raise InvalidArgument(f"The mapping {name} must consist of [[source]] tables.")
    return [_read_source(entry, f"{name}, source {i + 1}") for i, entry in enumerate(sources)]


def _read_source(entry: Any, where: str) -> MappedSource:
    if not isinstance(entry, Mapping):
        raise InvalidArgument(f"In the mapping {where}: a source is a table of keys.")
    for key in entry:
        if key not in _KEYS:
            guess = near(str(key), _KEYS)
            hint = f"Did you mean `{guess}`?" if guess else f"Keys are {', '.join(_KEYS)}."
            raise InvalidArgument(f"In the mapping {where}: there is no key `{key}`.", help=hint)
    for key in ("file", "type"):
        if not isinstance(entry.get(key), str):
            raise InvalidArgument(f"In the mapping {where}: `{key}` must be given, as text.")
    columns = entry.get("columns", {})
    ends = {key: entry[key] for key in ("from", "to", "id") if key in entry}
    if not isinstance(columns, Mapping) or not all(
        isinstance(v, str) for v in (*columns.values(), *ends.values())
    ):
        raise InvalidArgument(f"In the mapping {where}: columns are named by text.")
    return MappedSource(entry["file"], entry["type"], {**columns, **ends})
