"""Owns the golden run cases: files of `tests/golden/gq_run`, one topic each.

```
# what the topic is about
== schema
node Person { name: String @key }
== data
{"type": "Person", "data": {"name": "Alice"}}
== a sentence that names the case
match { $p: Person } return { $p.name }
-- params {"x": 1}
-- rows
["Alice"]
```
`-- rows` holds one JSON list for each row, in order if the query says so; `-- some 2` means any two
of those; `-- error` that running it fails; `-- refused T15` that it does not check. The special
values NaN, Infinity and -Infinity stand for themselves; dates are texts; entities are objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.model.query_data import Dataset, read_dataset

GOLDEN = Path(__file__).parents[1] / "golden" / "gq_run"


@dataclass(frozen=True)
class Case:
    """`outcome` is rows, some, error or refused; `detail` the number or the code."""

    topic: str
    name: str
    text: str
    parameters: dict[str, Any]
    outcome: str
    detail: str
    rows: list[list[Any]]

    def __str__(self) -> str:
        return f"{self.topic}: {self.name}"


@dataclass(frozen=True)
class Topic:
    name: str
    data: Dataset
    cases: tuple[Case, ...]


def read_topic(path: Path) -> Topic:
    _, *sections = path.read_text(encoding="utf-8").split("\n== ")
    parts = dict(section.split("\n", 1) for section in sections)
    assert len(parts) == len(sections), f"{path.name}: two sections have one name"
    schema, data = parts.pop("schema"), parts.pop("data")
    cases = tuple(_case(path.stem, name, body) for name, body in parts.items())
    return Topic(path.stem, read_dataset(schema, data.splitlines()), cases)


def _case(topic: str, name: str, body: str) -> Case:
    text, *rest = ("\n" + body).split("\n-- ")
    parameters: dict[str, Any] = {}
    outcome, detail, rows = "", "", []
    for part in rest:
        head, _, lines = part.partition("\n")
        word, _, detail = head.partition(" ")
        if word == "params":
            parameters = json.loads(detail)
            continue
        outcome = word
        rows = [json.loads(line) for line in lines.splitlines() if line.strip()]
    assert outcome in ("rows", "some", "error", "refused"), f"{topic}: {name}"
    return Case(topic, name, text.strip(), parameters, outcome, detail, rows)


def topics() -> Iterator[Topic]:
    for path in sorted(GOLDEN.glob("*.txt")):
        yield read_topic(path)
