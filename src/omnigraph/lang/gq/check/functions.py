"""Owns the table of functions and aggregates: the arguments, the result, and the value for no rows.

An engine has one entry for each row, and a test compares the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from omnigraph.lang.gq.check.kinds import (
    BOOL,
    DATE,
    DATETIME,
    DAYS,
    F64,
    I64,
    MILLISECONDS,
    STRING,
    arithmetic_kind,
    is_integer,
    is_number,
    is_ordered,
    is_scalar,
    is_text,
    item_kind,
)
from omnigraph.lang.gq.checked import EdgeKind, EntityListKind, Kind, NodeKind, PathPart
from omnigraph.model.types import Base, ListType, ScalarType


@dataclass(frozen=True)
class Taken:
    """The condition on an argument, as a test and in words."""

    fits: Callable[[Kind], bool]
    words: str


@dataclass(frozen=True)
class Function:
    """A function of values. It is null if an argument is null, and otherwise never null."""

    takes: tuple[Taken, ...]
    gives: Callable[[Sequence[Kind]], Kind]
    optional: int = 0


@dataclass(frozen=True)
class GatheringFunction:
    """An aggregate. `gives` is None for a kind that it does not accept. `of_nothing` is its value
    for no rows; if that is null, the result may be null."""

    words: str
    gives: Callable[[Kind], Kind | None]
    of_nothing: Literal[0] | tuple[()] | None = None
    over_patterns: bool = True

    @property
    def nullable(self) -> bool:
        return self.of_nothing is None


_Gives: TypeAlias = Callable[[Sequence[Kind]], Kind]
_TEXT: Final = Taken(is_text, "a text")
_NUMBER: Final = Taken(is_number, "a number")
_WHOLE: Final = Taken(is_integer, "an integer")
_DATED: Final = Taken(lambda kind: kind in (DATE, DATETIME), "a Date or DateTime")
_SINGLE: Final = Taken(is_scalar, "a single value")
_SIZED: Final = Taken(lambda kind: is_text(kind) or item_kind(kind) is not None, "a text or a list")


def _text_or_instant(kind: Kind) -> bool:
    return is_text(kind) or kind in (DATE, DATETIME)


def _always(kind: Kind) -> _Gives:
    return lambda _: kind


def _same_number(kinds: Sequence[Kind]) -> Kind:
    """Integers are computed in 64 bits, floats in F64."""
    return arithmetic_kind(kinds[0], kinds[0])


FUNCTIONS: Final[dict[str, Function]] = {
    "now": Function((), _always(DATETIME)),
    "date": Function((Taken(_text_or_instant, "a text or a DateTime"),), _always(DATE)),
    "datetime": Function((Taken(_text_or_instant, "a text or a Date"),), _always(DATETIME)),
    "lower": Function((_TEXT,), _always(STRING)),
    "upper": Function((_TEXT,), _always(STRING)),
    "trim": Function((_TEXT,), _always(STRING)),
    "length": Function((_SIZED,), _always(I64)),
    "abs": Function((_NUMBER,), _same_number),
    "round": Function((_NUMBER,), _same_number),
    "floor": Function((_NUMBER,), _same_number),
    "ceil": Function((_NUMBER,), _same_number),
    "year": Function((_DATED,), _always(I64)),
    "month": Function((_DATED,), _always(I64)),
    "day": Function((_DATED,), _always(I64)),
    "toString": Function((_SINGLE,), _always(STRING)),
    "replace": Function((_TEXT, _TEXT, _TEXT), _always(STRING)),
    "size": Function((_SIZED,), _always(I64)),
    "split": Function((_TEXT, _TEXT), _always(ListType(Base.STRING))),
    "substring": Function((_TEXT, _WHOLE, _WHOLE), _always(STRING), optional=1),
    "matches": Function((_TEXT, _TEXT), _always(BOOL)),
    "weeks": Function((_WHOLE,), _always(DAYS)),
    "days": Function((_WHOLE,), _always(DAYS)),
    "hours": Function((_WHOLE,), _always(MILLISECONDS)),
    "minutes": Function((_WHOLE,), _always(MILLISECONDS)),
    "seconds": Function((_WHOLE,), _always(MILLISECONDS)),
}
TEXT_TESTS: Final = ("contains", "starts_with", "ends_with")
"""Operators that may also be written as calls of two values."""
LENGTH: Final = "length"
PATH_PARTS: Final[dict[str, PathPart]] = {"nodes": "nodes", "edges": "edges", LENGTH: "length"}
"""Functions of a named path."""
COALESCE: Final = "coalesce"
"""The one function that is not null where an argument is; it takes any number of one type."""


def _number_or_none(gives: Callable[[Kind], Kind]) -> Callable[[Kind], Kind | None]:
    return lambda kind: gives(kind) if is_number(kind) else None


def _ordered(kind: Kind) -> Kind | None:
    """False is below true, as in `order`."""
    return kind if is_ordered(kind) or kind == BOOL else None


def _listed(kind: Kind) -> Kind | None:
    if isinstance(kind, NodeKind | EdgeKind):
        return EntityListKind(kind)
    if not is_scalar(kind):
        return None
    return ListType(kind.base if isinstance(kind, ScalarType) else Base.STRING)


AGGREGATES: Final[dict[str, GatheringFunction]] = {
    "count": GatheringFunction("anything", lambda _: I64, 0, over_patterns=False),
    "sum": GatheringFunction("numbers", _number_or_none(lambda k: I64 if is_integer(k) else F64)),
    "avg": GatheringFunction("numbers", _number_or_none(lambda _: F64)),
    "min": GatheringFunction("values with an order", _ordered),
    "max": GatheringFunction("values with an order", _ordered),
    "collect": GatheringFunction("single values or entities", _listed, (), over_patterns=False),
}
