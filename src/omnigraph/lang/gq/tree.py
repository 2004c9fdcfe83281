"""Owns the syntax tree of a `.gq` text: what was written and where, whether or not it makes
sense."""

from __future__ import annotations

from typing import Literal

import msgspec

from omnigraph.lang.diagnostics import Span
from omnigraph.model.schema import Atom
from omnigraph.model.schema import Literal as LiteralValue


class Name(msgspec.Struct, frozen=True, gc=False):
    text: str
    span: Span


class Variable(msgspec.Struct, frozen=True, gc=False):
    """`$name`. The name is without the dollar sign, and `_` for an anonymous end."""

    name: str
    span: Span

    @property
    def is_anonymous(self) -> bool:
        return self.name == "_"


# Expressions.


class Constant(msgspec.Struct, frozen=True):
    value: Atom
    span: Span


class ListOf(msgspec.Struct, frozen=True):
    items: tuple[Expression, ...]
    span: Span


class PropertyRef(msgspec.Struct, frozen=True):
    """`$x.p`."""

    variable: Variable
    property: Name
    span: Span


class SystemRef(msgspec.Struct, frozen=True):
    """`$x.@id`; in a mutation also `@id` without a variable."""

    variable: Variable | None
    column: Name
    span: Span


class Bare(msgspec.Struct, frozen=True):
    """A name on its own: an alias or, in a mutation, a property."""

    name: Name
    span: Span


class Argument(msgspec.Struct, frozen=True):
    value: Expression
    name: Name | None
    span: Span


class Call(msgspec.Struct, frozen=True):
    """`f(a, b)`, `count(distinct a)`, or with `clauses` an aggregate over a pattern."""

    function: Name
    arguments: tuple[Argument, ...]
    is_distinct: bool
    clauses: tuple[Clause, ...] | None
    span: Span


class Pattern(msgspec.Struct, frozen=True):
    """`exists { … }` or `count { … }`."""

    kind: Literal["exists", "count"]
    clauses: tuple[Clause, ...]
    span: Span


class Unary(msgspec.Struct, frozen=True):
    operator: Literal["-", "not"]
    operand: Expression
    span: Span


class Chain(msgspec.Struct, frozen=True):
    """Operands with operators between them: all `or`, all `and`, `+` and `-`, or `*`, `/` and `%`.
    It is flat, so a long sum is not a deep tree."""

    operators: tuple[str, ...]
    operands: tuple[Expression, ...]
    span: Span


class Comparison(msgspec.Struct, frozen=True):
    operator: str
    left: Expression
    right: Expression
    span: Span


class NullTest(msgspec.Struct, frozen=True):
    operand: Expression
    is_negated: bool
    span: Span


class When(msgspec.Struct, frozen=True):
    condition: Expression
    result: Expression
    span: Span


class Case(msgspec.Struct, frozen=True):
    """`case when a then b … else c end`; without `else` it ends in null."""

    branches: tuple[When, ...]
    otherwise: Expression | None
    span: Span


class ItemTest(msgspec.Struct, frozen=True):
    """`any($x in list where condition)`, `all(…)`, `none(…)`."""

    word: Literal["any", "all", "none"]
    variable: Variable
    items: Expression
    condition: Expression
    span: Span


Expression = (
    Constant
    | ListOf
    | Variable
    | PropertyRef
    | SystemRef
    | Bare
    | Call
    | Pattern
    | Unary
    | Chain
    | Comparison
    | NullTest
    | Case
    | ItemTest
)


# Clauses.


class Wreck(msgspec.Struct, frozen=True, gc=False):
    """Where tokens were thrown away after a syntax error."""

    span: Span


class Assignment(msgspec.Struct, frozen=True):
    """`name: value`, in a binding or a mutation."""

    name: Name
    value: Expression
    span: Span


class Binding(msgspec.Struct, frozen=True):
    variable: Variable
    type: Name
    entries: tuple[Assignment, ...]
    span: Span


class Hop(msgspec.Struct, frozen=True):
    """The edges of a traversal. No names mean every type that fits (`*`)."""

    names: tuple[Name, ...]
    is_undirected: bool
    span: Span


class Bounds(msgspec.Struct, frozen=True, gc=False):
    """`{m,n}`; `high` is None for `{m,}`."""

    low: int
    high: int | None
    span: Span


class PathName(msgspec.Struct, frozen=True):
    """`$p =` before a traversal. `is_every` means all shortest ways together, and not one."""

    variable: Variable
    is_every: bool
    span: Span


class Traversal(msgspec.Struct, frozen=True):
    source: Variable
    edge: Variable | None
    hop: Hop
    bounds: Bounds | None
    target: Variable
    span: Span
    path: PathName | None = None


class Block(msgspec.Struct, frozen=True):
    kind: Literal["not", "optional"]
    clauses: tuple[Clause, ...]
    span: Span


class Filter(msgspec.Struct, frozen=True):
    condition: Expression
    span: Span


Clause = Binding | Traversal | Block | Filter | Wreck


# Queries.


class Projection(msgspec.Struct, frozen=True):
    value: Expression
    alias: Name | None
    span: Span


class Key(msgspec.Struct, frozen=True):
    """`is_descending` is None if no direction is written."""

    value: Expression
    is_descending: bool | None
    span: Span


class Amount(msgspec.Struct, frozen=True):
    """`limit` or `offset`."""

    kind: Literal["limit", "offset"]
    value: int | Variable
    span: Span


class Read(msgspec.Struct, frozen=True):
    """With `others` a union, whose order and amounts are about all rows; `unions` says for each of
    them whether it is a `union all`."""

    clauses: tuple[Clause, ...]
    is_distinct: bool
    projections: tuple[Projection, ...]
    order: tuple[Key, ...]
    amounts: tuple[Amount, ...]
    span: Span
    others: tuple[Read, ...] = ()
    unions: tuple[bool, ...] = ()

    @property
    def parts(self) -> tuple[Read, ...]:
        """The reads that a union joins, without what is said about all of them."""
        first = msgspec.structs.replace(self, order=(), amounts=(), others=(), unions=())
        return (first, *self.others)


class Insert(msgspec.Struct, frozen=True):
    type: Name
    assignments: tuple[Assignment, ...]
    span: Span


class Update(msgspec.Struct, frozen=True):
    type: Name
    assignments: tuple[Assignment, ...]
    where: Expression
    span: Span


class Delete(msgspec.Struct, frozen=True):
    type: Name
    where: Expression
    span: Span


Mutation = Insert | Update | Delete


class TypeNode(msgspec.Struct, frozen=True):
    """`String`, `[I32]`, `Vector(3)`, each with an optional `?`."""

    name: Name
    is_list: bool
    dimension: int | None
    is_nullable: bool
    span: Span


class Default(msgspec.Struct, frozen=True):
    value: LiteralValue
    span: Span


class Parameter(msgspec.Struct, frozen=True):
    variable: Variable
    type: TypeNode
    default: Default | None
    span: Span


class AnnotationValue(msgspec.Struct, frozen=True):
    """A literal, or the text of a word. `name` is set for `name = literal`."""

    value: LiteralValue
    name: Name | None
    span: Span


class Annotation(msgspec.Struct, frozen=True):
    name: Name
    values: tuple[AnnotationValue, ...]
    span: Span


class Query(msgspec.Struct, frozen=True):
    """`name` is None for a bare body. After a syntax error `is_broken` is set, and `body` is None
    if none could be read."""

    name: Name | None
    parameters: tuple[Parameter, ...]
    annotations: tuple[Annotation, ...]
    body: Read | tuple[Mutation, ...] | None
    span: Span
    is_broken: bool = False


class BranchCreate(msgspec.Struct, frozen=True):
    name: Name
    source: Name | None
    span: Span


class BranchDelete(msgspec.Struct, frozen=True):
    name: Name
    span: Span


class BranchMerge(msgspec.Struct, frozen=True):
    source: Name
    target: Name | None
    span: Span


class BranchList(msgspec.Struct, frozen=True):
    span: Span


class Explain(msgspec.Struct, frozen=True):
    query: Query
    is_analyzed: bool
    span: Span


Statement = BranchCreate | BranchDelete | BranchMerge | BranchList | Explain


class File(msgspec.Struct, frozen=True):
    items: tuple[Query | Statement | Wreck, ...]
    span: Span

    @property
    def queries(self) -> tuple[Query, ...]:
        return tuple(item for item in self.items if isinstance(item, Query))

    @property
    def statements(self) -> tuple[Statement, ...]:
        return tuple(item for item in self.items if not isinstance(item, Query | Wreck))
