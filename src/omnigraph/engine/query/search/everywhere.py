"""Owns the search over a whole graph: words, meaning, or both, in every type, best first.

It consists of ordinary queries, one for each searchable property, so it finds what they find: at
any ref, with and without an index. Their results are combined by rank, because scores of two
properties cannot be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa

from omnigraph.errors import InvalidArgument
from omnigraph.model.catalog import EdgeType, GraphType, Property
from omnigraph.model.types import Base, ScalarType, VectorType

SearchBy = Literal["words", "meaning", "both"]
SCHEMA: Final = pa.schema(
    [
        pa.field("type", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("score", pa.float64(), nullable=False),
        pa.field("property", pa.string(), nullable=False),
        pa.field("passage", pa.string()),
    ]
)
MOST: Final = 1000
_K: Final = 60
_TEXT: Final = ScalarType(Base.STRING)
Ask = Callable[[str, dict[str, Any]], Iterator[dict[str, Any]]]
"""Runs a query with parameters."""


@dataclass(frozen=True)
class Field:
    """A property that is searched. `shown` is the text from which passages are taken."""

    kind: GraphType
    prop: Property
    shown: Property

    @property
    def is_vector(self) -> bool:
        return isinstance(self.prop.type, VectorType)

    @property
    def query(self) -> str:
        """The query for its best entities. Its parameters are `$words` and `$limit`."""
        binding = f"$x: {self.kind.name}"
        if isinstance(self.kind, EdgeType):
            binding = f"$_ $x:{self.kind.name} $_"
        target, shown = f"$x.{self.prop.name}", f"$x.{self.shown.name}"
        if self.is_vector:
            rank, test = f"nearest({target}, $words)", f"{target} is not null"
        else:
            rank, test = f"bm25({target}, $words)", f"search({target}, $words)"
        return (
            "query everywhere($words: String, $limit: I64) {"
            f" match {{ {binding} {test} }}"
            f" return {{ $x.@id as id, highlight({shown}, $words) as passage }}"
            f" order {{ {rank} }} limit $limit }}"
        )


def find_everywhere(ask: Ask, fields: Sequence[Field], words: str, limit: int) -> pa.RecordBatch:
    """The best entities, without duplicates."""
    found: dict[tuple[str, str], list[tuple[float, str, str | None]]] = {}
    for field in fields:
        rows = ask(field.query, {"words": words, "limit": limit})
        for place, row in enumerate(rows):
            hit = (1 / (_K + place), field.prop.name, row["passage"])
            found.setdefault((field.kind.name, row["id"]), []).append(hit)
    scored = [(sum(hit[0] for hit in hits), key, max(hits)) for key, hits in found.items()]
    scored.sort(key=lambda one: (-one[0], one[1]))
    return pa.RecordBatch.from_pylist(
        [
            {"type": kind, "id": key, "score": score, "property": prop, "passage": passage}
            for score, (kind, key), (_, prop, passage) in scored[:limit]
        ],
        schema=SCHEMA,
    )


def fields_of(kinds: Sequence[GraphType], by: SearchBy) -> list[Field]:
    """The searchable properties of these types."""
    found: list[Field] = []
    if by != "meaning":
        texts = [(kind, prop) for kind in kinds for prop in kind.properties if prop.type == _TEXT]
        indexed = [(k, p) for k, p in texts if any(p.name in group for group in k.indexes)]
        found += [Field(kind, prop, prop) for kind, prop in indexed or texts]
    if by != "words":
        vectors = [
            Field(kind, prop, _named(kind, prop.embed.source))
            for kind in kinds
            for prop in kind.properties
            if prop.embed is not None
        ]
        if not vectors:
            raise InvalidArgument(
                "No property of these types is embedded, so nothing can be found by meaning.",
                help='Say @embed("source") of a Vector property in the schema, or search by words.',
            )
        found += vectors
    if not found:
        raise InvalidArgument("None of these types has a text to search.")
    return found


def _named(kind: GraphType, name: str) -> Property:
    return next(prop for prop in kind.properties if prop.name == name)
