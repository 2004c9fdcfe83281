"""Owns the relations between types: which can be compared, which is wider, which value fits which
property, and their names."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from omnigraph.lang.gq.checked import (
    Constant,
    DurationKind,
    EdgeKind,
    EntityListKind,
    Expression,
    Kind,
    NodeKind,
    NullKind,
    Type,
)
from omnigraph.lang.values import MisfitError, fit_value
from omnigraph.model.schema import Literal as LiteralValue
from omnigraph.model.temporal import EPOCH, parse_date, parse_instant
from omnigraph.model.types import (
    FLOATS,
    INTEGER_RANGES,
    Base,
    EnumType,
    ListType,
    PropertyType,
    ScalarType,
    VectorType,
    type_text,
)

STRING: Final = ScalarType(Base.STRING)
BOOL: Final = ScalarType(Base.BOOL)
I64: Final = ScalarType(Base.I64)
U64: Final = ScalarType(Base.U64)
F64: Final = ScalarType(Base.F64)
DATE: Final = ScalarType(Base.DATE)
DATETIME: Final = ScalarType(Base.DATETIME)
DAYS: Final = DurationKind("day")
MILLISECONDS: Final = DurationKind("millisecond")
BLOB: Final = ScalarType(Base.BLOB)
NULL: Final = NullKind()
TEXT: Final = Type(STRING)


def is_integer(kind: Kind) -> bool:
    return isinstance(kind, ScalarType) and kind.base in INTEGER_RANGES


def is_float(kind: Kind) -> bool:
    return isinstance(kind, ScalarType) and kind.base in FLOATS


def is_number(kind: Kind) -> bool:
    return is_integer(kind) or is_float(kind)


def is_text(kind: Kind) -> bool:
    return kind == STRING or isinstance(kind, EnumType)


def is_entity(kind: Kind) -> bool:
    return isinstance(kind, NodeKind | EdgeKind)


def is_scalar(kind: Kind) -> bool:
    """Whether the value can be compared: it is no list, vector, blob or entity."""
    return isinstance(kind, EnumType) or (isinstance(kind, ScalarType) and kind != BLOB)


def is_ordered(kind: Kind) -> bool:
    return is_scalar(kind) and kind != BOOL


def item_kind(kind: Kind) -> Kind | None:
    return ScalarType(kind.item) if isinstance(kind, ListType) else None


def are_comparable(left: Kind, right: Kind) -> bool:
    if isinstance(left, NullKind) or isinstance(right, NullKind):
        return True
    if is_number(left) and is_number(right):
        return True
    if is_text(left) and is_text(right):
        return True
    return left == right and is_scalar(left)


def joined(left: Kind, right: Kind) -> Kind | None:
    """The common kind for values of both, as `coalesce` and lists need it."""
    if isinstance(left, NullKind) or left == right:
        return right
    if isinstance(right, NullKind):
        return left
    if is_text(left) and is_text(right):
        return STRING
    if is_number(left) and is_number(right):
        return arithmetic_kind(left, right)
    return None


def kinds_together(values: Sequence[Expression]) -> list[Kind]:
    """The kind of each value among the others. A non-negative literal does not make unsigned
    numbers signed."""
    kinds = [value.type.kind for value in values]
    if U64 not in kinds:
        return kinds
    return [
        U64 if isinstance(v, Constant) and is_integer(k) and _not_negative(v.value) else k
        for v, k in zip(values, kinds, strict=True)
    ]


def _not_negative(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def arithmetic_kind(left: Kind, right: Kind) -> ScalarType:
    """Floats are added in F64, unsigned integers in U64 if one is that wide, and others in I64."""
    if is_float(left) or is_float(right):
        return F64
    unsigned = (ScalarType(Base.U32), U64)
    return U64 if U64 in (left, right) and left in unsigned and right in unsigned else I64


def accepts(target: PropertyType, kind: Kind) -> bool:
    """Whether a value of the kind can be stored in a property. Ranges are checked at run time."""
    if isinstance(kind, NullKind) or target == kind:
        return True
    if is_text(target):
        return is_text(kind)
    if is_integer(target):
        return is_integer(kind)
    if is_float(target):
        return is_number(kind)
    if isinstance(target, ListType) and isinstance(kind, ListType):
        return accepts(ScalarType(target.item), ScalarType(kind.item))
    if isinstance(target, VectorType) and isinstance(kind, ListType):
        return is_number(ScalarType(kind.item))
    return False


def fitted(value: LiteralValue, kind: PropertyType) -> Constant:
    """The literal as a value of the kind. Raises MisfitError that says what would fit."""
    if isinstance(kind, VectorType):
        return _vector(value, kind)
    held = fit_value(value, kind)
    try:
        return Constant(_typed(held, kind), Type(kind))
    except ValueError as error:
        raise MisfitError(f"the text {error}") from None


def _vector(value: LiteralValue, kind: VectorType) -> Constant:
    if not isinstance(value, tuple) or len(value) != kind.dimension:
        raise MisfitError(f"a {type_text(kind)} is a list of {kind.dimension} numbers")
    held = fit_value(value, ListType(Base.F32))
    return Constant(held, Type(kind))


def _typed(value: LiteralValue, kind: PropertyType) -> Any:
    base = kind.base if isinstance(kind, ScalarType) else None
    if isinstance(kind, ListType) and isinstance(value, tuple):
        return tuple(_typed(item, ScalarType(kind.item)) for item in value)
    if base is Base.DATE and isinstance(value, str):
        return parse_date(value)
    if base is Base.DATETIME and isinstance(value, str):
        return instant(value)
    return value


def instant(text: str) -> datetime:
    """Raises a ValueError that says what is wrong with the text."""
    return EPOCH.astimezone(UTC) + timedelta(milliseconds=parse_instant(text))


def kind_text(kind: Kind) -> str:
    match kind:
        case NullKind():
            return "null"
        case NodeKind(types=types) | EdgeKind(types=types):
            return "|".join(t.name for t in types)
        case EntityListKind(item=item):
            return f"[{kind_text(item)}]"
        case DurationKind():
            return "duration"
        case _:
            return type_text(kind)


def shown(value: Expression | Type) -> str:
    """The kind in a sentence, such as `I32` or `a Person`."""
    kind = (value if isinstance(value, Type) else value.type).kind
    return f"`{kind_text(kind)}`" if not isinstance(kind, NullKind) else "null"
