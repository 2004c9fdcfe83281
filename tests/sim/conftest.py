"""Where simulated crashes happen: in memory, because a kill leaves the same files there."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def memory() -> Iterator[Path]:
    """A directory where syncing costs nothing; what a power cut takes has tests of its own."""
    shared = Path("/dev/shm")
    directory = tempfile.mkdtemp(prefix="omnigraph-sim-", dir=shared if shared.is_dir() else None)
    yield Path(directory)
    shutil.rmtree(directory)


@pytest.fixture
def top(memory: Path) -> Iterator[Path]:
    """The directory that the power cut happens to; what it leaves is put beside it."""
    place = memory / uuid.uuid4().hex
    (place / "top").mkdir(parents=True)
    yield place / "top"
    shutil.rmtree(place)
