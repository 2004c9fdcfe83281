"""Owns the checksums of files from when they were first read. Files never change, so later
checksums must agree."""

from __future__ import annotations

import re

import msgspec
import xxhash

from omnigraph.errors import Corrupt
from omnigraph.model.stored_text import UNDECODABLE
from omnigraph.store.objects import ObjectStore

PREFIX = "__digests/"
_NAME = re.compile(rf"{PREFIX}[0-9A-Z]{{26}}\.json")


class Digests(msgspec.Struct, frozen=True, kw_only=True):
    """Checksums by key (`store.sums`). `sum` is that of the record itself; older records have
    none."""

    format: int = 1
    files: dict[str, str] = {}
    sum: str = ""


_DECODER = msgspec.json.Decoder(Digests)  # made before there are threads: see `store.versions`


def read_digests(objects: ObjectStore) -> dict[str, str]:
    """The checksums in all records. If two records name the same file, they agree, or the first one
    counts."""
    known: dict[str, str] = {}
    for key in objects.list(PREFIX):
        if not _NAME.fullmatch(key):
            continue  # not ours
        try:
            held = _DECODER.decode(objects.get(key))
        except UNDECODABLE as error:
            raise Corrupt(f"{key} is not a record of checksums: {error}.") from error
        if held.sum and held.sum != _sum(held.files):
            raise Corrupt(f"{key} is not what was written: its checksum is another.")
        known = held.files | known
    return known


def write_digests(objects: ObjectStore, id: str, files: dict[str, str]) -> str:
    key = f"{PREFIX}{id}.json"
    objects.put(key, msgspec.json.encode(Digests(files=files, sum=_sum(files))))
    return key


def _sum(files: dict[str, str]) -> str:
    return xxhash.xxh3_64_hexdigest(msgspec.json.encode(files, order="sorted"))
