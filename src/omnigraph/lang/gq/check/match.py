"""Owns patterns: clauses become a checked match, with the scopes of its blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnigraph.lang.findings import Meant
from omnigraph.lang.gq import tree
from omnigraph.lang.gq.check.expressions import Expressions
from omnigraph.lang.gq.check.kinds import BOOL, shown
from omnigraph.lang.gq.check.scope import Context, Known, KnownPath, Scope
from omnigraph.lang.gq.check.traversals import Open, resolve
from omnigraph.lang.gq.checked import Exists, Expression, Match, Not, NullKind, Type, TypeTest
from omnigraph.lang.gq.walk import used_variables


class Patterns:
    """Checks the patterns of one query."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def check(
        self, clauses: Sequence[tree.Clause], parent: Scope | None, *, is_optional: bool = False
    ) -> tuple[Match, Scope]:
        scope = Scope(parent, is_optional=is_optional)
        open_ = self._introduce(clauses, scope)
        outer = _outer_ids(scope)
        traversals = resolve(open_, outer, self.context)
        for one in open_:
            if one.node.path is not None and (path := scope.paths.get(one.node.path.variable.name)):
                path.traversal = one.found
        for known in (*scope.own.values(), *scope.anonymous):
            # Its types are unknown only after an error, which has been reported.
            known.is_broken |= not known.edges if known.is_edge else known.types is None
        optionals = list(self._optionals(clauses, scope))
        filters = list(self._filters(clauses, scope))
        late = frozenset(known.id for known in scope.optional.values())
        own = (*scope.own.values(), *scope.anonymous)
        match = Match(
            variables=tuple(known.variable(self.context.names) for known in own),
            outer=(),
            traversals=tuple(traversals),
            filters=tuple(f for f in filters if not used_variables(f) & late),
            optionals=tuple(optionals),
            late_filters=tuple(f for f in filters if used_variables(f) & late),
        )
        return _with_outer(match), scope

    # Variables.

    def _introduce(self, clauses: Sequence[tree.Clause], scope: Scope) -> list[Open]:
        """Bindings come first, because they declare variables; then the ends of traversals."""
        for clause in clauses:
            if isinstance(clause, tree.Binding):
                self._bind(clause, scope)
        optional = _optional_names(clauses, scope)
        found = []
        for clause in clauses:
            if isinstance(clause, tree.Traversal):
                source = self._end(clause.source, scope, optional)
                target = self._end(clause.target, scope, optional)
                edge = self._edge(clause.edge, scope) if clause.edge else None
                if clause.path is not None:
                    self._path(clause, clause.path, scope)
                if source is not None and target is not None:
                    found.append(Open(clause, source, target, edge))
        return found

    def _bind(self, clause: tree.Binding, scope: Scope) -> None:
        known = self._node(clause.variable, scope)
        types = self._types(clause.type)
        if known is None:
            return
        known.is_declared = True
        if types is None:
            known.is_broken = True
            return
        narrowed = types if known.types is None else known.types & types
        if not narrowed and known.types:
            was = "|".join(sorted(known.types))
            message = (
                f"`${clause.variable.name}` is a `{was}` and cannot also be a `{clause.type.text}`"
            )
            self.context.findings.add("T5", clause.span, message)
            known.is_broken = known.is_broken or clause.variable.name in scope.own
        elif known.name is None or known.name in scope.own:
            known.types = narrowed

    def _types(self, name: tree.Name) -> frozenset[str] | None:
        names = self.context.names
        nodes = names.nodes(name.text)
        if nodes:
            return frozenset(node.name for node in nodes)
        if nodes is not None:
            message = f"no node type implements `{name.text}`"
            self.context.findings.add("T1", name.span, message)
            return None
        help_: str | Meant = Meant(name.text, names.matchable)
        if name.text in names.catalog.edge_names:
            help_ = (
                f"edges are bound by a traversal: `$a $e:{name.text[0].lower()}{name.text[1:]} $b`"
            )
        self.context.findings.add("T1", name.span, f"there is no node type `{name.text}`", help_)
        return None

    def _node(self, variable: tree.Variable, scope: Scope) -> Known | None:
        """The variable as a node of this pattern, new or known, or None after an error."""
        findings = self.context.findings
        if variable.is_anonymous:
            known = self.context.known(None, variable.span)
            scope.anonymous.append(known)
            known.is_optional = scope.is_optional
            return known
        if variable.name in self.context.parameters:
            message = f"`${variable.name}` is a parameter and cannot be bound"
            findings.add("T5", variable.span, message, "use another name")
            return None
        if scope.path(variable.name) is not None:
            message = f"`${variable.name}` is a path, and a node is needed here"
            findings.add("T23", variable.span, message)
            return None
        found = scope.find(variable.name)
        if found is None:
            known = scope.own[variable.name] = self.context.known(variable.name, variable.span)
            known.is_optional = scope.is_optional
            return known
        if found[0].is_edge:
            message = f"`${variable.name}` is an edge, and a node is needed here"
            findings.add("T23", variable.span, message)
            return None
        return found[0]

    def _end(self, variable: tree.Variable, scope: Scope, optional: frozenset[str]) -> Known | None:
        found = None if variable.is_anonymous else scope.find(variable.name)
        may_be_null = found is not None and found[1] and not scope.is_optional
        if may_be_null or (found is None and variable.name in optional):
            message = f"`${variable.name}` is bound in an optional block and may be null here"
            help_ = "put the traversal into a later optional block"
            self.context.findings.add("T6", variable.span, message, help_)
            return None
        return self._node(variable, scope)

    def _edge(self, variable: tree.Variable, scope: Scope) -> Known | None:
        known = self.context.known(variable.name, variable.span, is_edge=True)
        known.is_optional = scope.is_optional
        if variable.is_anonymous:
            known.name = None
            scope.anonymous.append(known)
            return known
        is_parameter = variable.name in self.context.parameters
        if is_parameter or scope.find(variable.name) is not None:
            message = f"`${variable.name}` is already used, and an edge variable needs its own name"
            self.context.findings.add("T23", variable.span, message)
            return None
        scope.own[variable.name] = known
        return known

    def _path(self, clause: tree.Traversal, path: tree.PathName, scope: Scope) -> None:
        name, findings = path.variable.name, self.context.findings
        if clause.edge is not None:
            message = f"the edges of a path are `edges(${name})`, so it takes no edge variable"
            findings.add("T23", clause.edge.span, message)
        for end in (clause.source, clause.target):
            if end.is_anonymous:  # else rows that differ by their ways would have no order
                findings.add("T23", end.span, "a path goes between ends that have names", "name it")
        taken = scope.find(name) is not None or scope.path(name) is not None
        if taken or name in self.context.parameters or path.variable.is_anonymous:
            message = f"`${name}` is already used, and a path needs its own name"
            findings.add("T23", path.span, message)
        else:
            scope.paths[name] = KnownPath(path.is_every)

    # Blocks and filters.

    def _optionals(self, clauses: Sequence[tree.Clause], scope: Scope) -> Iterator[Match]:
        for clause in clauses:
            if isinstance(clause, tree.Block) and clause.kind == "optional":
                match, inner = self.check(clause.clauses, scope, is_optional=True)
                scope.optional.update(inner.own)
                scope.optional.update(inner.optional)
                scope.optional_paths |= inner.paths | inner.optional_paths
                yield match

    def _filters(self, clauses: Sequence[tree.Clause], scope: Scope) -> Iterator[Expression]:
        expressions = Expressions(self.context, scope, self)
        for clause in clauses:
            if isinstance(clause, tree.Binding):
                yield from self._type_test(clause, scope)
                yield from expressions.entries(clause)
            elif isinstance(clause, tree.Filter):
                condition = self._condition(clause.condition, expressions)
                if condition is not None:
                    yield condition
            elif isinstance(clause, tree.Block) and clause.kind == "not":
                match, _ = self.check(clause.clauses, scope)
                yield Not(Exists(match, Type(BOOL)), Type(BOOL))

    def _type_test(self, clause: tree.Binding, scope: Scope) -> Iterator[Expression]:
        """A binding of an outer variable only tests its type here; outside, the type stays."""
        name = clause.variable.name
        found = scope.find(name)
        nodes = self.context.names.nodes(clause.type.text)
        if name not in scope.own and found is not None and nodes and not found[0].is_edge:
            yield TypeTest(found[0].id, nodes, Type(BOOL, found[1]))

    def _condition(self, node: tree.Expression, expressions: Expressions) -> Expression | None:
        condition = expressions.check(node)
        if condition is None:
            return None
        if isinstance(node, tree.Variable):
            message = "a variable alone is no filter"
            help_ = f"write `${node.name} = true`"
            self.context.findings.add("T7", node.span, message, help_)
            return None
        if condition.type.kind != BOOL and not isinstance(condition.type.kind, NullKind):
            message = f"a filter is a Bool, and this is {shown(condition)}"
            self.context.findings.add("T7", node.span, message)
            return None
        return condition


def _optional_names(clauses: Sequence[tree.Clause], scope: Scope) -> frozenset[str]:
    """Variables that occur in an optional block before any required clause."""
    seen: set[str] = set(scope.names())
    found: set[str] = set()
    for clause in clauses:
        if isinstance(clause, tree.Traversal):
            seen |= {clause.source.name, clause.target.name}
        elif isinstance(clause, tree.Block) and clause.kind == "optional":
            found |= _names_in(clause.clauses) - seen
    return frozenset(found)


def _names_in(clauses: Sequence[tree.Clause]) -> set[str]:
    names: set[str] = set()
    for clause in clauses:
        if isinstance(clause, tree.Binding):
            names.add(clause.variable.name)
        elif isinstance(clause, tree.Traversal):
            names |= {clause.source.name, clause.target.name}
        elif isinstance(clause, tree.Block) and clause.kind == "optional":
            names |= _names_in(clause.clauses)
    return names - {"_"}


def _outer_ids(scope: Scope) -> frozenset[int]:
    found: set[int] = set()
    parent = scope.parent
    while parent is not None:
        found.update(known.id for known in (*parent.own.values(), *parent.optional.values()))
        parent = parent.parent
    return frozenset(found)


def _with_outer(match: Match) -> Match:
    own = {variable.id for variable in match.variables}
    used: set[int] = set()
    for traversal in match.traversals:
        used |= {traversal.source, traversal.target}
    for optional in match.optionals:
        own |= {variable.id for variable in optional.variables}
        used.update(optional.outer)
    for condition in (*match.filters, *match.late_filters):
        used |= used_variables(condition)
    return Match(
        match.variables,
        tuple(sorted(used - own)),
        match.traversals,
        match.filters,
        match.optionals,
        match.late_filters,
    )
