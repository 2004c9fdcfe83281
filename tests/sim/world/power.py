"""Owns power cuts: what was not synced is gone, every process with it, and nothing that was
acknowledged is missed. Only worlds whose writes are durable have them."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph.engine.graph import Graph
from tests.sim.power import Disk, watched
from tests.sim.world.place import Clock
from tests.sim.world.steps import Operation, Record, Step, operation

if TYPE_CHECKING:
    from tests.sim.world.world import World


class Power:
    """The disk below a directory, as long as this lasts: what is synced there, and what not."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self._watch = self._watching()
        self._disk = next(self._watch)

    def _watching(self) -> Generator[Disk, None, None]:
        with (
            pytest.MonkeyPatch.context() as patch,
            watched(self._directory.parent, patch, every=False) as disk,
        ):
            yield disk

    def close(self) -> None:
        self._watch.close()

    def cut(self) -> None:
        """The directory holds what was synced, as old as it was, and nothing else."""
        ages = self._clock.ages(self._directory)
        left = self._directory.parent.with_name("left")
        self._disk.now().restore(self._disk.inode, left)
        self.close()
        shutil.rmtree(self._directory)
        (left / self._directory.name).rename(self._directory)
        shutil.rmtree(left)
        self._clock.keep_ages(ages)
        self._watch = self._watching()
        self._disk = next(self._watch)


def draw_cut(world: World, chance: Random) -> dict[str, Any] | None:
    return None if world.power is None else {}


def perform_cut(world: World, g: Graph, record: Record) -> None:
    if world.power is not None:
        world.power.cut()
        for name in list(world.handles):
            world.crash(name)
        world.reopen()


def _always(world: World, step: Step) -> None:
    """Nothing keeps it from happening."""


operation(Operation("power_cut", 8, (), draw_cut, perform_cut, _always, reads=True))
