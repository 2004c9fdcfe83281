"""Owns the checked tree of a query: everything that a planner needs, with every name resolved and
every expression typed.

It holds no spans, and no catalog is needed to read it. A `Match` lists its parts in the order of
meaning: variables, steps and filters first, then the optional blocks in source order, then the
filters that need what those bind. `not { … }` is a filter `Not(Exists(…))`. The values in a binding
are filters too.
"""

from __future__ import annotations

from datetime import date, datetime
from enum import StrEnum
from typing import Final, Literal, TypeAlias

import msgspec

from omnigraph.model.catalog import EdgeType, NodeType, Property
from omnigraph.model.schema import Literal as LiteralValue
from omnigraph.model.types import PropertyType

# Types.


class NullKind(msgspec.Struct, frozen=True):
    """The type of `null`, which fits everywhere."""


class NodeKind(msgspec.Struct, frozen=True):
    """Any node of these types, in the order of the catalog."""

    types: tuple[NodeType, ...]


class EdgeKind(msgspec.Struct, frozen=True):
    types: tuple[EdgeType, ...]


class EntityListKind(msgspec.Struct, frozen=True):
    """The type of `collect($x)`."""

    item: NodeKind | EdgeKind


class DurationKind(msgspec.Struct, frozen=True):
    """A length of time, in days or in milliseconds. It moves a Date or DateTime, and is no value
    that could be returned or stored."""

    unit: Literal["day", "millisecond"]


Kind = PropertyType | NullKind | NodeKind | EdgeKind | EntityListKind | DurationKind


class Type(msgspec.Struct, frozen=True):
    kind: Kind
    nullable: bool = False


# Variables and patterns.

UNBOUNDED: Final = 1 << 30
"""The upper bound of `{m,}`."""
MOST_STEPS: Final = 10_000
"""So many steps are followed without a bound; then the query fails, because it would not end."""


class Variable(msgspec.Struct, frozen=True):
    """`id` is unique in the query. `name` is None for `$_`. `optional` means null if an optional
    block found nothing."""

    id: int
    name: str | None
    kind: NodeKind | EdgeKind
    optional: bool = False


class Direction(StrEnum):
    """FORWARD: from the source of the traversal to its target, along the edge."""

    FORWARD = "forward"
    BACKWARD = "backward"
    EITHER = "either"


class EdgeStep(msgspec.Struct, frozen=True):
    edge: EdgeType
    direction: Direction


class Traversal(msgspec.Struct, frozen=True):
    """One row per distinct target for each source, by any of the steps; with an edge variable, one
    row per edge. `low` and `high` bound the shortest distance; without bounds both are 1.
    `{m,}` is UNBOUNDED above."""

    source: int
    target: int
    steps: tuple[EdgeStep, ...]
    edge: int | None
    low: int
    high: int


class Match(msgspec.Struct, frozen=True):
    """`variables` are those that this pattern introduces, `outer` the ids of others that it
    uses."""

    variables: tuple[Variable, ...]
    outer: tuple[int, ...]
    traversals: tuple[Traversal, ...]
    filters: tuple[Expression, ...]
    optionals: tuple[Match, ...]
    late_filters: tuple[Expression, ...]


# Expressions. Each has a `type`.


class Constant(msgspec.Struct, frozen=True):
    """A Date is a `date`, a DateTime a `datetime` in UTC, a list or vector a tuple."""

    value: LiteralValue | date | datetime
    type: Type


class ParameterValue(msgspec.Struct, frozen=True):
    name: str
    type: Type


class ListValue(msgspec.Struct, frozen=True):
    items: tuple[Expression, ...]
    type: Type


class PropertyValue(msgspec.Struct, frozen=True):
    """`$x.p`; one property for each type of the variable, in the same order."""

    variable: int
    properties: tuple[Property, ...]
    type: Type


class PathValue(msgspec.Struct, frozen=True):
    """`nodes($p)`, `edges($p)` or `length($p)` of a named traversal: of the shortest way whose ids
    of nodes, and then of edges, come first, or of every shortest way together. It depends on both
    ends alone, so it is computed where it is asked for."""

    traversal: Traversal
    part: PathPart
    every: bool
    type: Type


PathPart = Literal["nodes", "edges", "length"]
SystemColumn = Literal["id", "src", "dst"]


class SystemValue(msgspec.Struct, frozen=True):
    variable: int
    column: SystemColumn
    type: Type


class EntityValue(msgspec.Struct, frozen=True):
    """`$x` itself."""

    variable: int
    type: Type


class RowProperty(msgspec.Struct, frozen=True):
    """A property of the entity that a mutation changes."""

    property: Property
    type: Type


class RowSystem(msgspec.Struct, frozen=True):
    column: SystemColumn
    type: Type


class And(msgspec.Struct, frozen=True):
    operands: tuple[Expression, ...]
    type: Type


class Or(msgspec.Struct, frozen=True):
    operands: tuple[Expression, ...]
    type: Type


class Not(msgspec.Struct, frozen=True):
    operand: Expression
    type: Type


Comparator = Literal["=", "!=", "<", "<=", ">", ">="]


class Comparison(msgspec.Struct, frozen=True):
    """Both sides are numbers, texts, Bools, Dates or DateTimes."""

    operator: Comparator
    left: Expression
    right: Expression
    type: Type


class SameEntity(msgspec.Struct, frozen=True):
    """`$a = $b`: the same id in the same type."""

    left: int
    right: int
    negated: bool
    type: Type


class TypeTest(msgspec.Struct, frozen=True):
    """`$x: T` inside a block, for a variable from outside it: whether it has one of these types."""

    variable: int
    types: tuple[NodeType | EdgeType, ...]
    type: Type


class Membership(msgspec.Struct, frozen=True):
    """`item in list`, which is also `list contains item`."""

    item: Expression
    list: Expression
    type: Type


class TextTest(msgspec.Struct, frozen=True):
    operator: Literal["contains", "starts_with", "ends_with"]
    text: Expression
    part: Expression
    type: Type


class NullTest(msgspec.Struct, frozen=True):
    operand: Expression
    negated: bool
    type: Type


class Negative(msgspec.Struct, frozen=True):
    operand: Expression
    type: Type


class Arithmetic(msgspec.Struct, frozen=True):
    """Computed in the type of the result: I64, U64 or F64."""

    operator: Literal["+", "-", "*", "/", "%"]
    left: Expression
    right: Expression
    type: Type


class Concatenation(msgspec.Struct, frozen=True):
    left: Expression
    right: Expression
    type: Type


class FunctionCall(msgspec.Struct, frozen=True):
    """`function` is a row of `check.functions.FUNCTIONS`, or `coalesce`."""

    function: str
    arguments: tuple[Expression, ...]
    type: Type


class Conditional(msgspec.Struct, frozen=True):
    """The first result whose condition is true, else the last one. Only the branch that is taken is
    evaluated."""

    conditions: tuple[Expression, ...]
    results: tuple[Expression, ...]
    otherwise: Expression
    type: Type


class ItemValue(msgspec.Struct, frozen=True):
    """One item of the list that a `Quantified` goes through; `item` is its number."""

    item: int
    name: str
    type: Type


class Quantified(msgspec.Struct, frozen=True):
    """Whether a condition is true of any, all or none of the items of a list. Over no items `any`
    is false; null where that decides, and of a list that is null."""

    word: Literal["any", "all", "none"]
    item: ItemValue
    items: Expression
    condition: Expression
    type: Type


AggregateFunction: TypeAlias = str
"""A row of `check.functions.AGGREGATES`."""


class Aggregate(msgspec.Struct, frozen=True):
    function: AggregateFunction
    argument: Expression
    distinct: bool
    type: Type


class Exists(msgspec.Struct, frozen=True):
    match: Match
    type: Type


class PatternAggregate(msgspec.Struct, frozen=True):
    """`count { … }` over the rows of a pattern (no argument), `sum($y.p) { … }` and the like."""

    function: AggregateFunction
    argument: Expression | None
    match: Match
    type: Type


class KeyValue(msgspec.Struct, frozen=True):
    """The value of a key of the group."""

    index: int
    type: Type


class AggregateValue(msgspec.Struct, frozen=True):
    """The value of an aggregate of the group."""

    index: int
    type: Type


class OutputValue(msgspec.Struct, frozen=True):
    """In an order key, the value of a result column."""

    index: int
    type: Type


class Nearest(msgspec.Struct, frozen=True):
    """Cosine distance; `query` is a vector, or a text that is embedded first."""

    target: PropertyValue
    query: Expression
    type: Type


class Bm25(msgspec.Struct, frozen=True):
    target: PropertyValue
    words: Expression
    type: Type


class Rrf(msgspec.Struct, frozen=True):
    ranks: tuple[Nearest | Bm25, ...]
    k: Expression
    type: Type


class TextSearch(msgspec.Struct, frozen=True):
    """`edits` is given for `fuzzy` only."""

    function: Literal["search", "match_text", "fuzzy"]
    target: PropertyValue
    words: Expression
    edits: Expression | None
    type: Type


class Highlight(msgspec.Struct, frozen=True):
    """The passage of a text that contains the words."""

    target: PropertyValue
    words: Expression
    type: Type


RANKS: Final = (Nearest, Bm25, Rrf)
SEARCHES: Final = (*RANKS, TextSearch, Highlight)

Expression = (
    Constant
    | ParameterValue
    | ListValue
    | PropertyValue
    | SystemValue
    | EntityValue
    | PathValue
    | RowProperty
    | RowSystem
    | And
    | Or
    | Not
    | Comparison
    | SameEntity
    | TypeTest
    | Membership
    | TextTest
    | NullTest
    | Negative
    | Arithmetic
    | Concatenation
    | FunctionCall
    | Conditional
    | ItemValue
    | Quantified
    | Aggregate
    | Exists
    | PatternAggregate
    | KeyValue
    | AggregateValue
    | OutputValue
    | Nearest
    | Bm25
    | Rrf
    | TextSearch
    | Highlight
)


# Queries.


class Parameter(msgspec.Struct, frozen=True):
    """`default` is a value as `bind_parameters` gives it."""

    name: str
    kind: PropertyType
    nullable: bool
    has_default: bool
    default: object = None


class Column(msgspec.Struct, frozen=True):
    name: str
    value: Expression

    @property
    def type(self) -> Type:
        return self.value.type


class Group(msgspec.Struct, frozen=True):
    """Columns of a query with a group refer to these by KeyValue and AggregateValue."""

    keys: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]


class OrderKey(msgspec.Struct, frozen=True):
    value: Expression
    descending: bool


class Read(msgspec.Struct, frozen=True):
    """With `distinct` or a group, each order key is an OutputValue. A union has `parts`, no pattern
    of its own, and columns that stand for theirs."""

    match: Match
    group: Group | None
    columns: tuple[Column, ...]
    distinct: bool
    order: tuple[OrderKey, ...]
    limit: int | ParameterValue | None
    offset: int | ParameterValue | None
    parts: tuple[Read, ...] = ()


class SetProperty(msgspec.Struct, frozen=True):
    property: Property
    value: Expression


class InsertNode(msgspec.Struct, frozen=True):
    type: NodeType
    values: tuple[SetProperty, ...]


class InsertEdge(msgspec.Struct, frozen=True):
    type: EdgeType
    source: Expression
    target: Expression
    values: tuple[SetProperty, ...]


class Update(msgspec.Struct, frozen=True):
    type: NodeType | EdgeType
    values: tuple[SetProperty, ...]
    where: Expression


class Delete(msgspec.Struct, frozen=True):
    type: NodeType | EdgeType
    where: Expression


Mutation = InsertNode | InsertEdge | Update | Delete


class CheckedQuery(msgspec.Struct, frozen=True):
    """`body` is a read, or the statements of a mutation in order."""

    name: str | None
    parameters: tuple[Parameter, ...]
    description: str | None
    instruction: str | None
    body: Read | tuple[Mutation, ...]

    @property
    def reads(self) -> tuple[Read, ...]:
        """The patterns that are read: one, or the parts of a union; none for a mutation."""
        if not isinstance(self.body, Read):
            return ()
        return self.body.parts or (self.body,)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The result columns; none for a mutation."""
        return self.body.columns if isinstance(self.body, Read) else ()
