"""Readers and writers go on while a worker is killed every few seconds: nothing that was
acknowledged is lost, nothing is there twice, and no short answer is taken for a whole one."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import OutcomeUnknown, Unavailable
from omnigraph.settings import Settings
from tests.client.conftest import SCHEMA
from tests.client.served import serving

NOTES = 5_000
PATIENT = Settings(retry_for=60.0)


@dataclass
class Soak:
    """Who writes and reads a graph at an address, and what became of it."""

    root: str
    ended: threading.Event = field(default_factory=threading.Event)
    done: list[str] = field(default_factory=list)
    unknown: dict[str, OutcomeUnknown] = field(default_factory=dict)
    failed: list[BaseException] = field(default_factory=list)
    reads: int = 0

    def write(self, writer: int) -> None:
        with omnigraph.open(self.root, settings=PATIENT) as far:
            for number in itertools.count():
                if self.ended.is_set():
                    return
                name = f"w{writer}-{number:05}"
                try:
                    if number % 3:
                        far.mutate(f'insert Person {{ name: "{name}" }}')
                    else:
                        far.load([{"name": name}], type="Person")
                except OutcomeUnknown as error:
                    self.unknown[name] = error
                else:
                    self.done.append(name)

    def read(self) -> None:
        with omnigraph.open(self.root, settings=PATIENT) as far:
            while not self.ended.is_set():
                with contextlib.suppress(Unavailable):  # it broke off, and said so
                    assert len(far.query("match { $n: Note } return { $n.text }")) == NOTES
                    self.reads += 1

    def kept(self, work: Callable[..., None], *given: int) -> None:
        try:
            work(*given)
        except BaseException as error:  # noqa: BLE001  told at the end
            self.failed.append(error)

    def begin(self) -> list[threading.Thread]:
        threads = [threading.Thread(target=self.kept, args=(self.write, n)) for n in range(3)]
        threads += [threading.Thread(target=self.kept, args=(self.read,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        return threads


@pytest.mark.slow
def test_a_worker_dies_every_few_seconds(tmp_path: Path) -> None:
    seconds = float(os.environ.get("OMNIGRAPH_SOAK", "45"))
    with serving(tmp_path, workers=2) as server:
        soak = Soak(server.new_root())
        with omnigraph.init(soak.root, schema=SCHEMA) as g:
            g.load([{"text": f"note {n:05}"} for n in range(NOTES)], type="Note")
        threads = soak.begin()
        kills = kill_workers(server.process.pid, seconds)
        soak.ended.set()
        for thread in threads:
            thread.join()
        mistakes = [line for line in server.log if "mistake" in line]
        assert not soak.failed, (soak.failed, mistakes[:1])
        with omnigraph.open(soak.root, settings=PATIENT) as g:
            people = g.scan("Person").read_all()["name"].to_pylist()
            commits = sum(1 for one in g.log() if one.kind in ("mutate", "load"))
            assert g.verify().ok
    assert len(people) == len(set(people))
    assert set(soak.done) <= set(people) <= set(soak.done) | set(soak.unknown)
    assert commits == len(people) + 1  # each write once, and the notes
    assert kills >= 3
    assert len(soak.done) > 20
    assert soak.reads > 5


def kill_workers(server: int, seconds: float) -> int:
    until, drawn, kills = time.monotonic() + seconds, random.Random(1), 0
    while time.monotonic() < until:
        time.sleep(drawn.uniform(3, 6))
        if workers := children(server):
            with contextlib.suppress(ProcessLookupError):
                os.kill(drawn.choice(workers), signal.SIGKILL)
                kills += 1
    return kills


def children(process: int) -> list[int]:
    told = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(one) for one in told.split()]
