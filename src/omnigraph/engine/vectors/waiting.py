"""Owns which vectors are waiting for their text to be embedded: of which properties, in which
rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embedding.port import Model
from omnigraph.engine.embedding.models import dimension_of, model_of
from omnigraph.engine.graph_view import GraphView, find_type
from omnigraph.engine.view import TableView
from omnigraph.errors import InvalidArgument
from omnigraph.lang.suggestions import near
from omnigraph.model.catalog import Catalog, GraphType, Property
from omnigraph.telemetry import Ledger

R = TypeVar("R", pa.RecordBatch, pa.Table)
_BYTES_A_TOKEN = 4


@dataclass(frozen=True)
class TextVector:
    """A vector property and the text property that it is embedded from."""

    kind: GraphType
    vector: Property
    source: str
    model: Model
    dimension: int

    @property
    def name(self) -> str:
        return f"{self.kind.name}.{self.vector.name}"


def find_targets(catalog: Catalog, type: str | None, property: str | None) -> list[TextVector]:
    """All vectors with `@embed`, those of one type, or the one that is named."""
    if type is None:
        if property is not None:
            raise InvalidArgument(
                f"The property {property!r} is of which type?", help="Give the type as well."
            )
        return [target for kind in catalog.types for target in targets_of(kind)]
    kind = find_type(catalog, type)
    found = targets_of(kind)
    if property is None:
        if found:
            return found
        raise InvalidArgument(
            f"No property of {kind.name} is embedded from another.",
            help='Say so in the schema: v: Vector(256)? @embed("text").',
        )
    named = {target.vector.name: target for target in found}
    if property in named:
        return [named[property]]
    if property in {p.name for p in kind.properties}:
        raise InvalidArgument(
            f"{kind.name}.{property} is not embedded from another property.",
            help=f'Say so in the schema: {property}: Vector(256)? @embed("text").',
        )
    guess = near(property, [p.name for p in kind.properties])
    raise InvalidArgument(
        f"{kind.name} has no property {property!r}.",
        help=f"Did you mean {guess!r}?" if guess else "",
    )


def targets_of(kind: GraphType) -> list[TextVector]:
    """The vectors of a type that come from a text."""
    return [
        TextVector(kind, p, p.embed.source, model_of(p), dimension_of(p))
        for p in kind.properties
        if p.embed is not None
    ]


@dataclass(frozen=True)
class Estimate:
    texts: int
    tokens: int


def estimate(target: TextVector, snapshot: GraphView) -> Estimate:
    """How many texts wait, and about how many tokens they have: a token is taken as four bytes."""
    texts = tokens = 0
    for rows in waiting_rows(target, snapshot.view(target.kind), snapshot.io):
        lengths = pc.binary_length(rows.column("text"))
        texts += rows.num_rows
        tokens += int(np.ceil(lengths.to_numpy() / _BYTES_A_TOKEN).sum())
    return Estimate(texts, tokens)


def waiting_rows(target: TextVector, view: TableView, ledger: Ledger) -> Iterator[pa.RecordBatch]:
    """`id` and `text` of the rows that have a text and no vector."""
    vector, source = target.vector.name, target.source
    lacking = pc.field(vector).is_null() & pc.field(source).is_valid()
    for batch in view.scan(ledger, columns=["id", source], filter=lacking):
        yield said(pa.RecordBatch.from_arrays(batch.columns, names=["id", "text"]))


def said(rows: R) -> R:
    """The rows whose text is not blank. A blank text has nothing to embed."""
    return rows.filter(pc.not_equal(pc.utf8_trim_whitespace(rows.column("text")), ""))
