"""Owns adjacency on disk: the ends of an edge table's rows as numbers, beside the table, so that a
cold reader need not read and compare texts.

It is derived: a reader that does not find it, or finds that it belongs to other files, reads the
table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa
import xxhash

from omnigraph.store.fragments import FragmentMark

FORMAT = 2
_DIGEST = 8
_MOST_PACKED = 1 << 17
"""An upper bound of the factor by which zstd can expand its input."""


class _Part(msgspec.Struct, frozen=True, array_like=True):
    fragment: int
    files: tuple[str, ...]
    src: bytes
    dst: bytes


class _Artefact(msgspec.Struct, frozen=True):
    format: int
    sources: bytes
    targets: bytes
    parts: tuple[_Part, ...]


@dataclass(frozen=True)
class Endpoints:
    """The ends of the rows of some fragments, as indexes into two lists of ids."""

    sources: pa.Array
    targets: pa.Array
    parts: Mapping[tuple[str, ...], tuple[np.ndarray, np.ndarray]]
    """By data files, because another branch may give the number of a fragment to another one."""


def artefact_key(location: str) -> str:
    return f"{location}/_adjacency"


def encode_endpoints(
    sources: pa.Array,
    targets: pa.Array,
    parts: Sequence[tuple[FragmentMark, np.ndarray, np.ndarray]],
) -> bytes:
    body = msgspec.msgpack.encode(
        _Artefact(
            format=FORMAT,
            sources=_pack_texts(sources),
            targets=_pack_texts(targets),
            parts=tuple(
                _Part(mark.id, mark.files, _pack(src), _pack(dst)) for mark, src, dst in parts
            ),
        )
    )
    # Compressed numbers with a flipped bit may still unpack, so only a digest shows the damage.
    return xxhash.xxh3_64_digest(body) + body


def decode_endpoints(data: bytes) -> Endpoints | None:
    """None if another release wrote the file or it is damaged: it can be made again."""
    body = data[_DIGEST:]
    if xxhash.xxh3_64_digest(body) != data[:_DIGEST]:
        return None
    try:
        held = msgspec.msgpack.decode(body, type=_Artefact)
        if held.format != FORMAT:
            return None
        sources, targets = _unpack_texts(held.sources), _unpack_texts(held.targets)
        parts = {
            part.files: (_unpack(part.src, len(sources)), _unpack(part.dst, len(targets)))
            for part in held.parts
        }
        return Endpoints(sources, targets, parts)
    except (msgspec.MsgspecError, pa.ArrowException, OSError, ValueError, KeyError, OverflowError):
        return None


def _pack(numbers: np.ndarray) -> bytes:
    raw = numbers.astype(np.int32).tobytes()
    packed: bytes = pa.compress(raw, codec="zstd", asbytes=True)
    return len(raw).to_bytes(8, "little") + packed


def _unpack(data: bytes, count: int) -> np.ndarray:
    """Indexes into a list of this length. The file may come from anybody."""
    size = int.from_bytes(data[:8], "little")
    if size > _MOST_PACKED * len(data):
        raise ValueError("no compression is as good as this")
    raw = pa.decompress(data[8:], decompressed_size=size, codec="zstd")
    places = np.frombuffer(raw, np.int32)
    if len(places) and not (places.min() >= 0 and places.max() < count):
        raise ValueError("a place that is not in the list")
    return places


def _pack_texts(texts: pa.Array) -> bytes:
    table = pa.table({"id": texts})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpack_texts(data: bytes) -> pa.Array:
    rows = pa.ipc.open_stream(data).read_all()
    rows.validate(full=True)
    texts = rows["id"].combine_chunks()
    if texts.type not in (pa.string(), pa.large_string()) or texts.null_count:
        raise ValueError("ids are texts")
    return texts
