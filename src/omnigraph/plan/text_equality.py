"""Owns for which types equal values have equal texts, so that a row can be found by its text."""

from __future__ import annotations

from omnigraph.lang.gq.checked import Kind
from omnigraph.model.types import FLOATS, INTEGER_RANGES, Base, EnumType, ListType, ScalarType


def share_texts(side: Kind, other: Kind) -> bool:
    """Whether a value of the one kind has the same text as every value that equals it: both are
    texts, integers, Bools, Dates or DateTimes. A float may equal an integer and has another text.
    For a list, this looks at its items."""
    kind = ScalarType(other.item) if isinstance(other, ListType) else other
    family = _family(kind)
    return family is not None and family == _family(side)


def _family(kind: Kind) -> str | None:
    if isinstance(kind, EnumType):
        return "text"
    if not isinstance(kind, ScalarType) or kind.base in FLOATS or kind.base is Base.BLOB:
        return None
    if kind.base in INTEGER_RANGES:
        return "integer"
    return {Base.STRING: "text"}.get(kind.base, kind.base.value)
