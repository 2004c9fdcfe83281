"""Owns checksums of files as they were first seen: files never change, so later ones must agree."""

from __future__ import annotations

import msgspec

from omnigraph.errors import Corrupt
from omnigraph.store.objects import ObjectStore

PREFIX = "__digests/"


class Digests(msgspec.Struct, frozen=True, kw_only=True):
    """SHA-256 by key."""

    format: int = 1
    files: dict[str, str] = {}


_DECODER = msgspec.json.Decoder(Digests)  # made before there are threads: see `store.versions`


def read_digests(objects: ObjectStore) -> dict[str, str]:
    """Those of all records; what two of them say of one file is the same, or the first counts."""
    known: dict[str, str] = {}
    for key in objects.list(PREFIX):
        try:
            held = _DECODER.decode(objects.get(key))
        except msgspec.MsgspecError as error:
            raise Corrupt(f"{key} is not a record of checksums: {error}.") from error
        known = held.files | known
    return known


def write_digests(objects: ObjectStore, id: str, files: dict[str, str]) -> str:
    key = f"{PREFIX}{id}.json"
    objects.put(key, msgspec.json.encode(Digests(files=files)))
    return key
