"""Owns the second oracle: sqlite answers the relational part of a checked read: hops of one step
without bounds, filters over what sqlite means the same by, aggregates, groups, order by columns.

`sql_of` gives None for everything else. Values go to sqlite as themselves, except what it has no
type for: Bools are 0 and 1, dates are ISO texts, which compare as the dates do.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any

from omnigraph.lang.gq import checked as c
from omnigraph.model.catalog import GraphType
from omnigraph.model.types import FLOATS, INTEGER_RANGES, Base, EnumType, ScalarType
from tests.model.query_data import Dataset
from tests.model.query_values import instant_text

LARGEST = 2**53
"""Beyond this sqlite's own arithmetic and comparison with floats differ from the language's."""


class Untranslatable(Exception):
    """sqlite has no way to say this, or says it differently."""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def stored(value: Any) -> Any:
    match value:
        case bool():
            return int(value)
        case datetime():
            return instant_text(value)
        case date():
            return value.isoformat()
        case int() if abs(value) > LARGEST:
            raise Untranslatable
        case float() if value - value != 0:
            raise Untranslatable
        case tuple() | bytes():
            return None
        case _:
            return value


def table_name(data: Dataset, kind: GraphType) -> str:
    """sqlite does not tell names apart by their case."""
    return f"t{data.catalog.types.index(kind)}"


def load(data: Dataset) -> sqlite3.Connection:
    """Every type as a table; raises Untranslatable if a value has no counterpart."""
    database = sqlite3.connect(":memory:")
    for kind in data.catalog.types:
        rows = (data.edges if hasattr(kind, "source") else data.nodes).get(kind.name, [])
        system = ["id", "src", "dst"] if hasattr(kind, "source") else ["id"]
        names = [f"@{n}" for n in system] + [p.name for p in kind.properties]
        columns = ", ".join(quoted(f"{i}:{n}") for i, n in enumerate(names))
        table = table_name(data, kind)
        database.execute(f"create table {table} ({columns})")
        marks = ", ".join("?" * len(names))
        database.executemany(
            f"insert into {table} values ({marks})",
            [[stored(row[n.removeprefix("@")]) for n in names] for row in rows],
        )
        database.execute(f"create index i{table} on {table} ({quoted('0:@id')})")
    return database


class Translator:
    def __init__(self, read: c.Read, data: Dataset, parameters: Mapping[str, Any]) -> None:
        self.read = read
        self.data = data
        self.parameters = parameters
        self.bound: dict[str, Any] = {}
        self.variables: dict[int, c.Variable] = {}
        self.pairs: list[str] = []

    def text(self) -> str:
        read = self.read
        source = self._source(read.match)
        columns = [self._output(column.value) for column in read.columns]
        text = f"select {'distinct ' if read.distinct else ''}{', '.join(columns)} {source}"
        if read.group is not None and read.group.keys:
            text += f" group by {', '.join(self._value(k) for k in read.group.keys)}"
        return text + self._order()

    def _order(self) -> str:
        """Nulls are first in sqlite too, and ties are broken by the columns."""
        if not is_total(self.read):
            return ""
        keys = []
        for key in self.read.order:
            assert isinstance(key.value, c.OutputValue)
            keys.append(f"{key.value.index + 1}{' desc' if key.descending else ''}")
        keys += [str(i + 1) for i in range(len(self.read.columns))]
        return f" order by {', '.join(keys)}"

    # Patterns.

    def _source(self, match: c.Match) -> str:
        if match.optionals:
            raise Untranslatable
        tables = []
        for variable in match.variables:
            if len(variable.kind.types) != 1:
                raise Untranslatable
            self.variables[variable.id] = variable
            tables.append(f"{table_name(self.data, variable.kind.types[0])} as v{variable.id}")
        conditions = []
        for traversal in match.traversals:
            if {traversal.source, traversal.target} - self.variables.keys():
                raise Untranslatable
            conditions.append(self._hop(traversal, tables))
        conditions += [self._value(condition) for condition in match.filters]
        where = f" where {' and '.join(conditions)}" if conditions else ""
        return f"from {', '.join(tables)}{where}" if tables else f"from (select 1){where}"

    def _hop(self, traversal: c.Traversal, tables: list[str]) -> str:
        """A join with the edges, or with the distinct pairs of their ends."""
        source, target = f"v{traversal.source}.{ID}", f"v{traversal.target}.{ID}"
        if (traversal.low, traversal.high) != (1, 1):
            raise Untranslatable
        if traversal.edge is None:
            pairs = f"h{len(self.pairs)}"
            self.pairs.append(pairs)
            ways = " union ".join(self._pairs(step) for step in traversal.steps)
            tables.append(f"({ways}) as {pairs}")
            return f"({pairs}.a = {source} and {pairs}.b = {target})"
        if len(traversal.steps) != 1:
            raise Untranslatable
        edge = f"v{traversal.edge}"
        forward = f"({edge}.{SRC} = {source} and {edge}.{DST} = {target})"
        back = f"({edge}.{SRC} = {target} and {edge}.{DST} = {source})"
        joined = {"forward": forward, "backward": back, "either": f"({forward} or {back})"}
        return joined[traversal.steps[0].direction.value]

    def _pairs(self, step: c.EdgeStep) -> str:
        table = table_name(self.data, step.edge)
        forward = f"select {SRC} as a, {DST} as b from {table}"
        back = f"select {DST} as a, {SRC} as b from {table}"
        ways = {"forward": forward, "backward": back, "either": f"{forward} union {back}"}
        way = ways[step.direction.value]
        return way if " union " in way else way.replace("select", "select distinct", 1)

    # Expressions.

    def _output(self, value: c.Expression) -> str:
        kind = value.type.kind
        is_plain = isinstance(kind, EnumType) or (
            isinstance(kind, ScalarType) and kind.base is not Base.BLOB
        )
        if not is_plain:
            raise Untranslatable
        return self._value(value)

    def _constant(self, value: Any) -> str:
        name = f"c{len(self.bound)}"
        self.bound[name] = stored(value)
        return f":{name}"

    def _value(self, node: c.Expression) -> str:
        match node:
            case c.Constant(value=value) if not isinstance(value, tuple):
                return self._constant(value)
            case c.ParameterValue(name=name) if node.type.kind != ScalarType(Base.F32):
                if isinstance(self.parameters[name], tuple):
                    raise Untranslatable
                return self._constant(self.parameters[name])
            case c.PropertyValue() | c.SystemValue():
                return self._reference(node)
            case c.KeyValue(index=index):
                assert self.read.group is not None
                return self._value(self.read.group.keys[index])
            case c.AggregateValue(index=index):
                assert self.read.group is not None
                return self._aggregate(self.read.group.aggregates[index])
            case _:
                return self._composed(node)

    def _composed(self, node: c.Expression) -> str:
        match node:
            case c.And(operands=operands):
                return "(" + " and ".join(map(self._value, operands)) + ")"
            case c.Or(operands=operands):
                return "(" + " or ".join(map(self._value, operands)) + ")"
            case c.Not(operand=operand):
                return f"(not {self._value(operand)})"
            case c.NullTest(operand=operand, negated=negated):
                _plain(operand)
                return f"({self._value(operand)} is {'not ' if negated else ''}null)"
            case c.Comparison(operator=operator, left=left, right=right):
                return f"({self._value(left)} {operator} {self._value(right)})"
            case c.Exists(match=match):
                return f"exists (select 1 {self._source(match)})"
            case c.Membership() | c.TextTest() | c.SameEntity():
                return self._tested(node)
            case _:
                return self._computed(node)

    def _computed(self, node: c.Expression) -> str:
        match node:
            case c.Concatenation(left=left, right=right):
                return f"({self._value(left)} || {self._value(right)})"
            case c.Conditional():
                return self._case(node)
            case c.Arithmetic(right=right) if isinstance(right.type.kind, c.DurationKind):
                raise Untranslatable
            case c.Arithmetic(operator=operator, left=left, right=right):
                return self._arithmetic(operator, left, right, node.type)
            case c.PatternAggregate(function="count", argument=None, match=match):
                return f"(select count(*) {self._source(match)})"
            case c.FunctionCall(function="coalesce", arguments=arguments):
                if len(arguments) < 2:
                    raise Untranslatable
                return f"coalesce({', '.join(map(self._value, arguments))})"
            case c.FunctionCall(function="abs" | "length", arguments=(argument,)):
                _plain(argument)
                return f"{node.function}({self._value(argument)})"
            case _:
                raise Untranslatable

    def _case(self, node: c.Conditional) -> str:
        pairs = zip(node.conditions, node.results, strict=True)
        taken = " ".join(f"when {self._value(a)} then {self._value(b)}" for a, b in pairs)
        return f"(case {taken} else {self._value(node.otherwise)} end)"

    def _tested(self, node: c.Membership | c.TextTest | c.SameEntity) -> str:
        match node:
            case c.Membership(item=item, list=c.Constant(value=tuple(values))):
                listed = ", ".join(self._constant(value) for value in values)
                return f"({self._value(item)} in ({listed}))"
            case c.TextTest(operator=operator, text=text, part=part):
                return _text_test(operator, self._value(text), self._value(part))
            case c.SameEntity(left=left_, right=right_, negated=negated):
                if {left_, right_} - self.variables.keys():
                    raise Untranslatable
                return f"(v{left_}.{ID} {'!=' if negated else '='} v{right_}.{ID})"
            case _:
                raise Untranslatable

    def _reference(self, node: c.PropertyValue | c.SystemValue) -> str:
        variable = self.variables[node.variable]
        (owner,) = variable.kind.types
        system = ["@id", "@src", "@dst"] if isinstance(variable.kind, c.EdgeKind) else ["@id"]
        names = system + [p.name for p in owner.properties]
        if isinstance(node, c.PropertyValue):
            _plain(node)
            name = node.properties[0].name
        else:
            name = f"@{node.column}"
        return f"v{node.variable}.{quoted(f'{names.index(name)}:{name}')}"

    def _arithmetic(
        self, operator: str, left: c.Expression, right: c.Expression, type_: c.Type
    ) -> str:
        if operator == "%" and type_.kind == ScalarType(Base.F64):
            raise Untranslatable
        one, other = self._value(left), self._value(right)
        if type_.kind == ScalarType(Base.F64):
            return f"(cast({one} as real) {operator} cast({other} as real))"
        return f"({one} {operator} {other})"

    def _aggregate(self, aggregate: c.Aggregate) -> str:
        word = "distinct " if aggregate.distinct else ""
        argument = aggregate.argument
        if isinstance(argument, c.EntityValue):
            if aggregate.function != "count" or argument.variable not in self.variables:
                raise Untranslatable
            return f"count({word}v{argument.variable}.{ID})"
        if aggregate.function == "collect":
            raise Untranslatable
        value = self._value(argument)
        return f"{aggregate.function}({word}{value})"


ID, SRC, DST = quoted("0:@id"), quoted("1:@src"), quoted("2:@dst")


def is_total(read: c.Read) -> bool:
    """Whether rows are ordered by nothing but result columns."""
    return bool(read.order) and (read.group is not None or read.distinct)


def _text_test(operator: str, text: str, part: str) -> str:
    if operator == "contains":
        return f"(instr({text}, {part}) > 0)"
    if operator == "starts_with":
        return f"(substr({text}, 1, length({part})) = {part})"
    rest = f"length({text}) - length({part})"
    return f"(substr({text}, {rest} + 1) = {part} and {rest} >= 0)"


def _plain(node: c.Expression) -> None:
    """Lists, vectors and blobs are not stored."""
    kind = node.type.kind
    if isinstance(kind, EnumType):
        return
    if not isinstance(kind, ScalarType) or kind.base is Base.BLOB:
        raise Untranslatable


def run_sqlite(
    query: c.CheckedQuery, data: Dataset, parameters: Mapping[str, Any]
) -> list[tuple[Any, ...]] | None:
    """The rows; None if this query or this data is not for sqlite."""
    assert isinstance(query.body, c.Read)
    try:
        translator = Translator(query.body, data, parameters)
        text = translator.text()
        database = load(data)
    except Untranslatable:
        return None
    try:
        rows = database.execute(text, translator.bound).fetchall()
    finally:
        database.close()
    return [tuple(_typed(query.body.columns, row)) for row in rows]


def _typed(columns: tuple[c.Column, ...], row: tuple[Any, ...]) -> Iterator[Any]:
    """As sqlite keeps them, so that both oracles compare: floats are floats."""
    for column, value in zip(columns, row, strict=True):
        kind = column.type.kind
        base = kind.base if isinstance(kind, ScalarType) else None
        if value is not None and base in FLOATS:
            yield float(value)
        elif value is not None and base in INTEGER_RANGES:
            yield int(value)
        else:
            yield value
