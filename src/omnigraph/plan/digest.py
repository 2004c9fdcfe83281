"""Owns the digest of values: equal values have equal digests in every process, whatever library
holds them. Pure.

Arrow can hold the same values in many ways: in chunks, as a slice, with a dictionary, with anything
in the places of nulls, with offsets of four or eight bytes. So can Python: numbers and arrays of
numpy, scalars of Arrow, series of data frames, lists and tuples.
"""

from __future__ import annotations

import enum
import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping, Set
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NAN: Final = struct.pack(">d", float("nan"))


class _Hash(Protocol):
    def update(self, data: Any, /) -> None: ...


def digest_values(values: Iterable[object]) -> str:
    """Sixteen hexadecimal digits. Expressions and Arrow columns may be among the values."""
    whole = hashlib.sha256()
    _add(whole, list(values))
    return whole.hexdigest()[:16]


def _put(into: _Hash, tag: bytes, data: bytes = b"") -> None:
    """Each value includes its kind and length, so no two calls produce the same bytes."""
    into.update(tag + len(data).to_bytes(8))
    into.update(data)


def _add(into: _Hash, value: Any) -> None:
    if value is None:
        _put(into, b"-")
        return
    if isinstance(value, enum.Enum):
        value = value.value
    for kinds, tag, told in _PLAIN:
        if isinstance(value, kinds):
            _put(into, tag, told(value))
            return
    if isinstance(value, list | tuple):
        _put(into, b"l", len(value).to_bytes(8))
        for one in value:
            _add(into, one)
        return
    _add_held(into, value)


def _add_held(into: _Hash, value: Any) -> None:
    """Adds values that other libraries hold."""
    for way in ("as_py", "to_pylist", "tolist", "to_list"):
        given = getattr(value, way, None)
        if callable(given):
            _add(into, given())
            return
    _put(into, b"o", f"{type(value).__module__}.{type(value).__qualname__} {value!r}".encode())


def _instant(value: datetime) -> str:
    """The same moment is the same in any zone. A time without a zone is different."""
    nanoseconds = getattr(value, "nanosecond", 0)  # pandas has them
    plain = datetime(
        *value.timetuple()[:6], value.microsecond, fold=value.fold, tzinfo=value.tzinfo
    )
    told = plain if value.tzinfo is None else plain.astimezone(UTC)
    return f"{told.isoformat()} {nanoseconds}"


def _expression(value: pc.Expression) -> bytes:
    """The text of an expression abbreviates long lists; its serialized form has all literals."""
    _, (serialized,) = value.__reduce__()
    batch = pa.ipc.open_file(pa.py_buffer(serialized)).get_batch(0)
    parts = [DigestColumn(column).digest() for column in batch.columns]
    text = str(value).replace("large_", "")
    return text.encode(errors="surrogatepass") + b"\0" + b"".join(parts)


def _float(value: Any) -> bytes:
    number = float(value)
    return struct.pack(">d", number) if number == number else _NAN


def _pairs(value: Mapping[Any, Any]) -> bytes:
    pairs = sorted((digest_values([key]), digest_values([held])) for key, held in value.items())
    return repr(pairs).encode()


class DigestColumn:
    """The values of an Arrow column."""

    def __init__(self, values: pa.Array | pa.ChunkedArray) -> None:
        self._values = values

    def digest(self) -> bytes:
        chunks = (
            self._values.chunks if isinstance(self._values, pa.ChunkedArray) else [self._values]
        )
        part = _DigestPart(self._values.type)
        for chunk in chunks:
            part.add(chunk)
        return part.finish()


class _DigestPart:
    """Values of one type, in any number of pieces. Nulls, lengths and contents each go into a hash
    of their own, so the division into pieces does not matter."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind = _plain(kind)
        self._nulls = hashlib.sha256()
        self._lengths = hashlib.sha256()
        self._data = hashlib.sha256()
        self._count = 0
        self._parts = [_DigestPart(kind.field(n).type) for n in range(kind.num_fields)]

    def add(self, values: pa.Array) -> None:
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if _is_bytes(self._kind):
            values = values.cast(pa.large_binary())
        if values.null_count:
            missing = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))
            self._nulls.update((missing + self._count).astype("<i8").tobytes())
        self._count += len(values)
        self._add_valid(values.drop_null())

    def _add_valid(self, values: pa.Array) -> None:
        kind = self._kind
        if pa.types.is_null(kind) or not len(values):
            return
        if pa.types.is_struct(kind):
            for part, field in zip(self._parts, values.flatten(), strict=True):
                part.add(field)
        elif pa.types.is_nested(kind):
            if pa.types.is_map(kind):
                values = values.cast(pa.list_(kind.field(0)))
            self._lengths.update(pc.list_value_length(values).cast(pa.int64()).to_numpy().tobytes())
            self._parts[0].add(values.flatten())
        elif _is_bytes(kind):
            self._lengths.update(pc.binary_length(values).to_numpy().tobytes())
            _, offsets, data = values.buffers()
            starts = np.frombuffer(offsets, "<i8")[values.offset : values.offset + len(values) + 1]
            self._data.update(memoryview(data or b"")[int(starts[0]) : int(starts[-1])])
        elif pa.types.is_boolean(kind):
            self._data.update(values.to_numpy(zero_copy_only=False).tobytes())
        elif pa.types.is_floating(kind):
            self._data.update(_one_nan(values.to_numpy()).tobytes())
        else:
            width = kind.bit_width // 8
            start = values.offset * width
            data = memoryview(values.buffers()[1])
            self._data.update(data[start : start + len(values) * width])

    def finish(self) -> bytes:
        whole = hashlib.sha256(f"{_name(self._kind)} {self._count}\0".encode())
        for one in (self._nulls, self._lengths, self._data):
            whole.update(one.digest())
        for part in self._parts:
            whole.update(part.finish())
        return whole.digest()


def _plain(kind: pa.DataType) -> pa.DataType:
    """One type that stands for all types with the same values."""
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_string(kind) or pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary(kind) or pa.types.is_binary_view(kind):
        return pa.large_binary()
    return kind


def _is_bytes(kind: pa.DataType) -> bool:
    """Whether a type is large text or large bytes."""
    return bool(pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))


def _name(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        return "struct " + " ".join(repr(kind.field(n).name) for n in range(kind.num_fields))
    if pa.types.is_fixed_size_list(kind):
        return f"list of {kind.list_size}"
    return "list" if pa.types.is_nested(kind) else str(kind)


def _one_nan(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    odd = np.isnan(values)
    return np.where(odd, values.dtype.type("nan"), values) if odd.any() else values


_PLAIN: Final[tuple[tuple[tuple[type, ...], bytes, Callable[[Any], bytes]], ...]] = (
    ((bool, np.bool_), b"b", lambda value: b"1" if value else b"0"),
    ((Integral,), b"i", lambda value: str(int(value)).encode()),
    ((Decimal,), b"d", lambda value: str(value.normalize()).encode()),
    ((Real,), b"f", _float),
    ((str,), b"s", lambda value: str.encode(value, errors="surrogatepass")),
    ((bytes, bytearray, memoryview), b"y", bytes),
    ((datetime,), b"t", lambda value: _instant(value).encode()),
    ((date,), b"D", lambda value: value.isoformat().encode()),
    ((time,), b"T", lambda value: value.isoformat().encode()),
    ((timedelta,), b"e", lambda value: str(value // timedelta(microseconds=1)).encode()),
    ((Mapping,), b"m", _pairs),
    ((Set,), b"u", lambda value: repr(sorted(digest_values([one]) for one in value)).encode()),
    ((pc.Expression,), b"x", _expression),
    ((DigestColumn,), b"c", lambda value: value.digest()),
)
"""The name of a value's kind, by its type. The first match counts, so dates come after moments."""
