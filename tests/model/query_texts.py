"""Owns drawn queries: texts that check, over a drawn schema and its data, of every construct of
section 5, and values for their parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from omnigraph.model.catalog import EdgeType
from omnigraph.model.types import ListType, ScalarType
from tests.model.query_data import Dataset
from tests.model.query_expressions import Expressions, Known, Parameters, family
from tests.model.query_returns import Returns
from tests.model.query_worlds import draw_value

BOUNDS = (
    "",
    "",
    "",
    "{1,2}",
    "{0,2}",
    "{2}",
    "{0}",
    "{1,3}",
    "{2,3}",
    "{1,20}",
    "{0,1}",
    "{1,}",
    "{0,}",
    "{2,}",
)


@dataclass(frozen=True)
class DrawnQuery:
    text: str
    parameters: dict[str, Any]


class Writer:
    """Writes one query. Variables are numbered, so that names never clash."""

    def __init__(self, chance: Random, data: Dataset) -> None:
        self.chance = chance
        self.data = data
        self.catalog = data.catalog
        self.parameters = Parameters()
        self.expressions = Expressions(chance, data, self.parameters)
        self.expressions.pattern = self.block
        self.count = 0
        self.inner = 0

    # Patterns.

    def fresh(self, types: frozenset[str], *, is_edge: bool = False) -> Known:
        """Names are given out of order, because ties are broken in the order of names."""
        self.count += 1
        letter = self.chance.choice("abmxyz")
        return Known(f"{letter}{self.count}", types, is_edge=is_edge)

    def block(self, outer: list[Known], depth: int) -> tuple[str, list[Known]]:
        """`{ clauses }` that mostly hang on an outer variable, and the variables in it."""
        self.inner += 1
        try:
            return self._block(outer, depth)
        finally:
            self.inner -= 1

    def _block(self, outer: list[Known], depth: int) -> tuple[str, list[Known]]:
        inner = list(outer)
        clauses: list[str] = []
        is_joined = self._join(outer, clauses) if self.chance.random() < 0.15 else False
        if not is_joined and outer:
            is_joined = self._traverse(inner, clauses, new_only=True)
        if not is_joined:
            clauses.append(self._bind(inner))
        own = [known for known in inner if known not in outer]
        if self.chance.random() < 0.3:
            self._traverse(own, clauses)
            inner = [*outer, *own]
        own = [known for known in inner if known not in outer]
        if self.chance.random() < 0.4 and own:
            clauses.append(self.expressions.condition(own, depth))
        if self.chance.random() < 0.3:
            tested = [known for known in outer if len(known.types) > 1]
            if tested:
                known = self.chance.choice(tested)
                clauses.append(f"${known.name}: {self.chance.choice(sorted(known.types))}")
        if depth > 0 and self.chance.random() < 0.2:
            clauses.append(self._inner_block(inner, depth))
        return "{ " + " ".join(clauses) + " }", inner

    def _join(self, outer: list[Known], clauses: list[str]) -> bool:
        """A traversal between two outer variables."""
        ways = [
            f"${one.name} {self._spelled(edge)} ${other.name}"
            for edge in self.catalog.edges
            for one in outer
            for other in outer
            if edge.source in one.types and edge.target in other.types and not one.is_optional
        ]
        if ways:
            clauses.append(self.chance.choice(ways))
        return bool(ways)

    def _inner_block(self, scope: list[Known], depth: int) -> str:
        nodes = [known for known in scope if not known.is_edge]
        word = self.chance.choice(["not", "not", "optional"])
        return f"{word} {self.block(nodes, depth - 1)[0]}"

    def _bind(self, scope: list[Known]) -> str:
        named = [n for n in self.catalog.nodes if "Named" in n.implements]
        if named and self.chance.random() < 0.25:
            written, types = "Named", frozenset(n.name for n in named)
        else:
            written = self.chance.choice(self.catalog.nodes).name
            types = frozenset({written})
        known = self.fresh(types)
        known.is_declared = True
        scope.append(known)
        return f"${known.name}: {written}{self._entries(known)}"

    def _entries(self, known: Known) -> str:
        kinds = ("int", "float", "text", "bool", "date", "datetime", "list")
        held = [p for p in self.expressions.properties(known) if family(p.type) in kinds]
        if not held or self.chance.random() < 0.8:
            return ""
        prop = self.chance.choice(held)
        if family(prop.type) == "list":
            assert isinstance(prop.type, ListType)
            item = ScalarType(prop.type.item)
            value = self.expressions.constant(draw_value(self.chance, item), item)
        else:
            value = self.expressions.constant(self.expressions.value_like(prop), prop.type)
        return f" {{ {prop.name}: {value} }}"

    # Traversals.

    def _traverse(self, scope: list[Known], clauses: list[str], *, new_only: bool = False) -> bool:
        """Adds a traversal from a variable of the scope, if any edge leaves its types."""
        nodes = [k for k in scope if not k.is_edge and not k.is_optional]
        self.chance.shuffle(nodes)
        for start in nodes:
            edges = [e for e in self.catalog.edges if {e.source, e.target} & start.types]
            if edges:
                clause = self._hop(scope, start, edges, new_only=new_only)
                clauses.extend(clause)
                return bool(clause)
        return False

    def _hop(
        self, scope: list[Known], start: Known, edges: list[EdgeType], *, new_only: bool
    ) -> list[str]:
        pick = self.chance.random()
        if pick < 0.12 and start.is_declared and not new_only:
            return self._wildcard(scope, start)
        edge = self.chance.choice(edges)
        if edge.source == edge.target:
            return self._round_hop(scope, start, edge, new_only=new_only)
        alike = [e for e in edges if (e.source, e.target) == (edge.source, edge.target)]
        names = self.chance.sample(alike, self.chance.randint(1, len(alike)))
        hop = _alternatives([self._spelled(e) for e in names])
        far = edge.target if edge.source in start.types else edge.source
        near = edge.source if edge.source in start.types else edge.target
        if edge.source in start.types and edge.target in start.types:
            return []
        end = self._end(scope, start, frozenset({far}), new_only=new_only)
        if end is None:
            return []
        if not new_only:
            start.types = start.types & {near}
        bounds = self.chance.choice(["", "", "", "{1,1}"])
        return self._written(scope, start, end, hop, bounds, edges=names)

    def _round_hop(
        self, scope: list[Known], start: Known, edge: EdgeType, *, new_only: bool
    ) -> list[str]:
        alike = [e for e in self.catalog.edges if e.source == e.target == edge.source]
        names = self.chance.sample(alike, self.chance.randint(1, len(alike)))
        spelled = [self._spelled(e) for e in names]
        undirected = self.chance.random() < 0.3
        hop = f"<{'|'.join(spelled)}>" if undirected else _alternatives(spelled)
        end = self._end(scope, start, frozenset({edge.source}), new_only=new_only)
        if end is None:
            return []
        if not new_only:
            start.types = start.types & {edge.source}
        return self._written(scope, start, end, hop, self.chance.choice(BOUNDS), edges=names)

    def _written(
        self,
        scope: list[Known],
        start: Known,
        end: Known,
        hop: str,
        bounds: str,
        *,
        edges: list[EdgeType],
    ) -> list[str]:
        left, right = (start, end) if self.chance.random() < 0.75 else (end, start)
        if not bounds and self.chance.random() < 0.35:
            bound = self.fresh(frozenset(e.name for e in edges), is_edge=True)
            if self.chance.random() < 0.15:
                return [f"${left.name} $_:{hop} ${right.name}"]
            scope.append(bound)
            return [f"${left.name} ${bound.name}:{hop} ${right.name}"]
        walked = f"${left.name} {hop}{bounds} ${right.name}"
        is_named = "_" not in (left.name, right.name)
        return self._path(walked) if is_named and self.chance.random() < 0.25 else [walked]

    def _path(self, walked: str) -> list[str]:
        """A named path, asked for in the same pattern or, outside blocks, in the result."""
        self.count += 1
        name = f"p{self.count}"
        word = self.chance.choice(["", "", "shortest ", "all shortest "])
        clauses = [f"${name} = {word}{walked}"]
        if not self.inner:
            self.expressions.paths.append(name)
        if self.chance.random() < (0.5 if self.inner else 0.2):
            clauses.append(self.expressions.on_path(name))
        return clauses

    def _end(
        self, scope: list[Known], start: Known, types: frozenset[str], *, new_only: bool
    ) -> Known | None:
        fitting = [k for k in scope if not k.is_edge and not k.is_optional and k.types == types]
        others = [known for known in fitting if known is not start or self.chance.random() < 0.2]
        if others and not new_only and self.chance.random() < 0.3:
            return self.chance.choice(others)
        if self.chance.random() < 0.12:
            return Known("_", types)
        end = self.fresh(types)
        scope.append(end)
        return end

    def _wildcard(self, scope: list[Known], start: Known) -> list[str]:
        others = [k for k in scope if k.is_declared and not k.is_edge and len(k.types) == 1]
        others.sort(key=lambda known: known is start)
        for other in others:
            forward = [
                e for e in self.catalog.edges if e.source in start.types and e.target in other.types
            ]
            back = [
                e for e in self.catalog.edges if e.target in start.types and e.source in other.types
            ]
            if forward and len(start.types) == 1:
                return [f"${start.name} * ${other.name}"]
            if back and len(start.types) == 1:
                return [f"${start.name} <*> ${other.name}"]
        return []

    def _spelled(self, edge: EdgeType) -> str:
        """Exact, or with another case where no other edge could be meant."""
        return self.chance.choice([edge.name, edge.name[0].lower() + edge.name[1:]])

    # The whole.

    def clauses(self) -> tuple[list[str], list[Known]]:
        scope: list[Known] = []
        structure: list[str] = []
        if self.catalog.edges and self.chance.random() < 0.1:
            edge = self.chance.choice(self.catalog.edges)
            start, end = self.fresh(frozenset({edge.source})), self.fresh(frozenset({edge.target}))
            scope += [start, end]
            structure.append(f"${start.name} {self._spelled(edge)} ${end.name}")
        else:
            structure.append(self._bind(scope))
        if self.chance.random() < 0.2:
            structure.append(self._bind(scope))
        for _ in range(self.chance.choice([0, 1, 1, 2, 2])):
            self._traverse(scope, structure)
        wanted = self.chance.choice([0, 0, 0, 0, 1, 1, 2])
        filters = [self.expressions.condition(scope, 2) for _ in range(wanted)]
        nodes = [known for known in scope if not known.is_edge]
        if self.chance.random() < 0.2:
            filters.append(f"not {self.block(nodes, 1)[0]}")
        self.chance.shuffle(structure)
        optionals = self._optionals(scope)
        late = [k for k in scope if k.is_optional]
        if late and self.chance.random() < 0.3:
            optionals.append(self.expressions.condition(late, 1))
        return [*structure, *_separated(filters), *optionals], scope

    def _optionals(self, scope: list[Known]) -> list[str]:
        found: list[str] = []
        while self.chance.random() < 0.25 and len(found) < 2:
            # A later optional block may go on from what an earlier one found.
            nodes = [replace(k, is_optional=False) for k in scope if not k.is_edge]
            text, inner = self.block(nodes, 1)
            found.append(f"optional {text}")
            for known in inner:
                if known not in nodes:
                    known.is_optional = True
                    scope.append(known)
        return found

    def query(self) -> DrawnQuery:
        clauses, scope = self.clauses()
        returns = Returns(self.chance, self.expressions, self.parameters, scope)
        returned = returns.text()
        body = f"match {{ {' '.join(clauses)} }} {returned}"
        if self.chance.random() < 0.1 and not returns.has_entities:
            body = self._union(clauses, scope, returns)
        declared = self.parameters.declared
        if declared or self.chance.random() < 0.1:
            body = f"query q({', '.join(declared)}) {{ {body} }}"
        return DrawnQuery(body, self.parameters.values)

    def _union(self, clauses: list[str], scope: list[Known], returns: Returns) -> str:
        """The rows of a query beside those of the same query with another condition."""
        other = [*clauses, self.expressions.condition(scope, 1)]
        word = self.chance.choice(["union", "union all"])
        parts = [f"match {{ {' '.join(_separated(c))} }} {returns.shown}" for c in (clauses, other)]
        return f"{f' {word} '.join(parts)}{returns.order_of_union()}"


def _alternatives(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"({'|'.join(names)})"


def _separated(filters: list[str]) -> list[str]:
    """A filter that begins with a parenthesis would be read as a call after a name."""
    return sorted(filters, key=lambda text: not text.startswith("("))


def draw_query(chance: Random, data: Dataset) -> DrawnQuery:
    return Writer(chance, data).query()
