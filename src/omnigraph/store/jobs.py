"""Owns where jobs and the rows that wait between the stages of a load lie beside a graph."""

from __future__ import annotations

import contextlib
import hashlib
import shutil

from omnigraph.store.objects import Absent, ObjectStore
from omnigraph.store.roots import Root

JOBS = "__jobs/"
SPOOL = "__spool/"


def job_prefix(name: str) -> str:
    """A name may hold anything, so its digest is taken."""
    return f"{JOBS}{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def is_passing(key: str) -> bool:
    """Whether a key is of a load that is under way, or was: nothing of it is part of the graph."""
    return key.startswith((JOBS, SPOOL))


def delete_below(root: Root, objects: ObjectStore, prefix: str) -> None:
    """Everything below a prefix of a job or a spool."""
    if root.directory is not None:
        shutil.rmtree(root.directory / prefix, ignore_errors=True)
        return
    with contextlib.suppress(Absent):
        for key in objects.list(f"{prefix}/"):
            objects.delete(key)
