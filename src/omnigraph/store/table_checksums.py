"""Owns checksums of table files from the moment they are written (decision 37).

A process that writes files on a disk reads them back, usually from memory, and carries their
checksums in the text of the fragment or segment. The commit of the table puts them into its
transaction, which is written anyway. On an object store Lance sends the bytes and shows them to
nobody; there the store keeps its own checksums, and ours begin with the first deep check.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import xxhash

from omnigraph.errors import Corrupt
from omnigraph.model.stored_text import UNDECODABLE
from omnigraph.store.disk import explained_files
from omnigraph.store.version_files import properties_of

if TYPE_CHECKING:
    from omnigraph.store.tables import Table

PROPERTY = "omnigraph.sums"
_PART = 1 << 20
_SHORT = 16
"""The length of a checksum made when a file was written; those of SHA-256 are longer."""
_DECODER = msgspec.json.Decoder(dict[str, str])  # made before there are threads


def note_fragment(table: Table, metadata: Any, *, deletion: bool = False) -> str:
    """A newly written fragment as JSON, with the checksums of its files: those of its rows and
    large values, or only that of its new deletion file."""
    told = metadata.to_json()
    if table.directory is not None:
        if deletion:
            keys = [metadata.deletion_file.path(metadata.id)]
        else:
            keys = [f"data/{file._path}" for file in metadata.files]  # noqa: SLF001
            keys += _beside(table, keys) if table.blobs else []
        told["sums"] = sum_files(table, keys)
    return json.dumps(told)


def sum_files(table: Table, paths: Iterable[str]) -> dict[str, str]:
    """By path below the table; empty if the files are not on a disk."""
    if table.directory is None:
        return {}
    base = table.directory / table.location
    return {path: _sum_file(base / path) for path in paths}


def noted(fragments: Iterable[str]) -> dict[str, str]:
    """The checksums in the texts of fragments."""
    found: dict[str, str] = {}
    for text in fragments:
        held = json.loads(text).get("sums")
        if isinstance(held, dict):
            found |= {str(path): str(value) for path, value in held.items()}
    return found


def properties(sums: Mapping[str, str]) -> dict[str, str]:
    """What a transaction carries, beginning with a checksum of itself."""
    if not sums:
        return {}
    body = json.dumps(dict(sums), separators=(",", ":"))
    return {PROPERTY: xxhash.xxh3_64_hexdigest(body.encode()) + body}


def read_sums(transaction: bytes, key: str) -> dict[str, str]:
    """The checksums by key that the file of a transaction holds."""
    location = key.rsplit("/", 2)[0]
    try:
        text = properties_of(transaction).get(PROPERTY)
        if text is None:
            return {}
        own, body = text[:_SHORT], text[_SHORT:]
        if xxhash.xxh3_64_hexdigest(body.encode()) != own:
            raise Corrupt(f"The checksums in {key} are not what was written.")
        return {f"{location}/{path}": value for path, value in _DECODER.decode(body).items()}
    except UNDECODABLE as error:
        raise Corrupt(f"{key} cannot be read: {error}.") from error


def fits(data: bytes, known: str) -> bool:
    """Whether these bytes have a known checksum, of either kind."""
    digest = _digest(known)
    digest.update(data)
    return bool(digest.hexdigest() == known)


def _digest(known: str) -> Any:
    return xxhash.xxh3_64() if len(known) == _SHORT else hashlib.sha256()


@dataclass(frozen=True)
class ChecksumResult:
    """A file that is being copied. A damaged one is refused with its last part."""

    key: str
    known: str | None

    def passing(self, parts: Iterator[bytes]) -> Iterator[bytes]:
        if self.known is None:
            yield from parts
            return
        digest = _digest(self.known)
        for part in parts:
            digest.update(part)
            yield part
        if digest.hexdigest() != self.known:
            raise Corrupt(f"The bytes of {self.key} are not what they were.")


def _sum_file(path: Path) -> str:
    digest = xxhash.xxh3_64()
    with explained_files(str(path)), path.open("rb", buffering=0) as file:
        while part := file.read(_PART):
            digest.update(part)
    return digest.hexdigest()


def _beside(table: Table, paths: Iterable[str]) -> list[str]:
    assert table.directory is not None
    base = table.directory / table.location
    folders = [base / path.rsplit(".", 1)[0] for path in paths]
    found = [one for folder in folders for one in folder.rglob("*") if one.is_file()]
    return [one.relative_to(base).as_posix() for one in found]
