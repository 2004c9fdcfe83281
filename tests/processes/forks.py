"""Processes that fork, each in an interpreter of its own: what their children may do, and hold."""

from __future__ import annotations

import atexit
import json
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph import Graph
from omnigraph.engine.lookup import Lookups
from omnigraph.errors import OmnigraphError
from omnigraph.runtime import SYSTEM
from omnigraph.settings import Settings
from omnigraph.store.queue import LocalQueue

SCHEMA = "node P { name: String @key  v: I64? }\n"
HUNG = 40
Answers = dict[str, Any]


def in_child(work: Callable[[], Answers]) -> Answers:
    """What a forked child says, which ends there. One that hangs is ended by a signal: nobody would
    find it when its parent is killed."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lance says that it is not made for this
        child = os.fork()
    if child == 0:
        signal.alarm(HUNG)
        try:
            answer = json.dumps(work())
        except BaseException as error:  # noqa: BLE001  (the parent tells it)
            answer = json.dumps({"failed": repr(error)})
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        text = said.read()
    _, status = os.waitpid(child, 0)
    answers: Answers = json.loads(text) if text else {"died": status}
    return answers


def told(work: Callable[[], object]) -> list[str]:
    """The code and the hint of what was refused."""
    try:
        work()
    except OmnigraphError as error:
        return [error.code, error.hint]
    return ["done", ""]


@contextmanager
def held(lock: Any) -> Iterator[None]:
    """A lock that another thread of this process has, and that no thread of a child will give
    back."""
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


def write(g: Graph, name: str) -> None:
    with g.transaction() as tx:
        tx.append("P", [{"name": name}])


def use_after_use(root: str) -> Answers:
    """A child of a process that has read and written; every lock is held by another thread."""
    settings = Settings(folding="background")
    with omnigraph.init(root, schema=SCHEMA, settings=settings) as g:
        write(g, "parent")
        assert g.maintenance is not None
        g.maintenance._hand_over("main", {"node:P"})
        g.maintenance.wait()
        snapshot, branch = g.snapshot(), g.branch("main")
        result = g.query("match { $p: P } return { $p.name }")
        tx = g.transaction()
        tx.append("P", [{"name": "pending"}])
        uses: dict[str, Callable[[], object]] = {
            "snapshot": g.snapshot,
            "held snapshot": lambda: snapshot.scan("P").read_all(),
            "held branch": lambda: branch.snapshot(),
            "held result": result.to_pylist,
            "query": lambda: g.query("match { $p: P } return { $p.name }").to_pylist(),
            "write": lambda: write(g, "child"),
            "held transaction": lambda: tx.append("P", [{"name": "child"}]),
            "publish": tx.publish,
            "branches": g.branches,
            "recovery": lambda: g.recovery.list(),
            "open": lambda: omnigraph.open(root).snapshot(),
            "init": lambda: omnigraph.init(f"{root}-another", schema=SCHEMA),
            "optimize": g.optimize,
        }

        def child() -> Answers:
            answers = {name: told(use) for name, use in uses.items()}
            g.close()
            return answers

        locks = [g._session._lock, g._session.tables._lock, Lookups.shared_by(g._session)._lock]
        with held(locks[0]), held(locks[1]), held(locks[2]), held(g.maintenance._news):
            answers = in_child(child)
        tx.publish()
        answers["names"] = sorted(g.snapshot().scan("P").read_all()["name"].to_pylist())
    return answers


def use_before_use(root: str) -> Answers:
    """A child of a process that has not touched a table yet."""
    g = omnigraph.open(root)
    g.branches()
    g.recovery.end(g.recovery.begin("load", branch="main"))  # whose directory was synced

    def child() -> Answers:
        answers: Answers = {"held": told(g.branches)}
        with omnigraph.open(root) as own:
            write(own, "child")
            answers["names"] = sorted(own.snapshot().scan("P").read_all()["name"].to_pylist())
        return answers

    with held(SYSTEM._lock):
        return in_child(child)


def grandchild(root: str) -> Answers:
    with omnigraph.open(root) as g:
        g.snapshot().scan("P").read_all()
        return in_child(lambda: in_child(lambda: {"open": told(lambda: omnigraph.open(root))}))


def keep_a_lock(directory: str) -> Answers:
    """Forks in its turn, while another thread stands in line: what its child holds of both, and
    whether the next one has to wait while the child lives."""
    place = Path(directory)

    def stand_in_line() -> None:
        with LocalQueue(place).turn("main", HUNG):
            pass

    line = threading.Thread(target=stand_in_line)
    reading, writing = os.pipe()
    with LocalQueue(place).turn("main", 0.0):
        line.start()
        while len(lock_files()) < 2:
            SYSTEM.sleep(0.001)
        child = os.fork()
        if child == 0:
            signal.alarm(HUNG)
            os.write(writing, json.dumps(lock_files()).encode())
            while True:
                signal.pause()
        held = json.loads(os.read(reading, 4096))
    line.join()
    with LocalQueue(place).turn("main", 0.0) as turn:
        answers = {"held": held, "waited": turn.waited}
    _, status = os.waitpid(child, os.WNOHANG)
    answers["child lives"] = status == 0
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return answers


def lock_files() -> list[str]:
    """The lock files that this process has open, once for each time."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(entry.readlink()))
        except FileNotFoundError:  # the directory itself, while it was looked at
            continue
    return [name for name in found if name.endswith(".lock")]


def leave_memory(name: str) -> Answers:
    """A child that ends as programs do, with what they do at their end."""
    with omnigraph.init(f"memory://{name}", schema=SCHEMA) as g:
        write(g, "parent")

        def child() -> Answers:
            atexit._run_exitfuncs()
            return {}

        answers = in_child(child)
        answers["there"] = Path(g.root).is_dir()
        write(g, "again")
        return answers
