"""Owns the types of arguments that many calls take, so that a handle can check an argument before
it imports what carries the call out."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pyarrow.compute import Expression
else:

    class _OfExpressions(type):
        """An expression exists only where Arrow is imported, so this need not import it."""

        def __instancecheck__(cls, value: object) -> bool:
            compute = sys.modules.get("pyarrow.compute")
            return compute is not None and isinstance(value, compute.Expression)

    class Expression(metaclass=_OfExpressions):
        """Stands for the expressions of Arrow."""


Filter: TypeAlias = str | Expression
"""A condition as callers write it, wherever a condition is accepted."""

Edges: TypeAlias = str | Sequence[str] | Mapping[str, str] | None
"""Edge types by name, or each with its direction, or None for all types."""

AlgorithmFilter: TypeAlias = Filter | Mapping[str, Filter] | None
"""Conditions by the name of a type, or a single one for the only edge type."""
