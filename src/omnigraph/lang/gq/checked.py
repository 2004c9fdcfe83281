"""Owns the checked tree of a query: everything that a planner needs, with every name resolved and
every expression typed.

It holds no spans, and no catalog is needed to read it. A `Match` lists its parts in the order of
meaning: variables, steps and filters first, then the optional blocks in source order, then the
filters that need what those bind. `not { … }` is a filter `Not(Exists(…))`. The values in a binding
are filters too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from omnigraph.model.catalog import EdgeType, NodeType, Property
from omnigraph.model.schema import Literal as LiteralValue
from omnigraph.model.types import PropertyType

# Types.


@dataclass(frozen=True, slots=True)
class NullKind:
    """The type of `null`, which fits everywhere."""


@dataclass(frozen=True, slots=True)
class NodeKind:
    """Any node of these types, in the order of the catalog."""

    types: tuple[NodeType, ...]


@dataclass(frozen=True, slots=True)
class EdgeKind:
    types: tuple[EdgeType, ...]


@dataclass(frozen=True, slots=True)
class EntityListKind:
    """The type of `collect($x)`."""

    item: NodeKind | EdgeKind


@dataclass(frozen=True, slots=True)
class DurationKind:
    """A length of time, in days or in milliseconds. It moves a Date or DateTime, and is no value
    that could be returned or stored."""

    unit: Literal["day", "millisecond"]


Kind = PropertyType | NullKind | NodeKind | EdgeKind | EntityListKind | DurationKind


@dataclass(frozen=True, slots=True)
class Type:
    kind: Kind
    nullable: bool = False


# Variables and patterns.

UNBOUNDED: Final = 1 << 30
"""The upper bound of `{m,}`."""
MOST_STEPS: Final = 10_000
"""So many steps are followed without a bound; then the query fails, because it would not end."""


@dataclass(frozen=True, slots=True)
class Variable:
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


@dataclass(frozen=True, slots=True)
class EdgeStep:
    edge: EdgeType
    direction: Direction


@dataclass(frozen=True, slots=True)
class Traversal:
    """One row per distinct target for each source, by any of the steps; with an edge variable, one
    row per edge. `low` and `high` bound the shortest distance; without bounds both are 1.
    `{m,}` is UNBOUNDED above."""

    source: int
    target: int
    steps: tuple[EdgeStep, ...]
    edge: int | None
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Match:
    """`variables` are those that this pattern introduces, `outer` the ids of others that it
    uses."""

    variables: tuple[Variable, ...]
    outer: tuple[int, ...]
    traversals: tuple[Traversal, ...]
    filters: tuple[Expression, ...]
    optionals: tuple[Match, ...]
    late_filters: tuple[Expression, ...]


# Expressions. Each has a `type`.


@dataclass(frozen=True, slots=True)
class Constant:
    """A Date is a `date`, a DateTime a `datetime` in UTC, a list or vector a tuple."""

    value: LiteralValue | date | datetime
    type: Type


@dataclass(frozen=True, slots=True)
class ParameterValue:
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class ListValue:
    items: tuple[Expression, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class PropertyValue:
    """`$x.p`; one property for each type of the variable, in the same order."""

    variable: int
    properties: tuple[Property, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class PathValue:
    """`nodes($p)`, `edges($p)` or `length($p)` of a named traversal: of the shortest way whose ids
    of nodes, and then of edges, come first, or of every shortest way together. It depends on both
    ends alone, so it is computed where it is asked for."""

    traversal: Traversal
    part: PathPart
    every: bool
    type: Type


PathPart = Literal["nodes", "edges", "length"]
SystemColumn = Literal["id", "src", "dst"]


@dataclass(frozen=True, slots=True)
class SystemValue:
    variable: int
    column: SystemColumn
    type: Type


@dataclass(frozen=True, slots=True)
class EntityValue:
    """`$x` itself."""

    variable: int
    type: Type


@dataclass(frozen=True, slots=True)
class RowProperty:
    """A property of the entity that a mutation changes."""

    property: Property
    type: Type


@dataclass(frozen=True, slots=True)
class RowSystem:
    column: SystemColumn
    type: Type


@dataclass(frozen=True, slots=True)
class And:
    operands: tuple[Expression, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Or:
    operands: tuple[Expression, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expression
    type: Type


Comparator = Literal["=", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both sides are numbers, texts, Bools, Dates or DateTimes."""

    operator: Comparator
    left: Expression
    right: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class SameEntity:
    """`$a = $b`: the same id in the same type."""

    left: int
    right: int
    negated: bool
    type: Type


@dataclass(frozen=True, slots=True)
class TypeTest:
    """`$x: T` inside a block, for a variable from outside it: whether it has one of these types."""

    variable: int
    types: tuple[NodeType | EdgeType, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Membership:
    """`item in list`, which is also `list contains item`."""

    item: Expression
    list: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class TextTest:
    operator: Literal["contains", "starts_with", "ends_with"]
    text: Expression
    part: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class NullTest:
    operand: Expression
    negated: bool
    type: Type


@dataclass(frozen=True, slots=True)
class Negative:
    operand: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Computed in the type of the result: I64, U64 or F64."""

    operator: Literal["+", "-", "*", "/", "%"]
    left: Expression
    right: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Concatenation:
    left: Expression
    right: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """`function` is a row of `check.functions.FUNCTIONS`, or `coalesce`."""

    function: str
    arguments: tuple[Expression, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Conditional:
    """The first result whose condition is true, else the last one. Only the branch that is taken is
    evaluated."""

    conditions: tuple[Expression, ...]
    results: tuple[Expression, ...]
    otherwise: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class ItemValue:
    """One item of the list that a `Quantified` goes through; `item` is its number."""

    item: int
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Quantified:
    """Whether a condition is true of any, all or none of the items of a list. Over no items `any`
    is false; null where that decides, and of a list that is null."""

    word: Literal["any", "all", "none"]
    item: ItemValue
    items: Expression
    condition: Expression
    type: Type


AggregateFunction: TypeAlias = str
"""A row of `check.functions.AGGREGATES`."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    function: AggregateFunction
    argument: Expression
    distinct: bool
    type: Type


@dataclass(frozen=True, slots=True)
class Exists:
    match: Match
    type: Type


@dataclass(frozen=True, slots=True)
class PatternAggregate:
    """`count { … }` over the rows of a pattern (no argument), `sum($y.p) { … }` and the like."""

    function: AggregateFunction
    argument: Expression | None
    match: Match
    type: Type


@dataclass(frozen=True, slots=True)
class KeyValue:
    """The value of a key of the group."""

    index: int
    type: Type


@dataclass(frozen=True, slots=True)
class AggregateValue:
    """The value of an aggregate of the group."""

    index: int
    type: Type


@dataclass(frozen=True, slots=True)
class OutputValue:
    """In an order key, the value of a result column."""

    index: int
    type: Type


@dataclass(frozen=True, slots=True)
class Nearest:
    """Cosine distance; `query` is a vector, or a text that is embedded first."""

    target: PropertyValue
    query: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Bm25:
    target: PropertyValue
    words: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Rrf:
    ranks: tuple[Nearest | Bm25, ...]
    k: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class TextSearch:
    """`edits` is given for `fuzzy` only."""

    function: Literal["search", "match_text", "fuzzy"]
    target: PropertyValue
    words: Expression
    edits: Expression | None
    type: Type


@dataclass(frozen=True, slots=True)
class Highlight:
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


@dataclass(frozen=True, slots=True)
class Parameter:
    """`default` is a value as `bind_parameters` gives it."""

    name: str
    kind: PropertyType
    nullable: bool
    has_default: bool
    default: object = None


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    value: Expression

    @property
    def type(self) -> Type:
        return self.value.type


@dataclass(frozen=True, slots=True)
class Group:
    """Columns of a query with a group refer to these by KeyValue and AggregateValue."""

    keys: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True, slots=True)
class OrderKey:
    value: Expression
    descending: bool


@dataclass(frozen=True, slots=True)
class Read:
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


@dataclass(frozen=True, slots=True)
class SetProperty:
    property: Property
    value: Expression


@dataclass(frozen=True, slots=True)
class InsertNode:
    type: NodeType
    values: tuple[SetProperty, ...]


@dataclass(frozen=True, slots=True)
class InsertEdge:
    type: EdgeType
    source: Expression
    target: Expression
    values: tuple[SetProperty, ...]


@dataclass(frozen=True, slots=True)
class Update:
    type: NodeType | EdgeType
    values: tuple[SetProperty, ...]
    where: Expression


@dataclass(frozen=True, slots=True)
class Delete:
    type: NodeType | EdgeType
    where: Expression


Mutation = InsertNode | InsertEdge | Update | Delete


@dataclass(frozen=True, slots=True)
class CheckedQuery:
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
