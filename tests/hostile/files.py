"""Valid files of every format that a load takes, and seeded ways to break their bytes."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

SCHEMA = """
node Thing {
  name: String @key
  note: String? @index
  count: I32?
  big: U64?
  size: F64?
  day: Date?
  at: DateTime?
  flag: Bool?
  tags: [String]?
  days: [Date]?
  place: Vector(2)?
  colour: enum(red, green)?
  photo: Blob?
}
"""
_DAY = date(2024, 2, 29)
_NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)


def rows(count: int = 12) -> list[dict[str, Any]]:
    return [
        {
            "name": f"thing-{n}",
            "note": None if n % 5 == 4 else f"a longer text, with ünïcode, of row {n}",
            "count": n,
            "big": n,
            "size": n / 4,
            "day": _DAY,
            "at": _NOON,
            "flag": n % 2 == 0,
            "tags": [f"t{n}", "x"],
            "days": [_DAY],
            "place": [1.0, n / 2],
            "colour": "red" if n % 2 else "green",
        }
        for n in range(count)
    ]


_PLAIN = pa.schema(
    [
        ("name", pa.string()),
        ("note", pa.string()),
        ("count", pa.int32()),
        ("big", pa.uint64()),
        ("size", pa.float64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("ms", "UTC")),
        ("flag", pa.bool_()),
        ("tags", pa.list_(pa.string())),
        ("days", pa.list_(pa.date32())),
        ("place", pa.list_(pa.float32(), 2)),
        ("colour", pa.string()),
    ]
)
_CODED = pa.dictionary(pa.int8(), pa.string())
_UNUSUAL = pa.schema(
    [
        ("name", pa.string_view()),
        ("note", _CODED),
        ("count", pa.int64()),
        ("big", pa.uint8()),
        ("size", pa.float32()),
        ("day", pa.date64()),
        ("at", pa.timestamp("ns")),
        ("flag", pa.bool_()),
        ("tags", pa.large_list(_CODED)),
        ("days", pa.list_(pa.date64())),
        ("place", pa.list_(pa.float64())),
        ("colour", pa.large_string()),
    ]
)


def plain() -> pa.Table:
    return pa.Table.from_pylist(rows(), schema=_PLAIN)


def unusual() -> pa.Table:
    """The same rows in types that are cast: views, dictionaries, other units."""
    given = rows()
    for row in given:
        row["at"] = row["at"].replace(tzinfo=None)
    columns = []
    for field in _UNUSUAL:
        values = [row[field.name] for row in given]
        if field.name == "tags":
            flat = pa.array([tag for tags in values for tag in tags]).dictionary_encode()
            flat = flat.cast(_CODED)
            offsets = pa.array(range(0, 2 * len(values) + 1, 2), pa.int64())
            columns.append(pa.LargeListArray.from_arrays(offsets, flat))
        else:
            columns.append(pa.array(values, field.type))
    return pa.table(columns, schema=_UNUSUAL)


def write_files(directory: Path) -> list[Path]:
    """One valid file of every format and form, each in its own folder: its name is the type."""

    def place(form: str, ending: str) -> Path:
        (directory / form).mkdir(parents=True)
        made.append(directory / form / f"Thing.{ending}")
        return made[-1]

    made: list[Path] = []
    lines = "".join(
        json.dumps({"type": "Thing", "data": row}, default=lambda v: v.isoformat()) + "\n"
        for row in rows()
    ).encode()
    place("jsonl", "jsonl").write_bytes(lines)
    place("gz", "jsonl.gz").write_bytes(gzip.compress(lines, mtime=0))
    place("zst", "jsonl.zst").write_bytes(pa.compress(lines, "zstd", asbytes=True))
    flat = plain().drop_columns(["tags", "days", "place"])
    pcsv.write_csv(flat, place("csv", "csv"))
    place("csv-gz", "csv.gz").write_bytes(
        gzip.compress((made[-1].parent.parent / "csv" / "Thing.csv").read_bytes(), mtime=0)
    )
    for form, table in (("plain", plain()), ("unusual", unusual())):
        stored = table.cast(_stored(table.schema))
        pq.write_table(stored, place(f"parquet-{form}", "parquet"), compression="none")
        pq.write_table(
            stored,
            place(f"parquet-{form}-packed", "parquet"),
            compression="snappy",
            use_dictionary=form == "plain",
            data_page_version="2.0",
            row_group_size=5,
        )
        for compression in (None, "lz4", "zstd"):
            options = pa.ipc.IpcWriteOptions(compression=compression)
            name = f"{form}-{compression or 'bare'}"
            with pa.ipc.new_file(
                place(f"arrow-{name}", "arrow"), table.schema, options=options
            ) as f:
                f.write_table(table, max_chunksize=5)
        with pa.ipc.new_stream(place(f"arrows-{form}", "arrows"), table.schema) as f:
            f.write_table(table, max_chunksize=5)
    return made


def _stored(schema: pa.Schema) -> pa.Schema:
    """Parquet has no views."""
    return pa.schema(
        [
            field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field
            for field in schema
        ]
    )


# Breaking bytes

_NUMBERS = (
    0,
    1,
    -1,
    2,
    127,
    128,
    255,
    2**15,
    2**31 - 1,
    -(2**31),
    2**31,
    2**32 - 1,
    2**62,
    2**63 - 1,
)


def _flip(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    data[at] ^= 1 << rng.randrange(8)


def _byte(data: bytearray, rng: random.Random) -> None:
    data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xC0, 0xFF, rng.randrange(256)))


def _word(data: bytearray, rng: random.Random) -> None:
    size = rng.choice((2, 4, 8))
    at = rng.randrange(len(data)) // size * size
    number = rng.choice(_NUMBERS) % (1 << (8 * size))
    data[at : at + size] = number.to_bytes(size, "little")


def _cut(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def _remove(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice((1, 2, 8, 64))]


def _insert(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice((b"\0", b"\xff", b"\n", b'"', b"\xed\xa0\x80", rng.randbytes(8)))


def _repeat(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    size = rng.choice((1, 8, 64, 512))
    data[at:at] = data[at : at + size] * rng.choice((1, 2, 20))


def _swap(data: bytearray, rng: random.Random) -> None:
    size = rng.choice((4, 8, 16))
    a, b = sorted(rng.randrange(len(data)) for _ in range(2))
    one, other = data[a : a + size], data[b : b + size]
    data[b : b + len(other)] = one[: len(other)].ljust(len(other), b"\0")
    data[a : a + len(one)] = other[: len(one)].ljust(len(one), b"\0")


def _blank(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    size = min(rng.choice((4, 16, 256)), len(data) - at)
    data[at : at + size] = rng.choice((b"\0", b"\xff", b" ")) * size


MUTATORS: tuple[Callable[[bytearray, random.Random], None], ...] = (
    _flip,
    _flip,
    _byte,
    _word,
    _word,
    _cut,
    _remove,
    _insert,
    _repeat,
    _swap,
    _blank,
)


def broken(data: bytes, seed: int) -> bytes:
    """The bytes with one to three things done to them. The same seed gives the same bytes."""
    rng = random.Random(seed)
    held = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if held:
            rng.choice(MUTATORS)(held, rng)
    return bytes(held)
