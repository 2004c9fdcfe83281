"""Owns how each grammar rule becomes a node of the tree. It decides nothing and never fails.

The methods are named after the rules in gq.lark; the parser calls them as it reduces.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.gq import tree
from omnigraph.lang.tokens import Token, integer_value, string_value
from omnigraph.lang.tree_building import Children
from omnigraph.lang.tree_building import all_of as _all
from omnigraph.lang.tree_building import item_span as _item_span
from omnigraph.lang.tree_building import span_of as _span
from omnigraph.model.schema import Atom

_CONSTANTS: dict[str, Atom] = {"TRUE": True, "FALSE": False, "NULL": None}


class _Clauses:
    """Clauses in braces, until the node that contains them is built."""

    def __init__(self, children: Children) -> None:
        self.clauses = tuple(children[1:-1])
        self.span = _span(children)


class _Parameters:
    def __init__(self, children: Children) -> None:
        self.all = _all(children, tree.Parameter)
        self.span = _span(children)


class _Body:
    """The contents of the braces of a query. `parts` may contain a Wreck."""

    def __init__(self, children: Children) -> None:
        self.parts: Children = [child for child in children if type(child) is not Token]
        self.is_broken = any(type(c) is Token and c.type == "BROKEN" for c in children)
        self.span = _span(children)


def _has(children: Children, terminal: str) -> bool:
    return any(type(child) is Token and child.type == terminal for child in children)


def _of(token: Token) -> Span:
    return Span(token.start, token.end)


def _name(token: Token) -> tree.Name:
    return tree.Name(token.text, _of(token))


def _variable(token: Token) -> tree.Variable:
    return tree.Variable(token.text[1:], _of(token))


def _atom(token: Token) -> Atom:
    if token.type == "STRING":
        return string_value(token.text)
    if token.type == "INTEGER":
        return integer_value(token.text)
    return float(token.text) if token.type == "FLOAT" else _CONSTANTS[token.type]


def _wrecked(clauses: tuple[object, ...]) -> bool:
    return any(type(clause) is tree.Wreck for clause in clauses)


class ExpressionBuilder:
    def chain(self, children: Children) -> Any:
        """A single operand stands for itself."""
        if len(children) == 1:
            return children[0]
        operators = tuple([token.text for token in children[1::2]])
        return tree.Chain(operators, tuple(children[::2]), _span(children))

    expression = conjunction = sum = product = chain

    def same(self, children: Children) -> Any:
        return children[0]

    negation = comparison = unary = atom = same

    def not_expression(self, children: Children) -> tree.Unary:
        return tree.Unary("not", children[1], _span(children))

    def negation_of(self, children: Children) -> tree.Unary:
        return tree.Unary("-", children[1], _span(children))

    def parenthesised(self, children: Children) -> Any:
        """The span includes the parentheses, so that the spans of outer nodes are right too."""
        return msgspec.structs.replace(children[1], span=_span(children))

    def compared(self, children: Children) -> tree.Comparison:
        left, operator, right = children
        return tree.Comparison(operator.text, left, right, _span(children))

    def null_test(self, children: Children) -> tree.NullTest:
        return tree.NullTest(children[0], _has(children[1:], "NOT"), _span(children))

    def constant(self, children: Children) -> tree.Constant:
        return tree.Constant(_atom(children[0]), _of(children[0]))

    def list(self, children: Children) -> tree.ListOf:
        items = tuple(child for child in children if type(child) is not Token)
        return tree.ListOf(items, _span(children))

    def variable(self, children: Children) -> tree.Variable:
        return _variable(children[0])

    def property(self, children: Children) -> tree.PropertyRef:
        return tree.PropertyRef(_variable(children[0]), children[2], _span(children))

    def system(self, children: Children) -> tree.SystemRef:
        return tree.SystemRef(_variable(children[0]), _name(children[3]), _span(children))

    def bare(self, children: Children) -> tree.Bare:
        return tree.Bare(_name(children[0]), _of(children[0]))

    def bare_system(self, children: Children) -> tree.SystemRef:
        return tree.SystemRef(None, _name(children[1]), _span(children))

    reference = same

    def call(self, children: Children) -> tree.Call:
        blocks = _all(children, _Clauses)
        return tree.Call(
            _name(children[0]),
            _all(children, tree.Argument),
            _has(children, "DISTINCT"),
            blocks[0].clauses if blocks else None,
            _span(children),
        )

    def argument(self, children: Children) -> tree.Argument:
        return tree.Argument(children[0], None, children[0].span)

    def named_argument(self, children: Children) -> tree.Argument:
        return tree.Argument(children[2], _name(children[0]), _span(children))

    def pattern(self, children: Children) -> tree.Pattern:
        kind: Any = children[0].text
        return tree.Pattern(kind, children[1].clauses, _span(children))

    def case(self, children: Children) -> tree.Case:
        otherwise = children[-2] if _has(children[-3:-2], "ELSE") else None
        return tree.Case(_all(children, tree.When), otherwise, _span(children))

    def quantified(self, children: Children) -> tree.ItemTest:
        word: Any = children[0].text
        variable, items, condition = _variable(children[2]), children[4], children[6]
        return tree.ItemTest(word, variable, items, condition, _span(children))

    def branch_of_case(self, children: Children) -> tree.When:
        return tree.When(children[1], children[3], _span(children))

    def word(self, children: Children) -> tree.Name:
        return _name(children[0])


class ClauseBuilder:
    def clauses(self, children: Children) -> _Clauses:
        return _Clauses(children)

    def binding(self, children: Children) -> tree.Binding:
        entries = children[3] if len(children) == 4 else None
        return tree.Binding(
            _variable(children[0]),
            children[2],
            entries.all if entries else (),
            _span(children),
        )

    def record(self, children: Children) -> _Entries:
        return _Entries(children)

    def entry(self, children: Children) -> tree.Assignment:
        return tree.Assignment(_name(children[0]), children[2], _item_span(children))

    assignment = entry

    def traversal(self, children: Children) -> tree.Traversal:
        edge = _variable(children[1]) if type(children[1]) is Token else None
        bounds = _all(children, tree.Bounds)
        return tree.Traversal(
            _variable(children[0]),
            edge,
            _all(children, tree.Hop)[0],
            bounds[0] if bounds else None,
            _variable(children[-1]),
            _span(children),
        )

    def hop(self, children: Children) -> tree.Hop:
        return tree.Hop(_all(children, tree.Name), False, _span(children))

    hops = every_hop = hop

    def undirected_hops(self, children: Children) -> tree.Hop:
        return tree.Hop(_all(children, tree.Name), True, _span(children))

    every_undirected_hop = undirected_hops

    def path(self, children: Children) -> tree.Traversal:
        name = tree.PathName(_variable(children[0]), _has(children, "ALL"), _of(children[0]))
        traversal: tree.Traversal = children[-1]
        return msgspec.structs.replace(traversal, path=name, span=_span(children))

    def bounds(self, children: Children) -> tree.Bounds:
        numbers = [integer_value(c.text) for c in children if c.type == "INTEGER"]
        is_open = _has(children, "COMMA") and len(numbers) == 1
        return tree.Bounds(numbers[0], None if is_open else numbers[-1], _span(children))

    def negated(self, children: Children) -> tree.Block:
        return tree.Block("not", children[1].clauses, _span(children))

    def optional(self, children: Children) -> tree.Block:
        return tree.Block("optional", children[1].clauses, _span(children))

    def filter(self, children: Children) -> tree.Filter:
        return tree.Filter(children[0], children[0].span)

    def wreck(self, children: Children) -> tree.Wreck:
        return tree.Wreck(_span(children))


class BodyBuilder:
    def part(self, children: Children) -> tree.Read:
        return tree.Read(
            children[1].clauses,
            _has(children, "DISTINCT"),
            _all(children, tree.Projection),
            (),
            (),
            _span(children),
        )

    def read(self, children: Children) -> tree.Read:
        if len(children) == 1:
            return children[0]  # type: ignore[no-any-return]
        orders, parts = _all(children, _Keys), _all(children, tree.Read)
        return msgspec.structs.replace(
            parts[0],
            order=orders[0].all if orders else (),
            amounts=_all(children, tree.Amount),
            span=_span(children),
            others=parts[1:],
            unions=tuple(_is(b, "ALL") for a, b in pairwise(children) if _is(a, "UNION")),
        )

    def projection(self, children: Children) -> tree.Projection:
        alias = _name(children[2]) if _has(children[1:2], "AS") else None
        return tree.Projection(children[0], alias, _item_span(children))

    def order(self, children: Children) -> _Keys:
        return _Keys(children)

    def key(self, children: Children) -> tree.Key:
        said = _has(children[1:], "DESC") if len(children) > 1 else None
        return tree.Key(children[0], said, _span(children))

    def limit(self, children: Children) -> tree.Amount:
        token = children[1]
        value = integer_value(token.text) if token.type == "INTEGER" else _variable(token)
        return tree.Amount(children[0].text, value, _span(children))

    offset = limit

    def mutation(self, children: Children) -> Any:
        return children[0]

    def insert(self, children: Children) -> tree.Insert:
        return tree.Insert(children[1], _all(children, tree.Assignment), _span(children))

    def update(self, children: Children) -> tree.Update:
        assignments = _all(children, tree.Assignment)
        return tree.Update(children[1], assignments, children[-1], _span(children))

    def delete(self, children: Children) -> tree.Delete:
        return tree.Delete(children[1], children[-1], _span(children))


class FileBuilder:
    def file(self, children: Children) -> tree.File:
        return tree.File(tuple(_gathered(children)), _span(children) if children else Span(0, 0))

    def query(self, children: Children) -> tree.Query:
        return _query(children, is_broken=False)

    def broken_query(self, children: Children) -> tree.Query:
        return _query(children, is_broken=True)

    def block(self, children: Children) -> _Body:
        return _Body(children)

    mutations = block

    def parameters(self, children: Children) -> _Parameters:
        return _Parameters(children)

    def parameter(self, children: Children) -> tree.Parameter:
        default = children[4] if len(children) == 5 else None
        return tree.Parameter(_variable(children[0]), children[2], default, _span(children))

    def type(self, children: Children) -> tree.TypeNode:
        dimension = next((integer_value(c.text) for c in children if _is(c, "INTEGER")), None)
        is_nullable = _is(children[-1], "QMARK")
        return tree.TypeNode(children[0], False, dimension, is_nullable, _span(children))

    def list_type(self, children: Children) -> tree.TypeNode:
        is_nullable = _is(children[-1], "QMARK")
        return tree.TypeNode(children[1], True, None, is_nullable, _span(children))

    def literal(self, children: Children) -> tree.Default:
        return children[0]  # type: ignore[no-any-return]

    def literals(self, children: Children) -> tree.Default:
        atoms: list[Any] = [child.value for child in _all(children, tree.Default)]
        return tree.Default(tuple(atoms), _span(children))

    def scalar(self, children: Children) -> tree.Default:
        return tree.Default(_atom(children[0]), _of(children[0]))

    def negative(self, children: Children) -> tree.Default:
        value: Any = _atom(children[1])
        return tree.Default(-value, _span(children))

    def annotation(self, children: Children) -> tree.Annotation:
        values = _all(children, tree.AnnotationValue)
        return tree.Annotation(_name(children[1]), values, _span(children))

    def value(self, children: Children) -> tree.AnnotationValue:
        child = children[0]
        value = child.text if type(child) is tree.Name else child.value
        return tree.AnnotationValue(value, None, child.span)

    def named_value(self, children: Children) -> tree.AnnotationValue:
        return tree.AnnotationValue(children[2].value, _name(children[0]), _span(children))

    def branch_create(self, children: Children) -> tree.BranchCreate:
        return tree.BranchCreate(*_two_refs(children), _span(children))

    def branch_delete(self, children: Children) -> tree.BranchDelete:
        return tree.BranchDelete(_ref(children[2]), _span(children))

    def branch_merge(self, children: Children) -> tree.BranchMerge:
        return tree.BranchMerge(*_two_refs(children), _span(children))

    def branch_list(self, children: Children) -> tree.BranchList:
        return tree.BranchList(_span(children))

    def explain(self, children: Children) -> tree.Explain:
        query = children[-1] if type(children[-1]) is tree.Query else _bare_query([children[-1]])
        return tree.Explain(query, _has(children, "ANALYZE"), _span(children))


class TreeBuilder(ExpressionBuilder, ClauseBuilder, BodyBuilder, FileBuilder):
    pass


class _Entries:
    def __init__(self, children: Children) -> None:
        self.all = _all(children, tree.Assignment)
        self.span = _span(children)


class _Keys:
    def __init__(self, children: Children) -> None:
        self.all = _all(children, tree.Key)
        self.span = _span(children)


def _is(child: Any, terminal: str) -> bool:
    return type(child) is Token and child.type == terminal


def _ref(token: Token) -> tree.Name:
    text = string_value(token.text) if token.text.startswith('"') else token.text
    return tree.Name(text, _of(token))


def _two_refs(children: Children) -> tuple[tree.Name, tree.Name | None]:
    return _ref(children[2]), _ref(children[4]) if len(children) == 5 else None


def _query(children: Children, *, is_broken: bool) -> tree.Query:
    name = _name(children[1]) if _is(children[1], "NAME") else None
    parameters = _all(children, _Parameters)
    bodies = _all(children, _Body)
    body: Any = None
    if bodies:
        parts = bodies[0].parts
        is_broken = is_broken or bodies[0].is_broken or _wrecked(tuple(parts))
        mutations = tuple(part for part in parts if type(part) is not tree.Wreck)
        body = parts[0] if type(parts[0]) is tree.Read else mutations or None
    return tree.Query(
        name,
        parameters[0].all if parameters else (),
        _all(children, tree.Annotation),
        body,
        _span(children),
        is_broken,
    )


def _bare_query(parts: Children) -> tree.Query:
    body = parts[0] if type(parts[0]) is tree.Read else tuple(parts)
    return tree.Query(None, (), (), body, _span(parts))


def _gathered(children: Children) -> Children:
    """Bare bodies as queries. Consecutive mutations form one query, also after `explain`."""
    items: Children = []
    run: list[Any] = []
    for child in (*children, None):
        if type(child) in (tree.Insert, tree.Update, tree.Delete):
            run.append(child)
            continue
        if run:
            _settle(items, run)
            run = []
        if child is not None:
            items.append(_bare_query([child]) if type(child) is tree.Read else child)
    return items


def _settle(items: Children, run: Children) -> None:
    """The mutations join a mutation that is explained just before them, or form a query."""
    last = items[-1] if items else None
    if type(last) is tree.Explain and last.query.name is None and type(last.query.body) is tuple:
        query = _bare_query([*last.query.body, *run])
        span = Span(last.span.start, query.span.end)
        items[-1] = tree.Explain(query, last.is_analyzed, span)
    else:
        items.append(_bare_query(run))
