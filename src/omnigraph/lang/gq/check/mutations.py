"""Owns the static rules of insert, update and delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.findings import Meant
from omnigraph.lang.gq import tree
from omnigraph.lang.gq.check.expressions import Expressions
from omnigraph.lang.gq.check.kinds import BLOB, BOOL, STRING, accepts, fitted, is_text, shown
from omnigraph.lang.gq.check.scope import Context, Scope, meant_variable
from omnigraph.lang.gq.checked import (
    Constant,
    Delete,
    Expression,
    InsertEdge,
    InsertNode,
    Match,
    Mutation,
    NullKind,
    RowProperty,
    RowSystem,
    SetProperty,
    Type,
    Update,
)
from omnigraph.lang.values import MisfitError
from omnigraph.model.catalog import EdgeType, NodeType, Property

_ENDS = {"from": "src", "to": "dst"}
_INSTEAD = "delete and insert instead"


def check_mutation(node: tree.Mutation, context: Context) -> Mutation | None:
    """None after an error."""
    before = len(context.findings.diagnostics)
    kind = _type(node.type, context)
    checked: Mutation | None
    match node:
        case tree.Insert():
            values = _Values(node.assignments, kind, context, reads_row=False)
            checked = _insert(node, kind, values)
        case tree.Update():
            values = _Values(node.assignments, kind, context, reads_row=True)
            values.refuse_fixed()
            where = _where(node.where, kind, context)
            checked = Update(kind, tuple(values.set), where) if kind and where else None
        case tree.Delete():
            where = _where(node.where, kind, context)
            checked = Delete(kind, where) if kind and where else None
        case _:
            assert_never(node)
    return checked if len(context.findings.diagnostics) == before else None


def _type(name: tree.Name, context: Context) -> NodeType | EdgeType | None:
    catalog = context.names.catalog
    kind = catalog.node_names.get(name.text) or catalog.edge_names.get(name.text)
    if kind is not None:
        return kind
    help_: str | Meant = Meant(name.text, [t.name for t in catalog.types])
    if name.text in context.names.interfaces:
        help_ = "an interface has no entities of its own: name a type that implements it"
    context.findings.add("T10", name.span, f"there is no type `{name.text}`", help_)
    return None


class _RowExpressions(Expressions):
    """In a mutation, a name on its own is a property of the entity, and there are no patterns."""

    row: NodeType | EdgeType | None = None
    reads_row = True

    def unknown(self, node: tree.Variable) -> None:
        message = f"`${node.name}` is not a declared parameter"
        help_ = meant_variable(node.name, list(self.context.parameters))
        self.add("T14", node.span, message, help_)

    def bare(self, node: tree.Bare) -> Expression | None:
        if self.row is None:
            return None
        name = node.name.text
        if not self.reads_row:
            message = f"`{name}` alone has no meaning here"
            self.add("T6", node.span, message, f"write a value, or `${name}` for a parameter")
            return None
        column: Any = _ENDS.get(name)
        if column is not None and isinstance(self.row, EdgeType):
            return RowSystem(column, Type(STRING))
        prop = next((p for p in self.row.properties if p.name == name), None)
        if prop is None:
            help_: str | Meant = Meant(name, [p.name for p in self.row.properties])
            if name in ("id", "src", "dst"):
                help_ = f"write `@{name}`"
            message = f"`{self.row.name}` has no property `{name}`"
            self.add("T11", node.span, message, help_)
            return None
        return RowProperty(prop, Type(prop.type, prop.may_be_null))

    def system(self, node: tree.SystemRef) -> Expression | None:
        column: Any = node.column.text
        if node.variable is not None:
            self.unknown(node.variable)
            return None
        if self.row is None:
            return None
        columns = ("id", "src", "dst") if isinstance(self.row, EdgeType) else ("id",)
        if column not in columns or not self.reads_row:
            self.add("T11", node.span, f"there is no `@{column}` here")
            return None
        return RowSystem(column, Type(STRING))

    def pattern(self, clauses: Sequence[tree.Clause]) -> tuple[Match, Scope]:
        if clauses:
            span = Span(clauses[0].span.start, clauses[-1].span.end)
            self.add("T7", span, "a pattern cannot stand in a mutation")
        return Match((), (), (), (), (), ()), Scope()


class _NoPatterns:
    def check(
        self, clauses: Sequence[tree.Clause], parent: Scope | None, *, is_optional: bool = False
    ) -> tuple[Match, Scope]:
        raise AssertionError("mutations have no patterns")


def _expressions(
    kind: NodeType | EdgeType | None, context: Context, *, reads_row: bool
) -> _RowExpressions:
    expressions = _RowExpressions(context, Scope(), _NoPatterns())
    expressions.row = kind
    expressions.reads_row = reads_row
    return expressions


def _where(
    node: tree.Expression, kind: NodeType | EdgeType | None, context: Context
) -> Expression | None:
    condition = _expressions(kind, context, reads_row=True).check(node)
    if condition is None or condition.type.kind == BOOL:
        return condition
    if isinstance(condition.type.kind, NullKind):
        return condition
    message = f"`where` takes a Bool, and this is {shown(condition)}"
    context.findings.add("T7", node.span, message)
    return None


class _Values:
    """The assignments of one statement: the properties, and the ends of an edge."""

    def __init__(
        self,
        assignments: Sequence[tree.Assignment],
        kind: NodeType | EdgeType | None,
        context: Context,
        *,
        reads_row: bool,
    ) -> None:
        self.kind = kind
        self.context = context
        self.set: list[SetProperty] = []
        self.ends: dict[str, Expression | None] = {}
        self.given: dict[str, tree.Assignment] = {}
        self._expressions = _expressions(kind, context, reads_row=reads_row)
        for assignment in assignments:
            self._assign(assignment)

    def _assign(self, node: tree.Assignment) -> None:
        name = node.name.text
        value = self._expressions.check(node.value)
        if name in self.given:
            self.context.findings.add("T13", node.name.span, f"`{name}` is already set")
            return
        self.given[name] = node
        if self.kind is None:
            return
        if isinstance(self.kind, EdgeType) and name in _ENDS:
            self.ends[name] = self._end(node, value)
            return
        prop = next((p for p in self.kind.properties if p.name == name), None)
        if prop is None:
            self._unknown(node.name)
        elif value is not None:
            fitting = self._fit(prop, value, node)
            if fitting is not None:
                self.set.append(SetProperty(prop, fitting))

    def _unknown(self, name: tree.Name) -> None:
        assert self.kind is not None
        help_: str | Meant = Meant(name.text, [p.name for p in self.kind.properties])
        if name.text in ("src", "dst") and isinstance(self.kind, EdgeType):
            help_ = "the ends of an edge are `from:` and `to:`"
        elif name.text == "id":
            help_ = "ids come from keys and cannot be set"
        message = f"`{self.kind.name}` has no property `{name.text}`"
        self.context.findings.add("T11", name.span, message, help_)

    def _end(self, node: tree.Assignment, value: Expression | None) -> Expression | None:
        if value is not None and not is_text(value.type.kind):
            message = (
                f"`{node.name.text}` is the id of a node, a String, and this is {shown(value)}"
            )
            self.context.findings.add("T3", node.value.span, message)
            return None
        return value

    def _fit(self, prop: Property, value: Expression, node: tree.Assignment) -> Expression | None:
        target = shown(Type(prop.type))
        message = f"`{prop.name}` is {target}, and this is {shown(value)}"
        if isinstance(value.type.kind, NullKind):
            if prop.nullable:
                return value
            message = f"`{prop.name}` is never null"
        elif isinstance(value, Constant) and prop.type != BLOB:
            raw = node.value.value if isinstance(node.value, tree.Constant) else value.value
            try:
                return fitted(raw, prop.type)  # type: ignore[arg-type]
            except (MisfitError, TypeError) as error:
                if accepts(prop.type, value.type.kind) and not isinstance(error, MisfitError):
                    return value
                if prop.type == value.type.kind and not isinstance(value.value, str | int | float):
                    return value
                message = f"the value does not fit `{prop.name}`, {target}: {error}"
        elif accepts(prop.type, value.type.kind):
            return value
        self.context.findings.add("T3", node.value.span, message)
        return None

    def refuse_fixed(self) -> None:
        """Keys and ends determine the id, which an update cannot change."""
        if self.kind is None:
            return
        for name, node in self.given.items():
            if name in self.kind.key:
                message = f"`{name}` is part of the key of `{self.kind.name}` and cannot be set"
                self.context.findings.add("T11", node.name.span, message, _INSTEAD)
            elif name in _ENDS and isinstance(self.kind, EdgeType):
                message = "the ends of an edge cannot be set"
                moves = self.kind.key and _ENDS[name] not in self.kind.key
                help_ = "insert the edge again, which moves it" if moves else _INSTEAD
                self.context.findings.add("T11", node.name.span, message, help_)


def _insert(
    node: tree.Insert, kind: NodeType | EdgeType | None, values: _Values
) -> InsertNode | InsertEdge | None:
    if kind is None:
        return None
    missing = [name for name in _required(kind) if name not in values.given]
    missing = [name for name in missing if not _is_embedded(kind, name, values.given)]
    if missing:
        shown_ = ", ".join(f"`{name}`" for name in missing)
        message = f"`{kind.name}` needs {shown_}"
        values.context.findings.add("T12", node.type.span, message)
    if isinstance(kind, NodeType):
        return InsertNode(kind, tuple(values.set))
    source, target = values.ends.get("from"), values.ends.get("to")
    if source is None or target is None:
        return None
    return InsertEdge(kind, source, target, tuple(values.set))


def _required(kind: NodeType | EdgeType) -> list[str]:
    ends = list(_ENDS) if isinstance(kind, EdgeType) else []
    return ends + [p.name for p in kind.properties if not p.nullable and p.default is None]


def _is_embedded(kind: NodeType | EdgeType, name: str, given: dict[str, tree.Assignment]) -> bool:
    """Whether a vector is made from its source, if that is given."""
    prop = next((p for p in kind.properties if p.name == name), None)
    return prop is not None and prop.embed is not None and prop.embed.source in given
