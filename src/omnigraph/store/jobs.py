"""Owns where jobs and the rows that wait between the stages of a load lie beside a graph."""

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
    """A name may hold anything, so its digest is taken."""
    return f"{JOBS}{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def is_passing(key: str) -> bool:
    """Whether a key is of a load that is under way, or was: nothing of it is part of the graph."""
    return key.startswith((JOBS, SPOOL))


def is_folder(prefix: str) -> bool:
    """Whether this is the folder of one job, or of one spool, by its form: what lies below it
    may be deleted, whatever named it."""
    return _FOLDER.fullmatch(prefix) is not None


def delete_below(root: Root, objects: ObjectStore, prefix: str) -> None:
    """Everything below the folder of a job or a spool, or below a part of it."""
    if root.directory is not None:
        require_inside(root.directory, prefix)
        shutil.rmtree(root.directory / prefix, ignore_errors=True)
        return
    with contextlib.suppress(Absent):
        for key in objects.list(f"{prefix}/"):
            objects.delete(key)
