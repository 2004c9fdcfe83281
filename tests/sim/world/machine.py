"""Owns what a machine does to a program: threads that share a handle while maintenance runs,
processes that fork, syncs and tables that fail. Each leaves the world as it was, or as the model
says; which thread comes when is the machine's choice, and nothing else hangs on it."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import lance
import pytest

from omnigraph.engine.graph import Graph
from omnigraph.engine.upkeep.optimize import optimize
from omnigraph.errors import OmnigraphError, OutcomeUnknown
from omnigraph.plan.optimize import Limits
from omnigraph.store.versions import encode_branch
from tests.processes.forks import in_child, told
from tests.sim.world.checks import check_branch
from tests.sim.world.hands import Hand, draw_place, foresee_place, state_of, take
from tests.sim.world.place import Clock, Place
from tests.sim.world.statements import Statement, run_statements
from tests.sim.world.steps import Fault, Operation, Record, Step, operation
from tests.sim.world.writing import NAMES, say, statements_effect

if TYPE_CHECKING:
    from tests.sim.world.world import World

READERS = ("scan", "query", "keys", "scan")


def _draw_branch(world: World, chance: Random) -> dict[str, Any] | None:
    return {"branch": chance.choice(sorted(world.past.lines)), "roll": chance.getrandbits(16)}


def _foresee_reading(world: World, step: Step) -> None:
    foresee_place(world, step.args, writing=False)


# Threads of one handle


@contextmanager
def _twin(world: World, record: Record) -> Iterator[Graph]:
    """The graph in another place and with another clock: what happens there, in whatever order,
    changes nothing here."""
    place = world.place.directory.parent / f"twin-{record.step.label}"
    shutil.copytree(world.place.directory, place)
    clock = Clock()
    clock.time = world.place.clock.time
    try:
        with Place(place, clock, Random(record.step.label)).open() as g:
            yield g
    finally:
        shutil.rmtree(place, ignore_errors=True)


def perform_crowd(world: World, g: Graph, record: Record) -> None:
    """Readers find what the model says, however often they ask while indexes are built."""
    branch = record.args["branch"]
    if branch not in world.past.lines:
        return
    wrong: list[BaseException] = []
    done = threading.Event()

    def read(twin: Graph, how: str) -> None:
        try:
            while not done.is_set():
                check_branch(world, twin, "a thread", branch, how)
        except BaseException as error:  # noqa: BLE001  (told by who started it)
            wrong.append(error)

    with _twin(world, record) as twin:
        check_branch(world, twin, "the twin", branch, "scan")
        threads = [threading.Thread(target=read, args=(twin, how)) for how in READERS]
        for thread in threads:
            thread.start()
        try:
            optimize(twin._session, branch, None, limits=Limits(index_rows=1, backlog=0))
        finally:
            done.set()
            for thread in threads:
                thread.join()
        check_branch(world, twin, "the twin", branch, "keys")
    if wrong:
        raise Fault(f"a thread beside maintenance failed: {type(wrong[0]).__name__}: {wrong[0]}")


operation(Operation("crowd", 1, (), _draw_branch, perform_crowd, _foresee_reading, reads=True))


# Forks


def perform_fork(world: World, g: Graph, record: Record) -> None:
    """A child is told at once that it cannot go on."""
    branch = record.args["branch"]
    asked: dict[str, Callable[[], object]] = {
        "names": g.branches,
        "open": lambda: world.place.open(mode="r"),
        "count": lambda: g.at(branch).count("Person"),
    }

    def child() -> dict[str, Any]:
        answers: dict[str, Any] = {}
        for name, ask in asked.items():
            answers[name] = told(ask)[0]
            if answers[name] != "forked_process":
                break
        return answers

    answers = in_child(child)
    if answers != dict.fromkeys(asked, "forked_process"):
        raise Fault(f"a forked child was told {answers}")


operation(Operation("fork", 0.5, (), _draw_branch, perform_fork, _foresee_reading, reads=True))


# Tables that fail


def perform_broken_table(world: World, g: Graph, record: Record) -> None:
    """What Lance throws is told as an error of ours, and the next reader finds what was there."""
    branch = record.args["branch"]
    if branch not in world.past.lines:
        return
    method = ("scanner", "get_fragment", "count_rows")[record.args["roll"] % 3]

    def fail(*given: Any, **named: Any) -> Any:
        raise ValueError("injected: Lance fails")

    with world.place.open(mode="r") as eyes:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lance.LanceDataset, method, fail)
            try:
                check_branch(world, eyes, "a failing table", branch, "scan")
            except OmnigraphError as error:
                record.facts["told"] = error.code
        check_branch(world, eyes, "a table that failed", branch, "scan")


operation(
    Operation(
        "broken_table", 0.7, (), _draw_branch, perform_broken_table, _foresee_reading, reads=True
    )
)


# Upkeep that fails


def draw_upkeep(world: World, chance: Random) -> dict[str, Any] | None:
    row = {"name": chance.choice(NAMES), "age": chance.randrange(4)}
    statements = (Statement("upsert", "Person", (row,)),)
    return {"branch": chance.choice(sorted(world.past.lines)), "statements": statements}


def foresee_one(world: World, step: Step) -> None:
    foresee_place(world, step.args)
    run_statements(state_of(world, step.args["branch"]), step.args["statements"])


def perform_upkeep(world: World, g: Graph, record: Record) -> None:
    """Who has committed is told so, whatever becomes of the upkeep that follows."""

    def fail(branch: str, tables: object) -> None:
        raise ValueError("injected: upkeep fails")

    with world.place.open(settings=world.settings) as mine:
        mine._session.on_write = fail
        logging.disable()  # it is told to whoever runs the program, here to nobody
        try:
            _write(take(world, mine, record.args), record)
        finally:
            logging.disable(logging.NOTSET)


def _write(hand: Hand, record: Record) -> None:
    with hand.call("transaction", message=record.step.label, actor=record.step.by) as tx:
        for one in record.args["statements"]:
            say(tx, one)
    record.commit = tx.commit_id


operation(
    Operation("failing_upkeep", 1, (), draw_upkeep, perform_upkeep, foresee_one, statements_effect)
)


# Syncs that fail


@contextmanager
def _failing_sync(directory: Path) -> Iterator[list[str]]:
    """What is synced in this directory is on the disk, and nobody is told so."""
    real, failed = os.fsync, list[str]()

    def fsync(descriptor: int) -> None:
        real(descriptor)
        if Path(f"/proc/self/fd/{descriptor}").readlink() == directory:
            failed.append(str(directory))
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(directory))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield failed


def draw_unsynced(world: World, chance: Random) -> dict[str, Any] | None:
    if world.power is None:
        return None
    row = {"name": chance.choice(NAMES), "age": chance.randrange(40, 90)}
    return draw_place(world, chance) | {"statements": (Statement("upsert", "Person", (row,)),)}


def perform_unsynced(world: World, g: Graph, record: Record) -> None:
    """Whose commit was put and could not be synced is told that nobody knows what became of it."""
    args = record.args
    hand = take(world, g, args)
    directory = world.place.directory / "__manifest" / encode_branch(args["branch"])
    with _failing_sync(directory.resolve()) as failed:
        try:
            _write(hand, record)
        except OutcomeUnknown as error:
            record.commit = error.commit
        else:
            if failed:
                raise Fault(f"{record.step.label} was told done, and its entry was not synced")


operation(
    Operation(
        "unsynced",
        3,
        (),
        draw_unsynced,
        perform_unsynced,
        foresee_one,
        statements_effect,
    )
)
