"""Owns expressions: names are resolved, operators get types, and every mismatch is reported.

A method that finds an error reports it and returns None. The enclosing expression then reports
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol, assert_never

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.findings import Help, Meant
from omnigraph.lang.gq import tree
from omnigraph.lang.gq.check import operators
from omnigraph.lang.gq.check.calls import check_call, check_case
from omnigraph.lang.gq.check.kinds import (
    BLOB,
    BOOL,
    F64,
    I64,
    NULL,
    STRING,
    TEXT,
    U64,
    is_scalar,
    item_kind,
    joined,
    kinds_together,
    shown,
)
from omnigraph.lang.gq.check.scope import Context, Known, KnownPath, Scope, report_unknown
from omnigraph.lang.gq.checked import (
    Conditional,
    Constant,
    EdgeKind,
    EntityValue,
    Exists,
    Expression,
    ItemValue,
    ListValue,
    Match,
    NodeKind,
    NullKind,
    NullTest,
    ParameterValue,
    PatternAggregate,
    PropertyValue,
    Quantified,
    SystemValue,
    Type,
    TypeTest,
)
from omnigraph.model.catalog import Property
from omnigraph.model.types import Base, EnumType, ListType, ScalarType

DEEPEST: Final = 100
"""How deeply expressions may be nested: planning and evaluation recurse as deeply."""


class PatternChecker(Protocol):
    def check(
        self, clauses: Sequence[tree.Clause], parent: Scope | None, *, is_optional: bool = False
    ) -> tuple[Match, Scope]: ...


class Expressions:
    """Checks the expressions of one scope. `aggregates` says whether aggregates are allowed."""

    def __init__(
        self,
        context: Context,
        scope: Scope,
        patterns: PatternChecker,
        *,
        aggregates: bool = False,
        ranks: bool = False,
    ) -> None:
        self.context = context
        self.scope = scope
        self.patterns = patterns
        self.aggregates = aggregates
        self.ranks = ranks
        self.items: dict[str, ItemValue] = {}

    def inside(self, scope: Scope) -> Expressions:
        """For expressions in a pattern within the expression."""
        return type(self)(self.context, scope, self.patterns)

    def add(self, code: str, span: Span, message: str, help_: Help = None) -> None:
        self.context.findings.add(code, span, message, help_)

    def check(self, node: tree.Expression, depth: int = 0) -> Expression | None:
        """A value other than a blob."""
        value = self.read(node, depth)
        if value is None or value.type.kind != BLOB or isinstance(value, ParameterValue):
            return value
        message = "a blob cannot be used as a value"
        self.add("T24", node.span, message, "blobs are read by their own call")
        return None

    def read(self, node: tree.Expression, depth: int = 0) -> Expression | None:
        """A value, which may be a blob."""
        if depth > DEEPEST:
            message = "this is nested too deeply"
            self.add("Q010", node.span, message, "split the expression or the query")
            return None
        match node:
            case tree.Constant():
                return constant(node.value)
            case tree.ListOf():
                return self._list(node, depth)
            case tree.Variable() | tree.PropertyRef() | tree.SystemRef() | tree.Bare():
                return self._reference(node)
            case tree.Call():
                return check_call(self, node, depth)
            case tree.Pattern():
                return self._pattern(node)
            case tree.Unary():
                return operators.check_unary(self, node, depth)
            case tree.Chain():
                return operators.check_chain(self, node, depth)
            case tree.Comparison():
                return operators.check_comparison(self, node, depth)
            case tree.NullTest():
                operand = self.read(node.operand, depth + 1)
                return NullTest(operand, node.is_negated, Type(BOOL)) if operand else None
            case tree.Case() | tree.ItemTest():
                return self._deciding(node, depth)
            case _:
                assert_never(node)

    # Names.

    def _reference(
        self, node: tree.Variable | tree.PropertyRef | tree.SystemRef | tree.Bare
    ) -> Expression | None:
        match node:
            case tree.Variable():
                return self._variable(node)
            case tree.PropertyRef():
                return self._property(node)
            case tree.SystemRef():
                return self.system(node)
            case tree.Bare():
                return self.bare(node)
            case _:
                assert_never(node)

    def _deciding(self, node: tree.Case | tree.ItemTest, depth: int) -> Expression | None:
        if isinstance(node, tree.Case):
            return check_case(self, node, depth)
        return self._quantified(node, depth)

    def _quantified(self, node: tree.ItemTest, depth: int) -> Expression | None:
        """The condition knows the item by its name, and nothing else does."""
        items = self.check(node.items, depth + 1)
        if items is None:
            return None
        kind = item_kind(items.type.kind)
        if kind is None:
            message = f"`{node.word}` goes through a list, and this is {shown(items)}"
            self.add("T7", node.items.span, message)
            return None
        name = node.variable.name
        taken = self.scope.find(name) or self.scope.path(name) or name in self.context.parameters
        if taken or name in self.items or node.variable.is_anonymous:
            message = f"`${name}` is already used, and an item needs its own name"
            self.add("T23", node.variable.span, message)
            return None
        may_be_null = isinstance(items, ListValue) and any(i.type.nullable for i in items.items)
        item = ItemValue(self.context.item(), name, Type(kind, may_be_null))
        aggregates, self.aggregates = self.aggregates, False
        self.items[name] = item
        condition = self.check(node.condition, depth + 1)
        del self.items[name]
        self.aggregates = aggregates
        if condition is None:
            return None
        if condition.type.kind != BOOL and not isinstance(condition.type.kind, NullKind):
            message = f"`where` takes a condition, and this is {shown(condition)}"
            self.add("T7", node.condition.span, message)
            return None
        nullable = items.type.nullable or condition.type.nullable
        return Quantified(node.word, item, items, condition, Type(BOOL, nullable))

    def _variable(self, node: tree.Variable) -> Expression | None:
        if node.name in self.items:
            return self.items[node.name]
        parameter = self.parameter(node)
        if parameter is not None:
            return parameter
        found = self.find(node)
        if found is None:
            return None
        known, may_be_null = found
        return EntityValue(known.id, Type(known.kind(self.context.names), may_be_null))

    def parameter(self, node: tree.Variable) -> ParameterValue | None:
        parameter = self.context.parameters.get(node.name)
        if parameter is None:
            return None
        self.context.used.add(node.name)
        return ParameterValue(node.name, Type(parameter.kind, parameter.nullable))

    def find(self, node: tree.Variable) -> tuple[Known, bool] | None:
        """A variable of the match, or None after an error about it."""
        if node.is_anonymous:
            self.add("T6", node.span, "`$_` stands for any node and has no value", "name it")
            return None
        found = self.scope.find(node.name)
        if found is None and node.name in self.items:
            message = f"`${node.name}` is an item of a list and has no properties"
            self.add("T6", node.span, message)
            return None
        if found is None and self.scope.path(node.name) is not None:
            name = node.name
            message = f"`${name}` is a path, which has no value of its own"
            help_ = f"ask for `nodes(${name})`, `edges(${name})` or `length(${name})`"
            self.add("T6", node.span, message, help_)
            return None
        if found is None:
            self.unknown(node)
            return None
        return None if found[0].is_broken else found

    def path(self, name: str) -> tuple[KnownPath, bool] | None:
        return self.scope.path(name)

    def unknown(self, node: tree.Variable) -> None:
        report_unknown(node.name, node.span, self.scope, self.context)

    def _property(self, node: tree.PropertyRef) -> Expression | None:
        if self.parameter(node.variable) is not None:
            message = f"`${node.variable.name}` is a parameter and has no properties"
            self.add("T6", node.span, message)
            return None
        found = self.find(node.variable)
        if found is None:
            return None
        known, may_be_null = found
        kind_ = known.kind(self.context.names)
        properties = self.properties(kind_, node.property, variable=f"${known.name}")
        if properties is None:
            return None
        kind = properties[0].type
        if any(p.type != kind for p in properties):
            kind = STRING
        nullable = may_be_null or any(p.may_be_null for p in properties)
        return PropertyValue(known.id, properties, Type(kind, nullable))

    def properties(
        self, kind: NodeKind | EdgeKind, name: tree.Name, code: str = "T6", variable: str = "$x"
    ) -> tuple[Property, ...] | None:
        """The property of each type, or None after an error."""
        found = []
        for owner in kind.types:
            prop = next((p for p in owner.properties if p.name == name.text), None)
            if prop is None:
                message = f"`{owner.name}` has no property `{name.text}`"
                self.add(
                    code, name.span, message, _help(name.text, owner.properties, kind, variable)
                )
                return None
            found.append(prop)
        kinds = {p.type for p in found}
        if len(kinds) > 1 and not all(k == STRING or isinstance(k, EnumType) for k in kinds):
            shown_ = ", ".join(f"{o.name}" for o in kind.types)
            message = f"`{name.text}` does not have the same type in {shown_}"
            self.add(code, name.span, message)
            return None
        return tuple(found)

    def system(self, node: tree.SystemRef) -> Expression | None:
        if node.variable is None:
            message = f"`@{node.column.text}` stands alone only in a mutation"
            self.add("T6", node.span, message, f"write `$x.@{node.column.text}`")
            return None
        found = self.find(node.variable)
        if found is None:
            return None
        known, may_be_null = found
        columns = ("id", "type", "src", "dst") if known.is_edge else ("id", "type")
        column: Any = node.column.text
        if column not in columns:
            message = f"there is no `@{column}` here"
            help_ = f"use {' or '.join('@' + c for c in columns)}"
            self.add("T6", node.column.span, message, help_)
            return None
        if column == "type":
            return _type_name(known.id, known.kind(self.context.names), may_be_null)
        return SystemValue(known.id, column, Type(STRING, may_be_null))

    def bare(self, node: tree.Bare) -> Expression | None:
        message = f"`{node.name.text}` alone has no meaning here"
        self.add(
            "T6", node.span, message, "write `$x.name` for a property, `$name` for a parameter"
        )
        return None

    # Lists and patterns.

    def _list(self, node: tree.ListOf, depth: int) -> Expression | None:
        items = [self.check(item, depth + 1) for item in node.items]
        held = tuple(item for item in items if item is not None)
        if len(held) < len(items):
            return None
        kind: Any = NULL
        for item, part, own in zip(held, node.items, kinds_together(held), strict=True):
            if not is_scalar(item.type.kind) and not isinstance(item.type.kind, NullKind):
                self.add("T7", part.span, f"a list cannot hold {shown(item)}")
                return None
            common = joined(kind, own)
            if common is None:
                message = f"a list holds values of one type, and this is {shown(item)}"
                self.add("T7", part.span, message)
                return None
            kind = common
        base = kind.base if isinstance(kind, ScalarType) else Base.STRING
        if all(isinstance(item, Constant) for item in held):
            values: Any = tuple(item.value for item in held if isinstance(item, Constant))
            return Constant(values, Type(ListType(base)))
        return ListValue(held, Type(ListType(base)))

    def _pattern(self, node: tree.Pattern) -> Expression | None:
        match, _ = self.pattern(node.clauses)
        if node.kind == "exists":
            return Exists(match, Type(BOOL))
        return PatternAggregate("count", None, match, Type(I64))

    def pattern(self, clauses: Sequence[tree.Clause]) -> tuple[Match, Scope]:
        return self.patterns.check(clauses, self.scope)

    # Entries of a binding.

    def entries(self, clause: tree.Binding) -> Iterator[Expression]:
        """`{ p: v }` as filters: equality or, for a list property, membership."""
        found = self.scope.find(clause.variable.name)
        anonymous = clause.variable.is_anonymous
        if anonymous or found is None or found[0].is_broken or found[0].is_edge:
            for entry in clause.entries:
                self.check(entry.value)
            return
        kind = found[0].kind(self.context.names)
        for entry in clause.entries:
            value = self.check(entry.value)
            properties = self.properties(kind, entry.name, "T2")
            if value is None or properties is None:
                continue
            target = properties[0].type if len({p.type for p in properties}) == 1 else STRING
            nullable = found[1] or any(p.may_be_null for p in properties)
            left = PropertyValue(found[0].id, properties, Type(target, nullable))
            condition = operators.equal_to(self, left, value, entry)
            if condition is not None:
                yield condition


def _type_name(variable: int, kind: NodeKind | EdgeKind, may_be_null: bool) -> Expression:
    """`$x.@type`: which of its types the entity has."""
    names = tuple(Constant(owner.name, TEXT) for owner in kind.types)
    there = NullTest(SystemValue(variable, "id", Type(STRING, may_be_null)), True, Type(BOOL))
    tests = tuple(
        TypeTest(variable, (owner,), Type(BOOL, may_be_null)) for owner in kind.types[:-1]
    )
    nothing = Constant(None, Type(NULL, True))
    return Conditional((*tests, there), names, nothing, Type(STRING, may_be_null))


def constant(value: Any) -> Constant:
    """A literal with the type that it has on its own."""
    if value is None:
        return Constant(None, Type(NULL, True))
    if isinstance(value, bool):
        return Constant(value, Type(BOOL))
    if isinstance(value, int):
        return Constant(value, Type(I64 if value < 2**63 else U64))
    return Constant(value, Type(F64) if isinstance(value, float) else TEXT)


def _help(
    name: str, properties: Sequence[Property], kind: NodeKind | EdgeKind, variable: str
) -> str | Meant:
    systems = ("id", "src", "dst") if isinstance(kind, EdgeKind) else ("id",)
    if name in systems:
        return f"write `{variable}.@{name}`"
    return Meant(name, [p.name for p in properties])
