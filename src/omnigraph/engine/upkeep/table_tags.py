"""Owns the Lance tags of a branch's tables: a courtesy to other readers of Lance, which may be
late or missing, and which nothing here reads back."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from omnigraph.engine.session import Session
from omnigraph.errors import OmnigraphError
from omnigraph.model.version import GraphVersion, TablePin
from omnigraph.store.lance_tags import point_tag
from omnigraph.telemetry import Ledger

_PARALLEL = 8
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def tag_tables(
    session: Session, version: GraphVersion, keys: Sequence[str], ledger: Ledger
) -> None:
    """Lets the tag of the branch name the version of each table; names that Lance does not take
    have none."""
    if not _TAG.fullmatch(version.branch):
        return

    def tag(pin: TablePin, own: Ledger) -> None:
        with contextlib.suppress(OmnigraphError):
            table = session.tables.open(pin.location, pin.lance_version, own)
            point_tag(table, version.branch, own)

    pins = [version.pins[key] for key in keys if key in version.pins]
    ledgers = [ledger.fork() for _ in pins]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(tag, pins, ledgers))
    ledger.join(ledgers)
