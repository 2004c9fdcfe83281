"""Owns function calls: scalar functions, aggregates, and aggregates over a pattern."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.findings import Meant
from omnigraph.lang.gq import tree
from omnigraph.lang.gq.check import operators, searches
from omnigraph.lang.gq.check.checker import Checker
from omnigraph.lang.gq.check.functions import (
    AGGREGATES,
    COALESCE,
    FUNCTIONS,
    LENGTH,
    PATH_PARTS,
    TEXT_TESTS,
)
from omnigraph.lang.gq.check.kinds import (
    BOOL,
    DATE,
    DATETIME,
    I64,
    NULL,
    fitted,
    is_entity,
    joined,
    kinds_together,
    shown,
)
from omnigraph.lang.gq.checked import (
    Aggregate,
    Conditional,
    Constant,
    Expression,
    FunctionCall,
    Kind,
    NullKind,
    PathPart,
    PathValue,
    PatternAggregate,
    Type,
)
from omnigraph.lang.values import PATTERN_HELP, MisfitError, pattern_error
from omnigraph.model.types import Base, ListType

SCALARS: Final = (*FUNCTIONS, COALESCE, *TEXT_TESTS)
NAMES: Final = (*SCALARS, *PATH_PARTS, *AGGREGATES, *searches.FUNCTIONS)
_COUNTS: Final = ("nothing", "one value", "two values", "three values")


def check_call(checker: Checker, node: tree.Call, depth: int) -> Expression | None:
    name = node.function.text
    if name not in NAMES:
        meant = Meant(name, NAMES)
        checker.add("T6", node.function.span, f"there is no function `{name}`", meant)
        return None
    if node.clauses is not None and not _is_over_patterns(name):
        message = f"`{name}(…)` takes no pattern"
        help_ = "write `count { … }`" if name == "count" else None
        checker.add("T8", node.function.span, message, help_)
        return None
    if name in searches.FUNCTIONS:
        return searches.check_search(checker, node, depth)
    if not _is_plain(checker, node):
        return None
    if name in PATH_PARTS and (name != LENGTH or _names_path(checker, node)):
        return _of_path(checker, node, PATH_PARTS[name])
    if name in AGGREGATES:
        return _aggregate(checker, node, depth)
    if name in TEXT_TESTS:
        return _text_test(checker, node, depth)
    arguments = [checker.check(a.value, depth + 1) for a in node.arguments]
    held = [a for a in arguments if a is not None]
    return _scalar(checker, node, held) if len(held) == len(arguments) else None


def _names_path(checker: Checker, node: tree.Call) -> bool:
    """`length` is also of texts and lists."""
    given = [argument.value for argument in node.arguments]
    return any(isinstance(one, tree.Variable) and checker.path(one.name) for one in given)


def _of_path(checker: Checker, node: tree.Call, part: PathPart) -> Expression | None:
    name = node.function.text
    given = node.arguments[0].value if len(node.arguments) == 1 else None
    found = checker.path(given.name) if isinstance(given, tree.Variable) else None
    if found is None:
        message = f"`{name}` takes a path"
        checker.add("T7", node.span, message, "name one: `$p = $a knows{1,3} $b`")
        return None
    path, may_be_null = found
    if path.traversal is None:  # its mistake was told
        return None
    kind = I64 if part == "length" else ListType(Base.STRING)
    return PathValue(path.traversal, part, path.every, Type(kind, may_be_null))


def _is_plain(checker: Checker, node: tree.Call) -> bool:
    """Named arguments and `distinct` are allowed only where they have a meaning."""
    named = next((a.name for a in node.arguments if a.name is not None), None)
    if named is not None:
        message = f"`{node.function.text}` has no argument named `{named.text}`"
        checker.add("T7", named.span, message)
        return False
    if node.is_distinct and node.function.text not in AGGREGATES:
        checker.add("T7", node.span, f"`{node.function.text}` takes no `distinct`")
        return False
    return True


def _scalar(checker: Checker, node: tree.Call, arguments: list[Expression]) -> Expression | None:
    name = node.function.text
    if name == COALESCE:
        return _coalesce(checker, node, arguments)
    row = FUNCTIONS[name]
    least = len(row.takes) - row.optional
    if not least <= len(arguments) <= len(row.takes):
        given = f", and {len(arguments)} are given" if row.takes else ""
        takes = " or ".join(_COUNTS[count] for count in range(least, len(row.takes) + 1))
        checker.add("T7", node.span, f"`{name}` takes {takes}{given}")
        return None
    kinds = [argument.type.kind for argument in arguments]
    for argument, taken, written in zip(arguments, row.takes, node.arguments, strict=False):
        kind = argument.type.kind
        if not taken.fits(kind) and not isinstance(kind, NullKind):
            message = f"`{name}` takes {taken.words}, not {shown(argument)}"
            checker.add("T7", written.span, message)
            return None
    if name in ("date", "datetime") and isinstance(arguments[0], Constant):
        return _moment(checker, node, arguments[0])
    if name == "matches" and isinstance(arguments[1], Constant):
        return _matched(checker, node, arguments, arguments[1])
    nullable = any(argument.type.nullable for argument in arguments)
    return FunctionCall(name, tuple(arguments), Type(row.gives(kinds), nullable))


def _is_over_patterns(name: str) -> bool:
    return name in AGGREGATES and AGGREGATES[name].over_patterns


def _moment(checker: Checker, node: tree.Call, argument: Constant) -> Expression | None:
    """A literal in `date("…")` is converted at once."""
    kind = DATE if node.function.text == "date" else DATETIME
    if not isinstance(argument.value, str):
        return FunctionCall(node.function.text, (argument,), Type(kind, argument.type.nullable))
    try:
        return fitted(argument.value, kind)
    except MisfitError as error:
        message = f'"{argument.value}" does not fit {shown(Type(kind))}: {error}'
        checker.add("T3", node.arguments[0].span, message)
        return None


def _text_test(checker: Checker, node: tree.Call, depth: int) -> Expression | None:
    """`contains(a, b)` is `a contains b`."""
    name = node.function.text
    if len(node.arguments) != 2:
        given = len(node.arguments)
        checker.add("T7", node.span, f"`{name}` takes two values, and {given} are given")
        return None
    text, part = (argument.value for argument in node.arguments)
    return operators.check_comparison(checker, tree.Comparison(name, text, part, node.span), depth)


def _matched(
    checker: Checker, node: tree.Call, arguments: list[Expression], pattern: Constant
) -> Expression | None:
    """`matches(…)` with a literal pattern, which is read at once."""
    wrong = pattern_error(pattern.value) if isinstance(pattern.value, str) else None
    if wrong is not None:
        message = f"the pattern is not a regular expression: {wrong}"
        checker.add("T3", node.arguments[1].span, message, PATTERN_HELP)
        return None
    nullable = any(argument.type.nullable for argument in arguments)
    return FunctionCall("matches", tuple(arguments), Type(BOOL, nullable))


def check_case(checker: Checker, node: tree.Case, depth: int) -> Expression | None:
    """All results have one type; without `else` the last one is null."""
    conditions = [checker.check(branch.condition, depth + 1) for branch in node.branches]
    written = [branch.result for branch in node.branches]
    results = [checker.check(result, depth + 1) for result in written]
    if node.otherwise is not None:
        written.append(node.otherwise)
        results.append(checker.check(node.otherwise, depth + 1))
    else:
        results.append(Constant(None, Type(NULL, True)))
    if any(value is None for value in (*conditions, *results)):
        return None
    tests = [value for value in conditions if value is not None]
    values = [value for value in results if value is not None]
    for test, branch in zip(tests, node.branches, strict=True):
        if test.type.kind != BOOL and not isinstance(test.type.kind, NullKind):
            message = f"`when` takes a condition, and this is {shown(test)}"
            checker.add("T7", branch.condition.span, message)
            return None
    kind = _common_kind(checker, "case", values, [result.span for result in written])
    if kind is None:
        return None
    nullable = any(value.type.nullable for value in values)
    return Conditional(tuple(tests), tuple(values[:-1]), values[-1], Type(kind, nullable))


def _common_kind(
    checker: Checker, name: str, values: Sequence[Expression], spans: Sequence[Span]
) -> Kind | None:
    kind: Kind = NullKind()
    for value, mine, span in zip(values, kinds_together(values), spans, strict=False):
        common = joined(kind, mine)
        if common is None or is_entity(value.type.kind):
            message = f"`{name}` takes values of one type, and this is {shown(value)}"
            checker.add("T7", span, message)
            return None
        kind = common
    return kind


def _coalesce(checker: Checker, node: tree.Call, arguments: list[Expression]) -> Expression | None:
    if not arguments:
        checker.add("T7", node.span, "`coalesce` takes at least one value")
        return None
    kind = _common_kind(checker, COALESCE, arguments, [one.span for one in node.arguments])
    if kind is None:
        return None
    nullable = all(argument.type.nullable for argument in arguments)
    return FunctionCall(COALESCE, tuple(arguments), Type(kind, nullable))


def _aggregate(checker: Checker, node: tree.Call, depth: int) -> Expression | None:
    if node.clauses is not None:
        return _over_pattern(checker, node)
    name = node.function.text
    if not checker.aggregates:
        message = f"`{name}` gathers rows, and here is only one"
        checker.add("T8", node.span, message, "aggregates stand in `return`, and not in each other")
        return None
    argument = _argument(checker, node, depth)
    kind = _gathered(checker, node, argument)
    if argument is None or kind is None:
        return None
    return Aggregate(name, argument, node.is_distinct, Type(kind, AGGREGATES[name].nullable))


def _argument(checker: Checker, node: tree.Call, depth: int) -> Expression | None:
    if len(node.arguments) != 1:
        name = node.function.text
        message = f"`{name}` takes one value, and {len(node.arguments)} are given"
        checker.add("T8", node.span, message)
        return None
    before, checker.aggregates = checker.aggregates, False
    argument = checker.check(node.arguments[0].value, depth + 1)
    checker.aggregates = before
    return argument


def _gathered(checker: Checker, node: tree.Call, argument: Expression | None) -> Kind | None:
    """What an aggregate makes of its argument, if it takes it."""
    if argument is None:
        return None
    name = node.function.text
    kind = AGGREGATES[name].gives(argument.type.kind)
    if kind is None:
        message = f"`{name}` takes {AGGREGATES[name].words}, not {shown(argument)}"
        checker.add("T8", node.arguments[0].span, message)
    return kind


def _over_pattern(checker: Checker, node: tree.Call) -> Expression | None:
    """`sum($y.p) { … }`: the argument belongs to the pattern."""
    assert node.clauses is not None
    match, scope = checker.pattern(node.clauses)
    argument = _argument(checker.inside(scope), node, 0)
    name = node.function.text
    if node.is_distinct:
        checker.add("T8", node.span, "`distinct` is not known over a pattern")
        return None
    kind = _gathered(checker, node, argument)
    if argument is None or kind is None:
        return None
    return PatternAggregate(name, argument, match, Type(kind, True))
