"""Owns the compression of answers on their way out: zstd or gzip, flushed with every piece."""

from __future__ import annotations

import zlib
from typing import Protocol

import pyarrow as pa

from omnigraph.wire.streams import ByteSink

_GZIP = 31


class Coder(Protocol):
    def code(self, data: bytes) -> bytes: ...

    def end(self) -> bytes: ...


class Gzip:
    def __init__(self) -> None:
        self._packer = zlib.compressobj(1, zlib.DEFLATED, _GZIP)

    def code(self, data: bytes) -> bytes:
        return self._packer.compress(data) + self._packer.flush(zlib.Z_SYNC_FLUSH)

    def end(self) -> bytes:
        return self._packer.flush()


class Zstd:
    def __init__(self) -> None:
        self._sink = ByteSink()
        self._stream = pa.CompressedOutputStream(pa.PythonFile(self._sink, mode="w"), "zstd")

    def code(self, data: bytes) -> bytes:
        self._stream.write(data)
        self._stream.flush()
        return self._sink.taken()

    def end(self) -> bytes:
        self._stream.close()
        return self._sink.taken()


def coder_of(coding: str | None) -> Coder | None:
    match coding:
        case "zstd":
            return Zstd()
        case "gzip":
            return Gzip()
    return None
