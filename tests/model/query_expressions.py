"""Owns drawn expressions of `.gq`: well typed over the variables of a scope, with literals and
parameters that often meet the data."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from random import Random
from typing import Any, Final

from omnigraph.model.catalog import Catalog, GraphType, Property
from omnigraph.model.types import (
    FLOATS,
    INTEGER_RANGES,
    Base,
    EnumType,
    ListType,
    PropertyType,
    ScalarType,
    VectorType,
    type_text,
)
from tests.model.query_data import Dataset
from tests.model.query_values import instant_text
from tests.model.query_worlds import draw_value

PATTERNS: Final = ("^a", "a|b", "[a-c]+z?", "", "z")
"""What RE2 and Python read alike."""
ORDERED: Final = ("<", "<=", ">", ">=")
AWKWARD: Final[tuple[tuple[Base, int | float], ...]] = (
    (Base.U64, 2**64 - 1), (Base.U64, 2**63), (Base.U64, 1), (Base.I64, -(2**63)),
    (Base.I64, 2**63 - 1), (Base.I64, 2**53 + 1), (Base.I64, -1), (Base.I32, 2), (Base.U32, 2**31),
    (Base.F64, 2.0**63), (Base.F64, 2.0**64), (Base.F64, 0.1), (Base.F64, 1e300), (Base.F64, -0.5),
    (Base.F32, 0.1), (Base.F32, 1.5), (Base.F32, 16777217.0), (Base.F64, 9007199254740992.0),
)  # fmt: skip
"""Numbers of one type that comparisons with another may get wrong."""


@dataclass
class Known:
    """A variable of a scope. `types` are the names that it may still have."""

    name: str
    types: frozenset[str]
    is_edge: bool = False
    is_optional: bool = False
    is_declared: bool = False


@dataclass
class Parameters:
    """What the query declares, and what is given for it."""

    declared: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)


def family(kind: PropertyType) -> str:
    match kind:
        case EnumType():
            return "text"
        case ListType():
            return "list"
        case VectorType():
            return "vector"
        case ScalarType(base=base) if base in INTEGER_RANGES:
            return "int"
        case ScalarType(base=base) if base in FLOATS:
            return "float"
        case ScalarType(base=base):
            return "text" if base is Base.STRING else base.value.lower()


def written(value: Any) -> str:
    """The literal of a value; a number without its sign, which is an operator."""
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case datetime():
            return f'"{instant_text(value)}"'
        case date():
            return f'"{value.isoformat()}"'
        case int():
            return str(value)
        case float():
            text = repr(abs(value))
            plain = text if "." in text or "e" not in text else text.replace("e", ".0e")
            return f"-{plain}" if value < 0 else plain
        case tuple():
            return "[" + ", ".join(written(item) for item in value) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)


class Expressions:
    """Draws expressions. `pattern` makes `{ clauses }` around variables of the scope, and gives
    the scope inside."""

    def __init__(self, chance: Random, data: Dataset, parameters: Parameters) -> None:
        self.chance = chance
        self.data = data
        self.catalog: Catalog = data.catalog
        self.parameters = parameters
        self.items = 0
        self.paths: list[str] = []
        """Named paths of the pattern, outside blocks."""
        self.pattern: Callable[[list[Known], int], tuple[str, list[Known]]]

    # Paths.

    def on_path(self, name: str) -> str:
        pick = self.chance.random()
        if pick < 0.6:
            sign = self.chance.choice(["<", "<=", "<=", ">="])
            return f"length(${name}) {sign} {self.chance.randint(1, 3)}"
        if pick < 0.8:
            return f"size(nodes(${name})) > {self.chance.randint(0, 1)}"
        return f"size(edges(${name})) < {self.chance.randint(1, 4)}"

    def of_path(self) -> tuple[str, bool]:
        """Something to return, and whether rows may be ordered by it."""
        name = self.chance.choice(self.paths)
        part = self.chance.choice(["nodes", "edges", "length"])
        return f"{part}(${name})", part == "length"

    # Lists.

    def quantified(self, scope: list[Known], depth: int) -> str | None:
        """A condition on the items of a list, which may ask for the row too."""
        lists = self.references(scope, "list")
        if not lists:
            return None
        text, prop = self.chance.choice(lists)
        assert isinstance(prop.type, ListType)
        item = ScalarType(prop.type.item)
        self.items += 1
        name = f"i{self.items}"
        value = self.constant(draw_value(self.chance, item), item)
        signs = ORDERED if family(item) in ("int", "float", "text", "date", "datetime") else ()
        condition = f"${name} {self.chance.choice(['=', '!=', *signs])} {value}"
        if self.chance.random() < 0.3:
            joint = self.chance.choice(["and", "or"])
            condition = f"{condition} {joint} {self.condition(scope, depth - 1)}"
        word = self.chance.choice(["any", "all", "none"])
        return f"{word}(${name} in {text} where {condition})"

    # References.

    def owners(self, known: Known) -> list[GraphType]:
        named = self.catalog.edge_names if known.is_edge else self.catalog.node_names
        return [named[name] for name in sorted(known.types)]

    def properties(self, known: Known) -> list[Property]:
        """Those that every type of the variable has, with one type."""
        first, *others = self.owners(known)
        found = []
        for prop in first.properties:
            same = [p for o in others for p in o.properties if p.name == prop.name]
            if len(same) == len(others) and all(p.type == prop.type for p in same):
                found.append(prop)
        return found

    def references(self, scope: list[Known], *families: str) -> list[tuple[str, Property]]:
        return [
            (f"${known.name}.{prop.name}", prop)
            for known in scope
            for prop in self.properties(known)
            if family(prop.type) in families
        ]

    def value_like(self, prop: Property) -> Any:
        """A value of the property, mostly one that is in the data."""
        tables = (*self.data.nodes.values(), *self.data.edges.values())
        stored = [row[prop.name] for rows in tables for row in rows if prop.name in row]
        kind = prop.type
        fitting = [x for x in stored if x is not None and _fits(x, kind)]
        if fitting and self.chance.random() < 0.7:
            return self.chance.choice(fitting)
        return draw_value(self.chance, kind)

    def constant(self, value: Any, kind: PropertyType) -> str:
        """A literal, or a parameter that holds the value."""
        if isinstance(kind, EnumType):
            kind = ScalarType(Base.STRING)
        if not _has_literal(value) or self.chance.random() < 0.2:
            return self._parameter(value, kind)
        return written(value)

    def _parameter(self, value: Any, kind: PropertyType) -> str:
        name = f"p{len(self.parameters.declared)}"
        shape = self.chance.random()
        declared = f"${name}: {type_text(kind)}"
        if shape < 0.2 and _has_literal(value):
            self.parameters.declared.append(f"{declared} = {written(value)}")
        elif shape < 0.3:
            self.parameters.declared.append(f"{declared}?")
        else:
            self.parameters.declared.append(f"{declared}{self.chance.choice(['', '?'])}")
            self.parameters.values[name] = list(value) if isinstance(value, tuple) else value
        return f"${name}"

    def awkward(self) -> str:
        base, value = self.chance.choice(AWKWARD)
        is_plain = base in (Base.I64, Base.F64) or value >= 2**63
        if is_plain and self.chance.random() < 0.5:
            return written(value)
        return self._parameter(value, ScalarType(base))

    # Numbers.

    def number(self, scope: list[Known], depth: int) -> str:
        held = self.references(scope, "int", "float")
        pick = self.chance.random()
        if depth <= 0 or pick < 0.35:
            if held and self.chance.random() < 0.75:
                return self.chance.choice(held)[0]
            if self.chance.random() < 0.5:
                return self.constant(self.chance.randint(0, 4), ScalarType(Base.I64))
            if self.chance.random() < 0.1:
                return self.awkward()
            value = self.chance.choice([0.5, 1.5, 2.0, 0.0, -1.0])
            return self.constant(value, ScalarType(Base.F64))
        if pick < 0.6:
            operator = self.chance.choice("+-*/%")
            return f"({self.number(scope, depth - 1)} {operator} {self.number(scope, depth - 1)})"
        if pick < 0.71:
            function = self.chance.choice(["abs", "round", "floor", "ceil"])
            return f"{function}({self.number(scope, depth - 1)})"
        if pick < 0.75:
            return f"(-{self.number(scope, 0)})"
        if pick < 0.88:
            return self._measured(scope, depth)
        if pick < 0.9:
            return self._case(scope, depth, lambda: self.number(scope, 0))
        if pick < 0.93:
            return self._coalesced(scope, "int", lambda: self.number(scope, 0))
        return self._over_pattern(scope, depth, ("int", "float"), ("sum", "avg", "min", "max"))

    def _measured(self, scope: list[Known], depth: int) -> str:
        lists = [text for text, _ in self.references(scope, "list")]
        moments = [text for text, _ in self.references(scope, "date", "datetime")]
        if moments and self.chance.random() < 0.7:
            part = self.chance.choice(["year", "month", "day"])
            return f"{part}({self.chance.choice(moments)})"
        measure = self.chance.choice(["length", "size"])
        if lists and self.chance.random() < 0.5:
            return f"{measure}({self.chance.choice(lists)})"
        if self.chance.random() < 0.2:
            mark = self.text(scope, 0)
            return f"{measure}(split({self.text(scope, depth - 1)}, {mark}))"
        return f"{measure}({self.text(scope, depth - 1)})"

    def _case(self, scope: list[Known], depth: int, value: Callable[[], str]) -> str:
        """Numbers of a branch are integers or floats, so that all have a common type."""
        branches = " ".join(
            f"when {self.condition(scope, depth - 1)} then {value()}"
            for _ in range(self.chance.randint(1, 2))
        )
        otherwise = f" else {value()}" if self.chance.random() < 0.6 else ""
        return f"case {branches}{otherwise} end"

    def _coalesced(self, scope: list[Known], kind: str, other: Callable[[], str]) -> str:
        """Unsigned 64-bit numbers have no common type with signed ones."""
        held = [
            text for text, prop in self.references(scope, kind) if prop.type != ScalarType(Base.U64)
        ]
        first = self.chance.choice(held) if held else "null"
        second = other() if kind != "int" else str(self.chance.randint(0, 3))
        return f"coalesce({first}, {second})"

    def _over_pattern(
        self, scope: list[Known], depth: int, kinds: tuple[str, ...], functions: tuple[str, ...]
    ) -> str:
        nodes = [known for known in scope if not known.is_edge and not known.is_optional]
        pattern, inner = self.pattern(nodes, depth - 1)
        own = [known for known in inner if known not in nodes]
        held = self.references(own, *kinds)
        if held and self.chance.random() < 0.85:
            return f"{self.chance.choice(functions)}({self.chance.choice(held)[0]}) {pattern}"
        if "int" in kinds:
            return f"count {pattern}"
        return self.text(scope, 0)

    # Texts, dates.

    def text(self, scope: list[Known], depth: int) -> str:
        held = self.references(scope, "text")
        pick = self.chance.random()
        if depth <= 0 or pick < 0.4:
            if held and self.chance.random() < 0.7:
                return self.chance.choice(held)[0]
            if scope and self.chance.random() < 0.5:
                known = self.chance.choice(scope)
                column = self.chance.choice(["id", "src", "dst"] if known.is_edge else ["id"])
                return f"${known.name}.@{column}"
            text = draw_value(self.chance, ScalarType(Base.STRING))
            return self.constant(text, ScalarType(Base.STRING))
        if pick < 0.6:
            return f"({self.text(scope, depth - 1)} + {self.text(scope, depth - 1)})"
        if pick < 0.65:
            text, part, by = (self.text(scope, depth - 1) for _ in range(3))
            return f"replace({text}, {part}, {by})"
        if pick < 0.69:
            start = self.constant(self.chance.randint(-1, 3), ScalarType(Base.I64))
            length = f", {self.constant(self.chance.randint(-1, 3), ScalarType(Base.I64))}"
            some = length if self.chance.random() < 0.6 else ""
            return f"substring({self.text(scope, depth - 1)}, {start}{some})"
        if pick < 0.72:
            return self._case(scope, depth, lambda: self.text(scope, 0))
        if pick < 0.74 and scope:
            return f"${self.chance.choice(scope).name}.@type"
        if pick < 0.8:
            function = self.chance.choice(["lower", "upper", "trim", "toString"])
            return f"{function}({self.text(scope, depth - 1)})"
        if pick < 0.9:
            return self._coalesced(scope, "text", lambda: self.text(scope, 0))
        if pick < 0.95:
            return self._over_pattern(scope, depth, ("text",), ("min", "max"))
        plain = self.references(scope, "int", "float", "bool", "date", "datetime")
        return f"toString({self.chance.choice(plain)[0]})" if plain else self.text(scope, 0)

    def moment(self, scope: list[Known], kind: str) -> str:
        held = [text for text, _ in self.references(scope, kind)]
        other = [t for t, _ in self.references(scope, "datetime" if kind == "date" else "date")]
        base = Base.DATE if kind == "date" else Base.DATETIME
        if self.chance.random() < 0.15:
            return self._moved(scope, kind)
        if other and self.chance.random() < 0.45:
            return f"{kind}({self.chance.choice(other)})"
        if held and self.chance.random() < 0.7:
            return self.chance.choice(held)
        if kind == "datetime" and self.chance.random() < 0.2:
            return "now()"
        return f"{kind}({written(draw_value(self.chance, ScalarType(base)))})"

    def _moved(self, scope: list[Known], kind: str) -> str:
        units = ["weeks", "days"] + ["hours", "minutes", "seconds"] * (kind == "datetime")
        length = f"{self.chance.choice(units)}({self.chance.randint(0, 40)})"
        moment = self.moment(scope, kind)
        sign = self.chance.choice("+-")
        if self.chance.random() < 0.3:
            return f"({length} + {moment})"
        return f"({moment} {sign} {length})"

    # Conditions.

    def condition(self, scope: list[Known], depth: int) -> str:
        pick = self.chance.random()
        if depth > 0 and pick < 0.22:
            parts = [self.condition(scope, depth - 1) for _ in range(self.chance.randint(2, 3))]
            joined = f" {self.chance.choice(['and', 'or'])} ".join(parts)
            return f"({joined})"
        if depth > 0 and pick < 0.3:
            return f"not ({self.condition(scope, depth - 1)})"
        if depth > 0 and pick < 0.36:
            nodes = [known for known in scope if not known.is_edge and not known.is_optional]
            return f"exists {self.pattern(nodes, depth - 1)[0]}"
        if pick < 0.38 and scope:
            known = self.chance.choice(scope)
            return f"(${known.name} is {self.chance.choice(['', 'not '])}null)"
        if pick < 0.41:
            about = self.quantified(scope, depth)
            if about is not None:
                return about
        if pick < 0.75:
            about = self._about_property(scope)
            if about is not None:
                return about
        return self._compared(scope, depth)

    def _compared(self, scope: list[Known], depth: int) -> str:
        operator = self.chance.choice(["=", "!=", *ORDERED])
        pick = self.chance.random()
        same = [(a, b) for a in scope for b in scope if a is not b and a.types & b.types]
        same = [(a, b) for a, b in same if a.is_edge == b.is_edge]
        if same and pick < 0.2:
            a, b = self.chance.choice(same)
            return f"${a.name} {self.chance.choice(['=', '!='])} ${b.name}"
        if pick < 0.55:
            left = self.number(scope, depth)
            return f"{_bare(left)} {operator} {self.number(scope, depth - 1)}"
        if pick < 0.8:
            left = self.text(scope, depth)
            tests = ["contains", "starts_with", "ends_with"]
            if self.chance.random() < 0.1:
                return f"{self.chance.choice(tests)}({left}, {self.text(scope, depth - 1)})"
            if self.chance.random() < 0.1:
                pattern = self.constant(self.chance.choice(PATTERNS), ScalarType(Base.STRING))
                return f"matches({left}, {pattern})"
            word = self.chance.choice([operator, *tests])
            return f"{_bare(left)} {word} {self.text(scope, depth - 1)}"
        kind = self.chance.choice(["date", "datetime"])
        return f"{self.moment(scope, kind)} {operator} {self.moment(scope, kind)}"

    def _about_property(self, scope: list[Known]) -> str | None:
        every = ("int", "float", "text", "bool", "date", "datetime", "list", "vector", "blob")
        held = self.references(scope, *every)
        if not held:
            return None
        text, prop = self.chance.choice(held)
        kind = family(prop.type)
        if kind in ("vector", "blob") or self.chance.random() < 0.12:
            return f"{text} is {self.chance.choice(['', 'not '])}null"
        if kind == "list":
            assert isinstance(prop.type, ListType)
            item = ScalarType(prop.type.item)
            value = self.constant(draw_value(self.chance, item), item)
            return (
                f"{text} contains {value}"
                if self.chance.random() < 0.6
                else f"{_bare(value)} in {text}"
            )
        if kind in ("int", "float") and self.chance.random() < 0.25:
            if self.chance.random() < 0.3:
                return f"{text} in [{self.awkward()}, {self.number(scope, 0)}]"
            return f"{text} {self.chance.choice(['=', '!=', *ORDERED])} {self.awkward()}"
        value = self.value_like(prop)
        if kind == "bool":
            return f"{text} {self.chance.choice(['=', '!='])} {written(value)}"
        if self.chance.random() < 0.2 and not isinstance(prop.type, EnumType):
            assert isinstance(prop.type, ScalarType)
            items = tuple(self.value_like(prop) for _ in range(self.chance.randint(0, 3)))
            return f"{text} in {self.constant(items, ListType(prop.type.base))}"
        operator = self.chance.choice(["=", "=", "!=", *ORDERED])
        return f"{text} {operator} {self.constant(value, prop.type)}"


def _has_literal(value: Any) -> bool:
    """NaN and infinities have none, and neither has a list with one."""
    items = value if isinstance(value, tuple) else (value,)
    return all(not isinstance(item, float) or item - item == 0 for item in items)


def _bare(text: str) -> str:
    """A filter never starts with a variable by itself, nor with a sign."""
    starts = text.startswith("-") or (text.startswith("$") and "." not in text)
    return f"({text})" if starts else text


def _fits(value: Any, kind: PropertyType) -> bool:
    """Properties of one name may have other types elsewhere."""
    match family(kind):
        case "int":
            assert isinstance(kind, ScalarType)
            low, high = INTEGER_RANGES[kind.base]
            return type(value) is int and low <= value <= high
        case "float":
            return type(value) is float
        case "text":
            return isinstance(value, str) and (
                not isinstance(kind, EnumType) or value in kind.values
            )
        case "date":
            return type(value) is date
        case "datetime":
            return isinstance(value, datetime)
        case "bool":
            return isinstance(value, bool)
        case _:
            return False
