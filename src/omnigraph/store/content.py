"""Owns objects whose name is the hash of what they hold: schemas, catalogs, stored queries. Their
bytes are looked at whenever they are read."""

from __future__ import annotations

import hashlib

from omnigraph.errors import Corrupt
from omnigraph.store.objects import Absent, Ambiguous, ObjectStore


def read_content(objects: ObjectStore, key: str, digest: str, what: str) -> bytes:
    """`what` names it where it is missing or another one than its name says."""
    try:
        data = objects.get(key)
    except Absent:
        raise Corrupt(f"The {what} {key} is missing.") from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise Corrupt(f"The {what} {key} is not what its name says ({len(data)} bytes).")
    return data


def write_content(objects: ObjectStore, key: str, data: bytes) -> None:
    """Having it already is as good."""
    try:
        there = objects.put_if_absent(key, data) or objects.exists(key)
    except Ambiguous:
        there = False
    if not there:  # a store may say "exists" with nothing stored
        objects.put(key, data)  # the name is the content, so writing twice is harmless
