"""Owns one world: takes steps, compares what came of each with the model, remembers the past."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.engine.access import Mode
from omnigraph.engine.graph import Graph
from omnigraph.errors import OmnigraphError
from tests.bench.faults import Crashed
from tests.sim.world import table
from tests.sim.world.actors import Schedule, Troubles
from tests.sim.world.beginning import BEGINNING, FIRST
from tests.sim.world.hands import HeldBranch
from tests.sim.world.migration import begin
from tests.sim.world.model import (
    Refused,
    Unsure,
    schema_text,
)
from tests.sim.world.observing import Observer
from tests.sim.world.past import Known, Line, Past
from tests.sim.world.place import QUICK, Clock, Place
from tests.sim.world.power import Power
from tests.sim.world.steps import DAMAGE, Fault, Record, Step

TELLING = frozenset(
    {"idempotency_mismatch", "branch_moved", "merge_conflict", "revert_conflict", "cursor_mismatch"}
)
"""Codes that a caller acts on. Where there are several reasons to refuse, any may be told."""


CALM = Troubles()
LONG_LIVED = ("long", "fold", "late", "read")


class World:
    def __init__(
        self,
        directory: Path,
        seed: int,
        without: Iterable[str] = (),
        troubles: Troubles = CALM,
        *,
        durable: bool = False,
    ) -> None:
        self.seed = seed
        self.troubles = troubles
        self.schedule: Schedule | None = None
        self.grace = QUICK.grace
        self.without = frozenset(without)
        self.place = Place(directory, Clock(), random.Random(f"{seed} ids"))
        self.past = Past()
        self.records: list[Record] = []
        self.by_label: dict[str, Record] = {}
        self.held: dict[str, HeldBranch] = {}
        self.memory: dict[str, Any] = {}
        """What operations remember from one step to another, by their own names."""
        self.ids: dict[str, str] = {}
        """The ids that entities without a key were given, by mark."""
        text = schema_text(FIRST)
        with omnigraph.init(directory, schema=text, settings=QUICK, runtime=self.place.time()):
            pass
        self.power = Power(directory, self.place.clock) if durable else None
        self.settings = replace(QUICK, durability="full") if durable else QUICK
        self.handles = self._open_handles()
        with self.place.open(mode="r") as g:
            commit = g.snapshot().commit
        first = Known(commit.id, (), commit.kind, commit.created_at, begin(FIRST), "init")
        self.past.commits[commit.id] = first
        self.past.lines["main"] = Line(1, [commit.id], 0)
        self.past.made["main"] = 1
        for number, step in enumerate(BEGINNING):
            self.take(replace(step, number=number - len(BEGINNING)))

    def _open_handles(self) -> dict[str, Graph]:
        return {name: self._open(name) for name in LONG_LIVED}

    def _open(self, name: str) -> Graph:
        match name:
            case "fold":
                settings, skew = replace(self.settings, folding="inline"), 0.0
            case "late":
                settings = replace(self.settings, lookup_rows=2, query_rows=3, cache_bytes=4096)
                skew = 0.0 if "skew" in self.without else -3.0
            case _:
                settings, skew = self.settings, 0.0
        mode: Mode = "r" if name == "read" else "rw"
        return self.place.open(
            mode=mode, settings=settings, skew=skew, door=self._door, on_sleep=self._asleep
        )

    def _door(self, method: str, key: str, effect: Callable[[], Any]) -> Any:
        if self.schedule is None:
            return effect()
        return self.schedule.request(method, key, effect)

    def _asleep(self) -> None:
        if self.schedule is not None:
            self.schedule.pause()

    def close(self) -> None:
        for one in self.handles.values():
            one.close()
        if self.power is not None:
            self.power.close()

    def handle(self, name: str) -> Graph:
        if name not in self.handles and name in LONG_LIVED:
            self.handles[name] = self._open(name)
        return self.handles[name] if name in self.handles else self._open(name)

    def reopen(self) -> None:
        """After a crash all long-lived handles are there again."""
        for name in LONG_LIVED:
            self.handle(name)

    def crash(self, name: str) -> None:
        """Whoever had this handle is dead; the next one opens another."""
        self.memory["crashed"] = True
        self.held = {}
        self.memory.pop("open", None)
        self.handles.pop(name, None)

    # Steps

    def take(self, step: Step) -> Record:
        """Does it, and holds what came of it against the model."""
        what = table.OPERATIONS[step.op]
        foreseen: Exception | None = None
        try:
            handed = what.handed or step.args.get("via") == "held"
            if step.by == "read" and not (what.is_reading(step) or handed):
                raise Refused("the handle reads only")
            what.foresee(self, step)
        except (Refused, Unsure) as known:
            foreseen = known
        record = self.perform(step)
        self._compare(record, foreseen)
        if record.outcome == "ok":
            what.settle(self, record)
        if not what.reads:
            Observer(self).observe([record])
        return record

    def perform(self, step: Step, g: Graph | None = None) -> Record:
        record = Record(step)
        self.records.append(record)
        self.by_label[step.label] = record
        try:
            g = g or self.handle(step.by)
            table.OPERATIONS[step.op].perform(self, g, record)
        except OmnigraphError as error:
            record.error, record.code = str(error), error.code
            record.outcome = "unknown" if error.code == "outcome_unknown" else "refused"
        except Fault:
            raise
        except Crashed as error:
            record.outcome, record.error = "crashed", str(error)
        except Exception as error:
            raise Fault(f"{step.label} raised {type(error).__name__}: {error}") from error
        else:
            record.outcome = "ok"
        return record

    def _compare(self, record: Record, foreseen: Exception | None) -> None:
        label = record.step.label
        if record.code in DAMAGE:
            raise Fault(f"{label} says {record.code}: {record.error}")
        if record.outcome == "refused" and foreseen is None and not self._is_stale(record):
            raise Fault(
                f"{label} was refused, and the model sees no reason: {record.code}: {record.error}"
            )
        if record.outcome == "ok" and isinstance(foreseen, Refused):
            raise Fault(f"{label} was done, and the model refuses it: {foreseen}")
        if (
            record.outcome == "refused"
            and isinstance(foreseen, Refused)
            and foreseen.codes & TELLING
            and record.code not in foreseen.codes
        ):
            raise Fault(
                f"{label} was refused with {record.code} ({record.error}), and the model "
                f"says {sorted(foreseen.codes)}: {foreseen}"
            )

    def _is_stale(self, record: Record) -> bool:
        """A handle that saw an earlier branch of the name says so once, when it writes to it."""
        made = self.past.made.get(record.args.get("branch", ""), 0)
        return record.code == "branch_moved" and made > 1
