"""Owns the table of algorithms: what each returns, which options it takes, and what values these
may have. Every engine runs the same algorithms with the same options."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from omnigraph.errors import InvalidArgument
from omnigraph.lang.suggestions import near
from omnigraph.model.types import FLOATS, Base, ScalarType, type_text

ValueKind = Literal["number", "count", "label"]
VALUES: Mapping[ValueKind, pa.DataType] = {
    "number": pa.float64(),
    "count": pa.int64(),
    "label": pa.string(),
}


@dataclass(frozen=True)
class Option:
    """`read` turns what was given into a value, or raises. A default of None means that the option
    is required."""

    read: Callable[[str, Any], Any]
    default: Any = None


@dataclass(frozen=True)
class Algorithm:
    """`direction` is how edges are followed if the caller does not say. An `undirected` algorithm
    always follows them both ways. `nullable` means that some nodes may have no value."""

    kind: ValueKind
    direction: str
    undirected: bool = False
    nullable: bool = False
    options: Mapping[str, Option] = field(default_factory=dict)


def _share(name: str, value: Any) -> float:
    if not _is_number(value) or not 0 <= value < 1:
        raise InvalidArgument(f"`{name}` is a share from 0 to below 1, not {value!r}.")
    return float(value)


def _small(name: str, value: Any) -> float:
    if not _is_number(value) or value < 0:
        raise InvalidArgument(f"`{name}` is a number from 0 on, not {value!r}.")
    return float(value)


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidArgument(f"`{name}` is a number of rounds from 1 on, not {value!r}.")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _sources(_: str, value: Any) -> list[str | tuple[str, str]]:
    given = [value] if isinstance(value, str | tuple) else list(value or ())
    for one in given:
        pair = isinstance(one, tuple) and len(one) == 2 and all(isinstance(p, str) for p in one)
        if not pair and not isinstance(one, str):
            raise InvalidArgument(f"A source is an id or a pair (type, id), not {one!r}.")
    return given


def _some_sources(name: str, value: Any) -> list[str | tuple[str, str]]:
    given = _sources(name, value)
    if not given:
        raise InvalidArgument(
            "`shortest_paths` needs `sources`, the ids of one or more nodes.",
            help="Say sources='…', or on the command line --source ID.",
        )
    return given


ALGORITHMS: Mapping[str, Algorithm] = {
    "pagerank": Algorithm(
        "number",
        "out",
        options={
            "damping": Option(_share, 0.85),
            "tolerance": Option(_small, 1e-10),
            "rounds": Option(_count, 200),
            "sources": Option(_sources, []),
        },
    ),
    "connected_components": Algorithm("label", "both", undirected=True),
    "label_propagation": Algorithm("label", "both", options={"rounds": Option(_count, 10)}),
    "triangle_count": Algorithm("count", "both", undirected=True),
    "shortest_paths": Algorithm(
        "count", "out", nullable=True, options={"sources": Option(_some_sources)}
    ),
    "core_numbers": Algorithm("count", "both", undirected=True),
    "degrees": Algorithm("count", "both"),
}


def find_algorithm(name: str) -> Algorithm:
    if not isinstance(name, str):
        raise InvalidArgument(f"An algorithm is named by a text, not by {type(name).__name__}.")
    algorithm = ALGORITHMS.get(name)
    if algorithm is None:
        guess = near(name, list(ALGORITHMS))
        hint = f"Did you mean {guess!r}?" if guess else f"There are: {', '.join(ALGORITHMS)}."
        raise InvalidArgument(f"There is no algorithm {name!r}.", help=hint)
    return algorithm


def read_options(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """All options of an algorithm, checked, with defaults for those that were not given."""
    known = find_algorithm(name).options
    for option in given:
        if option not in known:
            guess = near(option, list(known))
            listed = ", ".join(known) or "none"
            hint = f"Did you mean {guess!r}?" if guess else f"Its options: {listed}."
            raise InvalidArgument(f"{name} has no option {option!r}.", help=hint)
    return {
        option: rule.read(option, given.get(option, rule.default)) for option, rule in known.items()
    }


def fitting_types(algorithm: Algorithm) -> Sequence[str]:
    """The property types that can hold the values, best first."""
    if algorithm.kind == "label":
        return [type_text(ScalarType(Base.STRING))]
    floats = [type_text(ScalarType(base)) for base in sorted(FLOATS, reverse=True)]
    if algorithm.kind == "number":
        return floats
    whole = (Base.I64, Base.U64, Base.I32, Base.U32)
    return [*(type_text(ScalarType(base)) for base in whole), *floats]
