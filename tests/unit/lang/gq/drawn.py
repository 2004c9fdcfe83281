"""Queries over a drawn schema that the checker must accept."""

from __future__ import annotations

import random
from typing import NamedTuple

from hypothesis import strategies as st

from omnigraph.model.catalog import Catalog, EdgeType, NodeType, Property
from omnigraph.model.types import (
    FLOATS,
    INTEGER_RANGES,
    Base,
    EnumType,
    ListType,
    ScalarType,
    VectorType,
)
from tests.strategies.schemas import schemas
from tests.unit.lang.gq.world import catalog_of
from tests.unit.lang.pg.drawn import accepted


class Drawn(NamedTuple):
    catalog: Catalog
    text: str


def _literal(prop: Property, chance: random.Random) -> str | None:
    match prop.type:
        case EnumType(values=values):
            return f'"{chance.choice(values)}"'
        case ScalarType(base=base) if base in INTEGER_RANGES:
            return str(chance.randint(0, 100))
        case ScalarType(base=base) if base in FLOATS:
            return chance.choice(["1.5", "2", "0.5e3"])
        case ScalarType(base=Base.STRING):
            return chance.choice(['"a"', '"\\n\\u00e9"', '""'])
        case ScalarType(base=Base.BOOL):
            return chance.choice(["true", "false"])
        case ScalarType(base=Base.DATE):
            return chance.choice(['"2024-02-29"', 'date("2020-01-01")'])
        case ScalarType(base=Base.DATETIME):
            return chance.choice(['"2024-02-29T12:00:00Z"', "now()"])
        case _:
            return None


def _condition(variable: str, prop: Property, chance: random.Random) -> str | None:
    access = f"${variable}.{prop.name}"
    literal = _literal(prop, chance)
    if chance.random() < 0.2:
        return f"{access} is {chance.choice(['', 'not '])}null"
    if isinstance(prop.type, ListType):
        return f"length({access}) > {chance.randint(0, 3)}"
    if literal is None:
        return None
    operators = ["=", "!="]
    if prop.type != ScalarType(Base.BOOL):
        operators += ["<", ">=", ">"]
    comparison = f"{access} {chance.choice(operators)} {literal}"
    shape = chance.choice(["{}", "not {}", "({} or {})", "{} and true", f"{access} in [{literal}]"])
    return shape.format(comparison, comparison)


class _Writer:
    def __init__(self, catalog: Catalog, seed: int) -> None:
        self.catalog = catalog
        self.chance = random.Random(seed)
        self.variables: dict[str, NodeType] = {}
        self.count = 0

    def new(self, kind: NodeType) -> str:
        self.count += 1
        name = f"v{self.count}"
        self.variables[name] = kind
        return name

    def clauses(self) -> list[str]:
        kind = self.chance.choice(self.catalog.nodes)
        start = self.new(kind)
        entries = self._entries(kind)
        lines = [f"${start}: {kind.name}{entries}"]
        lines += [self._clause() for _ in range(self.chance.randint(0, 4))]
        return [line for line in lines if line]

    def _entries(self, kind: NodeType) -> str:
        pairs = [(p.name, _literal(p, self.chance)) for p in kind.properties]
        kept = [f"{n}: {v}" for n, v in pairs if v is not None and self.chance.random() < 0.3]
        return f" {{ {', '.join(kept)} }}" if kept else ""

    def _clause(self) -> str:
        name = self.chance.choice(list(self.variables))
        kind = self.variables[name]
        shape = self.chance.random()
        if shape < 0.4 and (hop := self._hop(name, kind)):
            return hop
        if shape < 0.6 and (inner := self._inner(name, kind)):
            return inner
        if kind.properties:
            prop = self.chance.choice(kind.properties)
            return _condition(name, prop, self.chance) or ""
        return ""

    def _edges(self, kind: NodeType) -> list[EdgeType]:
        return [e for e in self.catalog.edges if kind.name in (e.source, e.target)]

    def _hop(self, name: str, kind: NodeType) -> str:
        edges = self._edges(kind)
        if not edges:
            return ""
        edge = self.chance.choice(edges)
        written = edge.name[0].lower() + edge.name[1:]
        end = edge.target if kind.name == edge.source else edge.source
        bounds = ""
        if edge.source == edge.target:
            written = self.chance.choice([written, f"<{written}>", f"({written})"])
            bounds = self.chance.choice(["", "{1,3}", "{0,2}", "{2}"])
        elif self.chance.random() < 0.3:
            self.count += 1
            written = f"$e{self.count}:{written}"
        target = self.new(self.catalog.node_names[end])
        return f"${name} {written}{bounds} ${target}"

    def _inner(self, name: str, kind: NodeType) -> str:
        edges = self._edges(kind)
        if not edges:
            return ""
        edge = self.chance.choice(edges).name
        pattern = f"{{ ${name} {edge} $_ }}"
        options = [f"not {pattern}", f"exists {pattern}", f"count {pattern} > 1"]
        return self.chance.choice([*options, f"optional {pattern}"])

    def text(self) -> str:
        clauses = self.clauses()
        columns = [f"${name}.@id" for name in self.variables]
        name, kind = self.chance.choice(list(self.variables.items()))
        shown = [p for p in kind.properties if p.type != ScalarType(Base.BLOB)]
        columns += [f"${name}.{p.name}" for p in shown]
        order = ""
        if self.chance.random() < 0.4:
            columns.append(f"count(${name}) as total")
            columns += [
                f"max(${name}.{p.name}) as max_{p.name}"
                for p in shown
                if not isinstance(p.type, ListType | VectorType) and p.type != ScalarType(Base.BOOL)
            ]
            order = " order { total desc } limit 3"
        glue = self.chance.choice([", ", " "])
        return f"match {{ {' '.join(clauses)} }} return {{ {glue.join(columns)} }}{order}"


def _draw(schema: object, seed: int) -> Drawn:
    catalog = catalog_of(accepted(schema, seed))  # type: ignore[arg-type]
    text = _Writer(catalog, seed).text() if catalog.nodes else ""
    return Drawn(catalog, text)


drawn_queries = st.builds(_draw, schemas(), st.integers(0, 2**32)).filter(lambda d: bool(d.text))
