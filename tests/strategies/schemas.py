"""Owns the hypothesis strategies for schemas that the checker would accept.

Names come from small pools, so that independently drawn schemas share types and properties, which
is where planning and merging have something to decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec
from hypothesis import strategies as st

from omnigraph.model.schema import (
    Annotation,
    Atom,
    Card,
    Check,
    Default,
    EdgeDecl,
    Embed,
    InterfaceDecl,
    Literal,
    NodeDecl,
    PropertyDecl,
    Range,
    Schema,
    TypeDecl,
)
from omnigraph.model.types import (
    FLOATS,
    INTEGER_RANGES,
    Base,
    EnumType,
    ListType,
    PropertyType,
    ScalarType,
    VectorType,
)

T = TypeVar("T")

NODE_NAMES = ("Person", "Company", "City", "Paper", "Type_9x", "A", "B")
EDGE_NAMES = ("Knows", "WorksAt", "Cites", "Person", "E")
INTERFACE_NAMES = ("Named", "Dated", "Tagged")
PROPERTY_NAMES = ("name", "age", "type", "date", "count", "p", "q", "camelCase", "x_1")
INTERFACE_PROPERTY_NAMES = ("title", "created", "tags")
ENUM_VALUES = ("a", "b", "open", "in-progress", "1", "DONE")

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
finite = st.floats(allow_nan=False, allow_infinity=False)
atoms: st.SearchStrategy[Atom] = st.one_of(
    text, st.integers(-(2**63), 2**64 - 1), finite, st.booleans(), st.none()
)
literals: st.SearchStrategy[Literal] = st.one_of(
    atoms, st.lists(atoms, max_size=3).map(lambda items: tuple(items))
)
scalar_bases = st.sampled_from(list(Base))
list_bases = st.sampled_from([base for base in Base if base is not Base.BLOB])
types: st.SearchStrategy[PropertyType] = st.one_of(
    st.builds(ScalarType, scalar_bases),
    st.builds(ListType, list_bases),
    st.sets(st.sampled_from(ENUM_VALUES), min_size=1).map(lambda v: EnumType(tuple(sorted(v)))),
    st.builds(VectorType, st.integers(1, 4)),
)
annotation_lists = st.just(()) | st.lists(
    st.builds(
        lambda name, value, arguments: Annotation(name, value, True, arguments),
        st.sampled_from(["owner", "pii", "unit"]),
        literals,
        st.lists(st.tuples(st.sampled_from(["since", "by"]), literals), max_size=1).map(tuple),
    )
    | st.builds(Annotation, st.sampled_from(["flag", "deprecated"])),
    max_size=2,
    unique_by=lambda annotation: annotation.name,
).map(lambda items: tuple(items))
descriptions = st.none() | text


def _dates() -> st.SearchStrategy[str]:
    return st.dates().map(lambda day: day.isoformat())


def _base_values(base: Base) -> st.SearchStrategy[Atom]:
    if base in INTEGER_RANGES:
        return st.integers(*INTEGER_RANGES[base])
    match base:
        case Base.BOOL:
            return st.booleans()
        case Base.F32:
            return st.floats(width=32, allow_nan=False, allow_infinity=False)
        case Base.F64:
            return finite
        case Base.DATE:
            return _dates()
        case Base.DATETIME:
            return _dates().map(lambda day: f"{day}T12:00:00Z")
        case _:
            return text


def values(kind: PropertyType) -> st.SearchStrategy[Literal]:
    """Literals that fit the type, as `@default` takes them."""
    match kind:
        case ScalarType(base=base):
            return _base_values(base)
        case ListType(item=item):
            return st.lists(_base_values(item), max_size=3).map(lambda items: tuple(items))
        case EnumType(values=names):
            return st.sampled_from(names)
        case VectorType(dimension=n):
            width = st.floats(width=32, allow_nan=False, allow_infinity=False)
            return st.lists(width, min_size=n, max_size=n).map(lambda items: tuple(items))


@st.composite
def properties(draw: st.DrawFn, name: str) -> PropertyDecl:
    kind = draw(types)
    may_default = kind != ScalarType(Base.BLOB) and not isinstance(kind, VectorType)
    default = draw(st.none() | st.builds(Default, values(kind))) if may_default else None
    return PropertyDecl(
        name=name,
        type=kind,
        nullable=draw(st.booleans()),
        default=default,
        description=draw(descriptions),
        instruction=draw(descriptions),
        annotations=draw(annotation_lists),
    )


def subsets(items: Sequence[T], *, least: int = 0, most: int = 4) -> st.SearchStrategy[list[T]]:
    """Distinct items in any order."""
    if not items:
        return st.just([])
    indexes = st.lists(
        st.integers(0, len(items) - 1), unique=True, min_size=least, max_size=min(most, len(items))
    )
    return indexes.map(lambda chosen: [items[i] for i in chosen])


@st.composite
def _properties(
    draw: st.DrawFn, pool: Sequence[str], *, least: int = 0
) -> tuple[PropertyDecl, ...]:
    names = draw(subsets(pool, least=least))
    return tuple(draw(properties(name)) for name in names)


@st.composite
def interfaces(draw: st.DrawFn, name: str) -> InterfaceDecl:
    props = draw(_properties(INTERFACE_PROPERTY_NAMES))
    comparable = [p.name for p in props if is_comparable(p)]
    return InterfaceDecl(
        name=name,
        properties=props,
        uniques=tuple((n,) for n in draw(subsets(comparable, most=1))),
        indexes=tuple((name,) for name in draw(subsets(comparable, most=1))),
        description=draw(descriptions),
        annotations=draw(annotation_lists),
    )


def _groups(
    names: Sequence[str], *, most: int = 2
) -> st.SearchStrategy[tuple[tuple[str, ...], ...]]:
    """Constraints over one or more names, without duplicates."""
    if not names:
        return st.just(())
    group = subsets(names, least=1, most=3).map(lambda items: tuple(items))
    return st.lists(group, max_size=most, unique=True).map(lambda items: tuple(items))


def is_keyable(prop: PropertyDecl) -> bool:
    """A key is given with every entity, so it has no default."""
    if prop.default is not None:
        return False
    match prop.type:
        case ScalarType(base=base):
            return base is not Base.BLOB and not prop.nullable
        case EnumType():
            return not prop.nullable
        case _:
            return False


def is_comparable(prop: PropertyDecl) -> bool:
    return isinstance(prop.type, EnumType) or (
        isinstance(prop.type, ScalarType) and prop.type.base is not Base.BLOB
    )


def _bounds(base: Base) -> st.SearchStrategy[int | float]:
    if base in FLOATS:
        width = 32 if base is Base.F32 else 64
        return st.floats(width=width, allow_nan=False, allow_infinity=False)  # type: ignore[arg-type]
    return st.integers(*INTEGER_RANGES[base])


@st.composite
def _indexes(
    draw: st.DrawFn, props: Sequence[PropertyDecl], more: Sequence[str] = ()
) -> tuple[tuple[str, ...], ...]:
    """Anything but a blob can be indexed, lists and vectors only by themselves."""
    single = [p.name for p in props if p.type != ScalarType(Base.BLOB)]
    composite = [*more, *(p.name for p in props if is_comparable(p))]
    groups = [(name,) for name in draw(subsets(single, most=1))] + list(draw(_groups(composite)))
    return tuple(dict.fromkeys(groups))


@st.composite
def _ranges(draw: st.DrawFn, props: Sequence[PropertyDecl]) -> tuple[Range, ...]:
    found = []
    for prop in props:
        if prop.default is not None:
            continue  # it would have to lie inside
        match prop.type:
            case ScalarType(base=base) if base in INTEGER_RANGES or base in FLOATS:
                if draw(st.booleans()):
                    low, high = sorted([draw(_bounds(base)), draw(_bounds(base))])
                    side = draw(st.sampled_from(["low", "high", "both"]))
                    found.append(
                        Range(
                            prop.name,
                            low if side != "high" else None,
                            high if side != "low" else None,
                        )
                    )
    return tuple(found)


@st.composite
def _checks(draw: st.DrawFn, props: Sequence[PropertyDecl]) -> tuple[Check, ...]:
    strings = [p.name for p in props if p.type == ScalarType(Base.STRING) and p.default is None]
    patterns = st.sampled_from(["^[a-z]+$", "@", r"\d{2}"])
    return tuple(Check(name, draw(patterns)) for name in draw(subsets(strings, most=1)))


@st.composite
def _embedded(draw: st.DrawFn, props: tuple[PropertyDecl, ...]) -> tuple[PropertyDecl, ...]:
    """Gives some vectors an `@embed` of a String property of the same type."""
    sources = [p.name for p in props if p.type == ScalarType(Base.STRING)]
    if not sources:
        return props
    result = []
    for prop in props:
        changed = prop
        if isinstance(prop.type, VectorType) and draw(st.booleans()):
            model = draw(st.none() | st.just("small"))
            embed = Embed(draw(st.sampled_from(sources)), model)
            changed = msgspec.structs.replace(prop, embed=embed, default=None)
        result.append(changed)
    return tuple(result)


@st.composite
def nodes(draw: st.DrawFn, name: str, available: Sequence[InterfaceDecl] = ()) -> NodeDecl:
    """A node type; interfaces that disagree about a property are not implemented together."""
    inherited: list[PropertyDecl] = []
    implements: list[str] = []
    uniques: list[tuple[str, ...]] = []
    indexes: list[tuple[str, ...]] = []
    for interface in draw(subsets(available, most=2)):
        taken = {p.name for p in inherited}
        if taken.isdisjoint(p.name for p in interface.properties):
            inherited += interface.properties
            uniques += interface.uniques
            indexes += interface.indexes
            implements.append(interface.name)
    own = draw(_embedded(draw(_properties(PROPERTY_NAMES))))
    props = (*inherited, *own)
    keyable = [p.name for p in props if is_keyable(p)]
    comparable = [p.name for p in props if is_comparable(p)]
    return NodeDecl(
        name=name,
        properties=props,
        implements=tuple(implements),
        key=tuple(draw(st.just([]) | subsets(keyable, most=2))),
        uniques=tuple(dict.fromkeys([*uniques, *draw(_groups(comparable))])),
        indexes=tuple(dict.fromkeys([*indexes, *draw(_indexes(props))])),
        ranges=draw(_ranges(props)),
        checks=draw(_checks(props)),
        description=draw(descriptions),
        instruction=draw(descriptions),
        annotations=draw(annotation_lists),
    )


@st.composite
def edges(draw: st.DrawFn, name: str, ends: Sequence[str]) -> EdgeDecl:
    props = draw(_embedded(draw(_properties(PROPERTY_NAMES))))
    keyable = [p.name for p in props if is_keyable(p)]
    comparable = ["src", "dst", *(p.name for p in props if is_comparable(p))]
    held = draw(st.sampled_from([(), (), ("src", "dst"), ("src", "dst"), ("src",), ("dst",)]))
    key = (*held, *draw(subsets(keyable, most=1))) if held else ()
    low = draw(st.integers(0, 2))
    return EdgeDecl(
        name=name,
        source=draw(st.sampled_from(ends)),
        target=draw(st.sampled_from(ends)),
        properties=props,
        key=key,
        uniques=draw(_groups(comparable, most=1)),
        indexes=draw(_indexes(props, ["src", "dst"])),
        ranges=draw(_ranges(props)),
        checks=draw(_checks(props)),
        card=Card(low, draw(st.none() | st.integers(max(low, 1), 4))),
        description=draw(descriptions),
        instruction=draw(descriptions),
        annotations=draw(annotation_lists),
    )


@st.composite
def schemas(draw: st.DrawFn, *, most: int = 3) -> Schema:
    """Any schema the checker would accept, without `@rename_from`."""
    declared = tuple(draw(interfaces(name)) for name in draw(subsets(INTERFACE_NAMES, most=2)))
    node_types = tuple(draw(nodes(name, declared)) for name in draw(subsets(NODE_NAMES, most=most)))
    ends = [node.name for node in node_types]
    edge_names = draw(subsets(EDGE_NAMES, most=most)) if ends else []
    edge_types = tuple(draw(edges(name, ends)) for name in edge_names)
    return Schema(interfaces=declared, nodes=node_types, edges=edge_types)


def type_names(types: Sequence[TypeDecl]) -> list[str]:
    return [t.name for t in types]
