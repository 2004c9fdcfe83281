"""Owns the functions: scalar ones, aggregates, and those over a pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from omnigraph.lang.findings import Meant
from omnigraph.lang.gq import tree
from omnigraph.lang.gq.check import searches
from omnigraph.lang.gq.check.kinds import (
    DATE,
    DATETIME,
    F64,
    I64,
    STRING,
    arithmetic_kind,
    fitted,
    is_entity,
    is_integer,
    is_number,
    is_ordered,
    is_scalar,
    is_text,
    item_kind,
    joined,
    kinds_together,
    shown,
)
from omnigraph.lang.gq.checked import (
    Aggregate,
    Constant,
    EdgeKind,
    EntityListKind,
    Expression,
    FunctionCall,
    Kind,
    NodeKind,
    NullKind,
    PatternAggregate,
    Type,
)
from omnigraph.lang.values import MisfitError
from omnigraph.model.types import Base, ListType, ScalarType

if TYPE_CHECKING:
    from omnigraph.lang.gq.check.expressions import Expressions

AGGREGATES: Final = ("count", "sum", "avg", "min", "max", "collect")
_OVER_PATTERNS: Final = ("sum", "avg", "min", "max")


def _same_number(kind: Kind) -> Kind:
    """Integers are computed in 64 bits, floats in F64."""
    return arithmetic_kind(kind, kind)


def _text_or_list(kind: Kind) -> bool:
    return is_text(kind) or item_kind(kind) is not None


def _dated(kind: Kind) -> bool:
    return kind in (DATE, DATETIME)


def _text_or_instant(kind: Kind) -> bool:
    return is_text(kind) or kind in (DATE, DATETIME)


# Of each function with one argument: what it takes, in a test and in words, and what it gives.
_UNARY: Final[dict[str, tuple[Callable[[Kind], bool], str, Callable[[Kind], Kind]]]] = {
    "date": (_text_or_instant, "a text or a DateTime", lambda _: DATE),
    "datetime": (_text_or_instant, "a text or a Date", lambda _: DATETIME),
    "lower": (is_text, "a text", lambda _: STRING),
    "upper": (is_text, "a text", lambda _: STRING),
    "trim": (is_text, "a text", lambda _: STRING),
    "length": (_text_or_list, "a text or a list", lambda _: I64),
    "abs": (is_number, "a number", _same_number),
    "round": (is_number, "a number", _same_number),
    "floor": (is_number, "a number", _same_number),
    "ceil": (is_number, "a number", _same_number),
    "year": (_dated, "a Date or DateTime", lambda _: I64),
    "month": (_dated, "a Date or DateTime", lambda _: I64),
    "day": (_dated, "a Date or DateTime", lambda _: I64),
    "toString": (is_scalar, "a single value", lambda _: STRING),
}
SCALARS: Final = (*_UNARY, "now", "coalesce")
FUNCTIONS: Final = (*SCALARS, *AGGREGATES, *searches.FUNCTIONS)


def check_call(checker: Expressions, node: tree.Call, depth: int) -> Expression | None:
    name = node.function.text
    if name not in FUNCTIONS:
        meant = Meant(name, FUNCTIONS)
        checker.add("T6", node.function.span, f"there is no function `{name}`", meant)
        return None
    if node.clauses is not None and name not in _OVER_PATTERNS:
        message = f"`{name}(…)` takes no pattern"
        help_ = "write `count { … }`" if name == "count" else None
        checker.add("T8", node.function.span, message, help_)
        return None
    if name in searches.FUNCTIONS:
        return searches.check_search(checker, node, depth)
    if not _is_plain(checker, node):
        return None
    if name in AGGREGATES:
        return _aggregate(checker, node, depth)
    arguments = [checker.check(a.value, depth + 1) for a in node.arguments]
    held = [a for a in arguments if a is not None]
    return _scalar(checker, node, held) if len(held) == len(arguments) else None


def _is_plain(checker: Expressions, node: tree.Call) -> bool:
    """Named arguments and `distinct` only where they mean something."""
    named = next((a.name for a in node.arguments if a.name is not None), None)
    if named is not None:
        message = f"`{node.function.text}` has no argument named `{named.text}`"
        checker.add("T7", named.span, message)
        return False
    if node.is_distinct and node.function.text not in AGGREGATES:
        checker.add("T7", node.span, f"`{node.function.text}` takes no `distinct`")
        return False
    return True


def _scalar(
    checker: Expressions, node: tree.Call, arguments: list[Expression]
) -> Expression | None:
    name = node.function.text
    if name == "now":
        return _no_arguments(checker, node)
    if name == "coalesce":
        return _coalesce(checker, node, arguments)
    if len(arguments) != 1:
        checker.add("T7", node.span, f"`{name}` takes one value, and {len(arguments)} are given")
        return None
    argument = arguments[0]
    takes, words, gives = _UNARY[name]
    kind = argument.type.kind
    if not takes(kind) and not isinstance(kind, NullKind):
        checker.add("T7", node.arguments[0].span, f"`{name}` takes {words}, not {shown(argument)}")
        return None
    if name in ("date", "datetime") and isinstance(argument, Constant):
        return _moment(checker, node, argument)
    return FunctionCall(name, (argument,), Type(gives(kind), argument.type.nullable))


def _no_arguments(checker: Expressions, node: tree.Call) -> Expression | None:
    if node.arguments:
        checker.add("T7", node.span, f"`{node.function.text}` takes nothing")
        return None
    return FunctionCall(node.function.text, (), Type(DATETIME))


def _moment(checker: Expressions, node: tree.Call, argument: Constant) -> Expression | None:
    """`date("…")` of a literal is read at once."""
    kind = DATE if node.function.text == "date" else DATETIME
    if not isinstance(argument.value, str):
        return FunctionCall(node.function.text, (argument,), Type(kind, argument.type.nullable))
    try:
        return fitted(argument.value, kind)
    except MisfitError as error:
        message = f'"{argument.value}" does not fit {shown(Type(kind))}: {error}'
        checker.add("T3", node.arguments[0].span, message)
        return None


def _coalesce(
    checker: Expressions, node: tree.Call, arguments: list[Expression]
) -> Expression | None:
    if not arguments:
        checker.add("T7", node.span, "`coalesce` takes at least one value")
        return None
    kind: Kind = NullKind()
    own = kinds_together(arguments)
    for argument, written, mine in zip(arguments, node.arguments, own, strict=True):
        common = joined(kind, mine)
        if common is None or is_entity(argument.type.kind):
            message = f"`coalesce` takes values of one type, and this is {shown(argument)}"
            checker.add("T7", written.span, message)
            return None
        kind = common
    nullable = all(argument.type.nullable for argument in arguments)
    return FunctionCall("coalesce", tuple(arguments), Type(kind, nullable))


def _aggregate(checker: Expressions, node: tree.Call, depth: int) -> Expression | None:
    if node.clauses is not None:
        return _over_pattern(checker, node)
    name: Any = node.function.text
    if not checker.aggregates:
        message = f"`{name}` gathers rows, and here is only one"
        checker.add("T8", node.span, message, "aggregates stand in `return`, and not in each other")
        return None
    argument = _argument(checker, node, depth)
    if argument is None:
        return None
    kind = aggregate_kind(name, argument.type.kind)
    if kind is None:
        _refuse(checker, node, argument)
        return None
    nullable = name not in ("count", "collect")
    return Aggregate(name, argument, node.is_distinct, Type(kind, nullable))


def _argument(checker: Expressions, node: tree.Call, depth: int) -> Expression | None:
    if len(node.arguments) != 1:
        name = node.function.text
        message = f"`{name}` takes one value, and {len(node.arguments)} are given"
        checker.add("T8", node.span, message)
        return None
    before, checker.aggregates = checker.aggregates, False
    argument = checker.check(node.arguments[0].value, depth + 1)
    checker.aggregates = before
    return argument


def _refuse(checker: Expressions, node: tree.Call, argument: Expression) -> None:
    name = node.function.text
    wanted = {"sum": "numbers", "avg": "numbers", "collect": "single values or entities"}
    message = f"`{name}` takes {wanted.get(name, 'values with an order')}, not {shown(argument)}"
    checker.add("T8", node.arguments[0].span, message)


def aggregate_kind(name: str, kind: Kind) -> Kind | None:
    """What the aggregate gives; None if it does not take the kind."""
    if name == "count":
        return I64
    if name in ("sum", "avg"):
        if not is_number(kind):
            return None
        return I64 if name == "sum" and is_integer(kind) else F64
    if name in ("min", "max"):
        return kind if is_ordered(kind) else None
    if isinstance(kind, NodeKind | EdgeKind):
        return EntityListKind(kind)
    if not is_scalar(kind):
        return None
    return ListType(kind.base if isinstance(kind, ScalarType) else Base.STRING)


def _over_pattern(checker: Expressions, node: tree.Call) -> Expression | None:
    """`sum($y.p) { … }`: the argument belongs to the pattern."""
    assert node.clauses is not None
    match, scope = checker.pattern(node.clauses)
    inner = type(checker)(checker.context, scope, checker.patterns)
    argument = _argument(inner, node, 0)
    name: Any = node.function.text
    if node.is_distinct:
        checker.add("T8", node.span, "`distinct` is not known over a pattern")
        return None
    if argument is None:
        return None
    kind = aggregate_kind(name, argument.type.kind)
    if kind is None:
        _refuse(checker, node, argument)
        return None
    return PatternAggregate(name, argument, match, Type(kind, True))
