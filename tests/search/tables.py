"""Owns tables of Lance as the store makes them: detached versions, segments, deletions."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import lance
import numpy as np
import pyarrow as pa
from lance import LanceOperation as Op
from lance.dataset import Index, serialize_row_addrs
from lance.fragment import write_fragments
from lance.query import CombinedFieldsQuery, MatchQuery

DIMENSION: Final = 8
SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("bio", pa.string()),
        ("vec", pa.list_(pa.float32(), DIMENSION)),
    ]
)
ANALYSIS: Final = {"base_tokenizer": "icu/split", "stem": False, "remove_stop_words": False}
EVERY_PROBE: Final = 10_000
Texts = Mapping[str, str | None]
Vectors = Mapping[str, Any]


def rows(texts: Texts, vectors: Vectors | None = None) -> pa.Table:
    """Rows by id; without vectors each gets one that depends on its id alone."""
    given = {key: vector_of(key) for key in texts} if vectors is None else vectors
    listed = [None if given[key] is None else [float(x) for x in given[key]] for key in texts]
    columns = {
        "id": list(texts),
        "bio": list(texts.values()),
        "vec": pa.array(listed, SCHEMA.field("vec").type),
    }
    return pa.table(columns, schema=SCHEMA)


def vector_of(key: str) -> Any:
    return np.random.default_rng(list(key.encode())).standard_normal(DIMENSION)


def create(directory: Path) -> Any:
    place = directory / f"{uuid.uuid4().hex}.lance"
    return lance.write_dataset(SCHEMA.empty_table(), str(place), enable_stable_row_ids=False)


def commit(ds: Any, operation: Any) -> Any:
    return lance.LanceDataset.commit(ds, operation, read_version=ds.version, detached=True)


def append(ds: Any, table: pa.Table) -> Any:
    staged = write_fragments(table, ds, mode="append", enable_stable_row_ids=False)
    return commit(ds, Op.Append(staged))


def filled(directory: Path, *fragments: Texts | pa.Table) -> Any:
    """A table of these fragments, without an index."""
    ds = create(directory)
    for fragment in fragments:
        ds = append(ds, fragment if isinstance(fragment, pa.Table) else rows(fragment))
    return ds


def delete(ds: Any, where: str) -> Any:
    gone, changed = [], []
    for fragment in ds.get_fragments():
        left = fragment.delete(where)
        if left is None:
            gone.append(fragment.fragment_id)
        elif str(left.deletion_file) != str(fragment.metadata.deletion_file):
            changed.append(left)
    operation = Op.Update(
        removed_fragment_ids=gone,
        updated_fragments=changed,
        new_fragments=[],
        fields_modified=[],
        fields_for_preserving_frag_bitmap=[],
        update_mode="",
    )
    return commit(ds, operation)


def fragments_of(ds: Any) -> list[int]:
    return [fragment.fragment_id for fragment in ds.get_fragments()]


# Segments.


def text_segment(ds: Any, fragments: Sequence[int]) -> Any:
    built = ds.create_index_uncommitted(
        "bio",
        "INVERTED",
        name="bio_idx",
        fragment_ids=list(fragments),
        replace=True,
        with_position=True,
        **ANALYSIS,
    )
    return ds.merge_existing_index_segments([built])


def vector_segment(ds: Any, fragments: Sequence[int], partitions: int = 2) -> Any:
    return ds.create_index_uncommitted(
        "vec",
        "IVF_FLAT",
        name="vec_idx",
        fragment_ids=list(fragments),
        replace=True,
        metric="cosine",
        num_partitions=partitions,
    )


def segments_of(ds: Any) -> list[Any]:
    return [
        Index(
            uuid=str(segment.uuid),
            name=index.name,
            fields=list(index.fields),
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=set(segment.fragment_ids),
            index_version=segment.index_version,
        )
        for index in ds.describe_indices()
        for segment in index.segments
    ]


def add(ds: Any, *segments: Any, removed: Sequence[Any] = ()) -> Any:
    return commit(ds, Op.CreateIndex(new_indices=list(segments), removed_indices=list(removed)))


def with_text(ds: Any, *covered: Sequence[int]) -> Any:
    """The table with a segment of words over each of these lists of fragments."""
    for fragments in covered:
        ds = add(ds, text_segment(ds, fragments))
    return ds


# Questions.


def match(words: str, **options: Any) -> Any:
    return MatchQuery(words, "bio", **options)


def combined(words: str) -> Any:
    return CombinedFieldsQuery(words, ["bio"])


def scores(ds: Any, query: Any, **options: Any) -> dict[str, float]:
    found = ds.scanner(columns=["id", "_score"], full_text_query=query, **options).to_table()
    return dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))


def distances(
    ds: Any,
    vector: Any,
    k: int = 10_000,
    *,
    probes: int | None = EVERY_PROBE,
    use_index: bool = True,
    **options: Any,
) -> dict[str, float]:
    """Nearest first. Without a number of probes Lance takes its own."""
    asked = {"column": "vec", "q": vector, "k": k, "metric": "cosine", "use_index": use_index}
    if probes is not None:
        asked["nprobes"] = probes
    found = ds.scanner(columns=["id", "_distance"], nearest=asked, **options).to_table()
    return dict(zip(found["id"].to_pylist(), found["_distance"].to_pylist(), strict=True))


def addresses(ds: Any) -> dict[str, int]:
    found = ds.scanner(columns=["id"], with_row_id=True).to_table()
    return dict(zip(found["id"].to_pylist(), found["_rowid"].to_pylist(), strict=True))


def allowing(rows: Iterable[int]) -> Any:
    return serialize_row_addrs([int(address) for address in rows])


def allowing_fragments(fragments: Iterable[int]) -> bytes:
    """Whole fragments, eight bytes each, whatever they hold: a layout of Lance's own."""
    numbers = sorted(fragments)
    listed = b"".join(struct.pack("<II", number, 0) for number in numbers)
    return struct.pack("<I", len(numbers)) + listed
