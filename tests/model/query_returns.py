"""Owns drawn results of queries: columns, aggregates, distinct, order, limit and offset."""

from __future__ import annotations

from random import Random

from omnigraph.model.types import Base, ScalarType
from tests.model.query_expressions import Expressions, Known, Parameters

SCALARS = ("int", "float", "text", "bool", "date", "datetime")
ORDERED = ("int", "float", "text", "date", "datetime")


class Returns:
    def __init__(
        self,
        chance: Random,
        expressions: Expressions,
        parameters: Parameters,
        scope: list[Known],
    ) -> None:
        self.chance = chance
        self.expressions = expressions
        self.parameters = parameters
        self.scope = scope
        self.columns: dict[str, str] = {}
        self.keys: list[str] = []
        """What rows may be ordered by among the columns."""

    def text(self) -> str:
        grouped = self.chance.random() < 0.35
        distinct = self.chance.random() < 0.2
        for _ in range(self.chance.randint(0 if grouped else 1, 3)):
            self._plain()
        if self.expressions.paths and self.chance.random() < 0.7:
            written, is_key = self.expressions.of_path()
            self._add("way", f"{written} as way", is_key=is_key)
        if grouped:
            self._aggregates()
        order = self._order(is_output=grouped or distinct)
        word = "return distinct" if distinct else "return"
        columns = ", ".join(self.columns.values())
        self.shown = f"{word} {{ {columns} }}"
        return f"{self.shown}{order}{self._amounts()}"

    @property
    def has_entities(self) -> bool:
        """Whether a column holds entities, which a union has none of."""
        own = {f"${known.name}" for known in self.scope}
        return bool(own & set(self.columns.values())) or "gathered" in self.columns

    def order_of_union(self) -> str:
        if not self.keys or self.chance.random() < 0.4:
            return self._amounts()
        key = self.columns[self.chance.choice(self.keys)].split(" as ")[-1]
        return f" order {{ {key}{self.chance.choice(['', ' desc'])} }}{self._amounts()}"

    def _add(self, name: str, written: str, *, is_key: bool) -> None:
        if name not in self.columns:
            self.columns[name] = written
            if is_key:
                self.keys.append(name)

    def _alias(self) -> str:
        return self.chance.choice(["c", "count", "select", "total"]) + str(len(self.columns))

    def _plain(self) -> None:
        pick = self.chance.random()
        known = self.chance.choice(self.scope)
        held = self.expressions.references(self.scope, *SCALARS)
        other = self.expressions.references(self.scope, "list", "vector")
        if pick < 0.5 and held:
            text, _ = self.chance.choice(held)
            self._add(text[1:], text, is_key=True)
        elif pick < 0.55 and other:
            text, _ = self.chance.choice(other)
            self._add(text[1:], text, is_key=False)
        elif pick < 0.65:
            self._add(known.name, f"${known.name}", is_key=False)
        elif pick < 0.75:
            column = self.chance.choice(["id", "src", "dst"] if known.is_edge else ["id"])
            self._add(f"{known.name}.@{column}", f"${known.name}.@{column}", is_key=True)
        else:
            self._add(alias := self._alias(), f"{self._value()} as {alias}", is_key=True)

    def _value(self) -> str:
        pick = self.chance.random()
        if pick < 0.45:
            return self.expressions.number(self.scope, 2)
        if pick < 0.75:
            return self.expressions.text(self.scope, 2)
        return f"({self.expressions.condition(self.scope, 1)})"

    def _aggregates(self) -> None:
        """A column beside them may use them, and the keys as they are written."""
        for _ in range(self.chance.randint(1, 3)):
            alias = self._alias()
            self._add(alias, f"{self._aggregate()} as {alias}", is_key=True)
        if self.chance.random() < 0.2:
            alias = self._alias()
            self._add(alias, f"count(${self.scope[0].name}) * 2 + 1 as {alias}", is_key=True)
        if self.chance.random() < 0.2:
            held = self.expressions.references(self.scope, *SCALARS)
            text = self.chance.choice(held)[0] if held else f"${self.scope[0].name}"
            word = self.chance.choice(["", "distinct "])
            self._add("gathered", f"collect({word}{text}) as gathered", is_key=False)

    def _aggregate(self) -> str:
        pick = self.chance.random()
        numbers = self.expressions.references(self.scope, "int", "float")
        ordered = self.expressions.references(self.scope, *ORDERED)
        word = self.chance.choice(["", "", "distinct "])
        if pick < 0.3 and numbers:
            text = self.chance.choice(numbers)[0]
            if self.chance.random() < 0.2:
                text = f"{text} * 2"
            return f"{self.chance.choice(['sum', 'avg'])}({word}{text})"
        if pick < 0.6 and ordered:
            return f"{self.chance.choice(['min', 'max'])}({self.chance.choice(ordered)[0]})"
        if pick < 0.8 and ordered:
            return f"count({word}{self.chance.choice(ordered)[0]})"
        return f"count({word}${self.chance.choice(self.scope).name})"

    def _order(self, *, is_output: bool) -> str:
        if self.chance.random() < 0.4:
            return ""
        keys: list[str] = []
        for _ in range(self.chance.randint(1, 2)):
            if self.keys and (is_output or self.chance.random() < 0.6):
                name = self.chance.choice(self.keys)
                keys.append(name if "." not in name else f"${name}")
            elif not is_output:
                keys.append(self._value())
        directed = [f"{key}{self.chance.choice(['', ' asc', ' desc', ' desc'])}" for key in keys]
        return f" order {{ {', '.join(directed)} }}" if keys else ""

    def _amounts(self) -> str:
        amounts = ""
        if self.chance.random() < 0.3:
            count = self.chance.randint(0, 6)
            written = self.expressions.constant(count, ScalarType(Base.I64))
            amounts += f" limit {written}"
        if self.chance.random() < 0.15:
            amounts += f" offset {self.chance.randint(0, 3)}"
        return amounts
