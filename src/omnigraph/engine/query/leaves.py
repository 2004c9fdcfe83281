"""Owns the values of leaf expressions on the rows of a frame: properties, ids, entities,
patterns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa

from omnigraph.engine.query.frame import Frame
from omnigraph.engine.query.ways import Ways, find_ways
from omnigraph.lang.gq.checked import (
    Bm25,
    EdgeKind,
    EntityValue,
    Exists,
    Expression,
    FunctionCall,
    Highlight,
    Nearest,
    NodeKind,
    ParameterValue,
    PathValue,
    PatternAggregate,
    PropertyValue,
    Rrf,
    SameEntity,
    SystemValue,
    TextSearch,
    TypeTest,
)
from omnigraph.model.arrow import arrow_type
from omnigraph.model.types import Base, PropertyType, ScalarType, VectorType
from omnigraph.plan.values import Leaves, arrow_kind, constant
from omnigraph.plan.values.kinds import Value
from omnigraph.plan.values.texts import text_of
from omnigraph.plan.values.times import INSTANT

if TYPE_CHECKING:
    from omnigraph.engine.query.context import QueryContext


class FrameLeaves:
    """The values of one frame. A value that was read once is kept as long as the frame is in
    use."""

    def __init__(self, frame: Frame, run: QueryContext) -> None:
        self.frame = frame
        self._run = run
        self._known: dict[tuple[int, str], pa.Array] = {}
        self._ways: dict[tuple[int, bool], Ways] = {}

    @property
    def rows(self) -> int:
        return self.frame.rows

    def leaf(self, expression: Expression) -> Value:
        make = _VALUES.get(type(expression))
        if make is None:
            raise TypeError(f"{type(expression).__name__} has no value here")
        return make(self, expression)

    def _numbers(self, variable: int) -> np.ndarray:
        return self.frame.columns[variable]

    def property_value(self, value: PropertyValue) -> Value:
        names = [prop.name for prop in value.properties]
        return self.column(value.variable, names, arrow_kind(value.type.kind))

    def system_value(self, value: SystemValue) -> Value:
        kinds = self._run.kinds(value.variable)
        return self.column(value.variable, [value.column] * len(kinds), pa.string())

    def column(self, variable: int, names: Sequence[str], target: pa.DataType) -> pa.Array:
        key = (variable, names[0])
        found = self._known.get(key)
        if found is None or found.type != target:
            kinds = self._run.kinds(variable)
            numbers = self._numbers(variable)
            found = self._run.entities.values(kinds, names, numbers, target)
            self._known[key] = found
        return found

    def entity_value(self, value: EntityValue) -> Value:
        return entity_objects(value, self, self._numbers(value.variable))

    def parameter_value(self, value: ParameterValue) -> Value:
        return constant(self._run.parameters[value.name], value.type.kind)

    def moment(self, value: FunctionCall) -> Value:
        """The value of `now()`, which is the same for the whole query."""
        return pa.scalar(self._run.now // 1000, pa.int64()).cast(INSTANT)

    def same_entity(self, value: SameEntity) -> Value:
        left, right = self._numbers(value.left), self._numbers(value.right)
        same = left != right if value.negated else left == right
        unknown = (left < 0) | (right < 0)
        return pa.array(same, mask=unknown) if unknown.any() else pa.array(same)

    def type_test(self, value: TypeTest) -> Value:
        numbers = self._numbers(value.variable)
        found = np.zeros(len(numbers), bool)
        for kind in value.types:
            found |= self._run.entities.of_type(kind, numbers)
        return pa.array(found, mask=numbers < 0)

    def path_value(self, value: PathValue) -> Value:
        traversal = value.traversal
        key = (id(traversal), value.every)
        found = self._ways.get(key)
        if found is None:
            run, source, target = self._run, traversal.source, traversal.target
            hops = run.expander.legs_of(
                traversal, backward=False, here=run.kinds(source), there=run.kinds(target)
            )
            starts, ends = self._numbers(source), self._numbers(target)
            found = find_ways(run, traversal, hops, starts, ends, every=value.every)
            self._ways[key] = found
        return found.part(value.part)

    def text_search(self, value: TextSearch) -> Value:
        return self._run.searches.matches(value, self)

    def score(self, value: Bm25) -> Value:
        return self._run.searches.scores(value, self)

    def distance(self, value: Nearest) -> Value:
        return self._run.searches.distances(value, self)

    def fused(self, value: Rrf) -> Value:
        return self._run.searches.fused(value, self)

    def passage(self, value: Highlight) -> Value:
        return self._run.searches.passages(value, self)

    def existence(self, value: Exists) -> Value:
        return pa.array(self._run.exists(value, self.frame))

    def pattern_aggregate(self, value: PatternAggregate) -> Value:
        return self._run.aggregate_pattern(value, self.frame)


_VALUES: dict[type, Callable[[FrameLeaves, Any], Value]] = {
    PropertyValue: FrameLeaves.property_value,
    SystemValue: FrameLeaves.system_value,
    EntityValue: FrameLeaves.entity_value,
    PathValue: FrameLeaves.path_value,
    ParameterValue: FrameLeaves.parameter_value,
    FunctionCall: FrameLeaves.moment,
    SameEntity: FrameLeaves.same_entity,
    TypeTest: FrameLeaves.type_test,
    Exists: FrameLeaves.existence,
    PatternAggregate: FrameLeaves.pattern_aggregate,
    TextSearch: FrameLeaves.text_search,
    Bm25: FrameLeaves.score,
    Nearest: FrameLeaves.distance,
    Rrf: FrameLeaves.fused,
    Highlight: FrameLeaves.passage,
}


def entity_type(kind: NodeKind | EdgeKind) -> pa.DataType:
    """The object that `$x` stands for: `@id` and the properties other than blobs and vectors."""
    return pa.struct(
        [pa.field("@id", pa.string(), nullable=False)]
        + [pa.field(name, held) for name, held in _entity_properties(kind).items()]
    )


def _entity_properties(kind: NodeKind | EdgeKind) -> dict[str, pa.DataType]:
    """By name. A property that two types hold in different forms is shown as text."""
    found: dict[str, pa.DataType] = {}
    for member in kind.types:
        for prop in member.properties:
            if is_shown(prop.type):
                held = arrow_type(prop.type)
                found[prop.name] = held if found.get(prop.name, held) == held else pa.string()
    return found


def is_shown(kind: PropertyType) -> bool:
    return not isinstance(kind, VectorType) and kind != ScalarType(Base.BLOB)


def in_form(values: pa.Array, held: pa.DataType) -> pa.Array:
    """The value as it is, or as text if another type has the property in another form."""
    if values.type == held:
        return values
    if not pa.types.is_list(values.type):
        return text_of(values)
    quoted = not (pa.types.is_integer(values.type.value_type) or _is_bool_list(values.type))
    return pa.array([_list_text(v, quoted=quoted) for v in values], pa.string())


def _is_bool_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(kind.value_type))


def _list_text(value: pa.Scalar, *, quoted: bool) -> str | None:
    """A list as JSON without spaces. Numbers that JSON cannot write, and all items that are not
    numbers, are quoted."""
    if not value.is_valid:
        return None
    texts = text_of(value.values).to_pylist()
    if not quoted:
        return f"[{','.join(texts)}]"
    floats = pa.types.is_floating(value.values.type)
    parts = [
        text if floats and text[-1].isdigit() else msgspec.json.encode(text).decode()
        for text in texts
    ]
    return f"[{','.join(parts)}]"


def entity_objects(value: EntityValue, leaves: FrameLeaves, numbers: np.ndarray) -> pa.Array:
    kind = value.type.kind
    assert isinstance(kind, NodeKind | EdgeKind)
    return leaves._run.objects(kind, numbers)  # noqa: SLF001


def objects_of(run: QueryContext, kind: NodeKind | EdgeKind, numbers: np.ndarray) -> pa.Array:
    """Each entity as an object; null where there is none."""
    target = entity_type(kind)
    columns: dict[str, list[pa.Array]] = {target.field(i).name: [] for i in range(len(target))}
    places: list[np.ndarray] = []
    for _, rows, where, positions in run.entities.split(kind.types, numbers):
        here = np.arange(len(numbers)) if where is None else where
        there = numbers[here] >= 0
        here, positions = here[there], positions[there]
        own = {prop.name for prop in rows.kind.properties if is_shown(prop.type)}
        for name, parts in columns.items():
            held = target.field(name).type
            if name == "@id":
                parts.append(rows.take("id", positions))
            elif name in own:
                parts.append(in_form(rows.take(name, positions), held))
            else:
                parts.append(pa.nulls(len(positions), held))
        places.append(here)
    order = np.full(len(numbers), -1, np.int64)
    if places:
        joined = np.concatenate(places)
        order[joined] = np.arange(len(joined))
    indices = pa.array(order, mask=order < 0)
    arrays = [
        (pa.concat_arrays(parts) if parts else pa.nulls(0, target.field(name).type)).take(indices)
        for name, parts in columns.items()
    ]
    fields = [target.field(i).with_nullable(True) for i in range(len(target))]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=pa.array(order < 0))


__all__ = ["FrameLeaves", "Leaves", "entity_type", "in_form", "is_shown", "objects_of"]
