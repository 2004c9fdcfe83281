"""Owns where jobs, and rows that wait between the stages of a load, are stored beside a graph."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil

from omnigraph.store.disk import require_inside
from omnigraph.store.objects import Absent, ObjectStore
from omnigraph.store.roots import Root

JOBS = "__jobs/"
SPOOL = "__spool/"
_FOLDER = re.compile(rf"{JOBS}[0-9a-f]{{32}}|{SPOOL}[0-9A-Z]{{26}}")


def job_prefix(name: str) -> str:
    """A name may contain anything, so its digest is used."""
    return f"{JOBS}{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def is_passing(key: str) -> bool:
    """Whether a key belongs to a present or past load: nothing of it is part of the graph."""
    return key.startswith((JOBS, SPOOL))


def is_folder(prefix: str) -> bool:
    """Whether this has the form of the folder of one job or one spool, whose contents may be
    deleted, whatever named it."""
    return _FOLDER.fullmatch(prefix) is not None


def delete_below(root: Root, objects: ObjectStore, prefix: str) -> None:
    """Deletes everything in the folder of a job or a spool, or in a part of it."""
    if root.directory is not None:
        require_inside(root.directory, prefix)
        shutil.rmtree(root.directory / prefix, ignore_errors=True)
        return
    with contextlib.suppress(Absent):
        for key in objects.list(f"{prefix}/"):
            objects.delete(key)
