"""Owns asking the store for its time. Its clock stamps files, so it decides how old they are."""

from __future__ import annotations

from omnigraph.engine.session import Session
from omnigraph.telemetry import Ledger


def read_store_time(session: Session, ledger: Ledger) -> int:
    """In microseconds, as the store stamps an object that is written now."""
    key = f"__wait/clock-{session.runtime.ulid()}"
    objects = session.metered(ledger)
    objects.put(key, b"")
    try:
        (file,) = [one for one in objects.files("__wait/") if one.key == key]
        return file.modified
    finally:
        objects.delete(key)
