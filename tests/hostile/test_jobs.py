"""Jobs and queues that somebody else left in a graph: every field of an attempt and of a journal
replaced, pieces that lead out or are not sound, tickets and lock files of any form."""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import random
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.load.phases import Resolved
from omnigraph.engine.load.rejected import RejectedFile
from omnigraph.engine.load.spool import Spool, SpoolPiece
from omnigraph.errors import Corrupt, JobRunning, OmnigraphError
from omnigraph.plan.load.places import Reject
from omnigraph.plan.publish import Append
from omnigraph.runtime import Runtime
from omnigraph.settings import Settings
from omnigraph.spark.load.job import Attempt, begin_or_resume_job, forget_job
from omnigraph.spark.load.journal import Journal
from omnigraph.spark.load.shape import ShapedPart
from omnigraph.spark.load.stage import Completed, StagedPieces, StagedRemovals
from omnigraph.store.jobs import job_prefix
from omnigraph.store.queue import LocalQueue, Tickets
from omnigraph.store.roots import Root
from tests.hostile.test_fields import HOSTILE, places, replaced
from tests.hostile.world import World

ULID = "01J00000000000000000000000"
PIECE = SpoolPiece(
    key="part.arrow", table="node:Note", given=("text",), generated=False, rows=1, bytes=8
)
REJECT = Reject(source="x.jsonl", line=1, type="Note", rule="type", reason="is wrong", row="{}")
ASIDE = RejectedFile(key="aside.arrow", rows=1)
ANSWERS: tuple[msgspec.Struct, ...] = (
    ShapedPart(pieces=(PIECE,), rejects=(REJECT,), more=0, lines=1, bytes=8, aside=(ASIDE,)),
    Completed(piece=PIECE, rejects=(REJECT,), dropped=(1,), aside=(ASIDE,)),
    StagedPieces(fragments=("{}",), fields={0: "text"}, rows=1, bytes=8),
    StagedRemovals(updated=("{}",), removed=(0,), rows=1),
    Resolved(
        actions=(
            Append(table="node:Note", fragments=("{}",), fields={0: "text"}, rows=1, bytes=8),
        ),
        checks=("node:Note",),
        rejects=(REJECT,),
        files=(ASIDE,),
    ),
)
ATTEMPT = Attempt(
    number=1,
    name="nightly",
    intent=ULID,
    operation=ULID,
    call="x",
    place="elsewhere",
    process="7/1",
    began=1,
)


def variants(value: msgspec.Struct) -> Iterator[tuple[tuple[Any, ...], bytes]]:
    plain = json.loads(msgspec.json.encode(value))
    for path, new in itertools.product(places(plain), HOSTILE):
        yield path, json.dumps(replaced(plain, path, new)).encode()
    yield (), b""
    yield (), b"\xff"
    yield (), b"[" * 100_000


def test_hostile_attempts_of_a_job_get_an_answer_or_an_error_of_ours(world: World) -> None:
    place = world.root / job_prefix("nightly") / "attempts"
    refused = 0
    with world.open() as g:
        for (path, data), act in itertools.product(
            variants(ATTEMPT), (begin_or_resume_job, forget_job)
        ):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            (place / "00000001.json").write_bytes(data)
            try:
                act(g._session, "nightly", *(["x"] if act is begin_or_resume_job else []))
            except OmnigraphError as error:
                refused += 1
                assert isinstance(error, Corrupt | JobRunning), (path, error)
                assert "nightly" in error.message or "__jobs/" in error.message
    assert refused > 100


@pytest.mark.parametrize("name", ["00000001", "9" * 19, "-0000001", "x", "../../../outside/x"])
def test_attempts_of_any_name_are_numbers_or_nothing(world: World, name: str) -> None:
    place = world.root / job_prefix("nightly") / "attempts"
    place.mkdir(parents=True)
    if "/" in name:
        (place / "00000001.json").symlink_to(place / name)
    else:
        (place / f"{name}.json").write_bytes(msgspec.json.encode(ATTEMPT))
    with world.open() as g:
        try:
            begin_or_resume_job(g._session, "nightly", "x")
        except OmnigraphError as error:
            assert isinstance(error, Corrupt | JobRunning), error


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_hostile_answers_in_a_journal_are_told(tmp_path: Path, answer: msgspec.Struct) -> None:
    prefix = f"{job_prefix('nightly')}/journal"
    journal = Journal(Root(str(tmp_path), tmp_path), prefix, Settings())
    (tmp_path / prefix).mkdir(parents=True)
    file = tmp_path / prefix / "read-1.json"
    kind: Any = type(answer)
    file.write_bytes(msgspec.json.encode([answer]))
    assert journal.read("read-1", kind) == [answer]
    told = 0
    for path, data in variants(answer):
        file.write_bytes(b"[" + data + b"]")
        try:
            answers: list[Any] = journal.read("read-1", kind) or []
        except Corrupt as error:
            assert f"{prefix}/read-1.json" in error.message, (path, error)
            told += 1
        else:
            for key in itertools.chain.from_iterable(map(keys_in, answers)):
                assert Path(key).name == key, (path, key)
    assert told
    for number in (0, 2):
        file.write_bytes(msgspec.json.encode([answer] * number))
        with pytest.raises(Corrupt, match=f"{number} answers instead of one"):
            journal.look().once_one("read-1", kind, lambda: answer)


def keys_in(answer: Any) -> Iterator[str]:
    """The files that an answer names."""
    for one in (*getattr(answer, "pieces", ()), getattr(answer, "piece", None)):
        yield from [] if one is None else [one.key]
    for one in (*getattr(answer, "aside", ()), *getattr(answer, "files", ())):
        yield one.key


def durable_spool(root: Path) -> Spool:
    prefix = f"{job_prefix('nightly')}/pieces"
    (root / prefix).mkdir(parents=True)
    return Spool(Root(str(root), root), prefix, Settings(), durable=True)


def test_a_piece_that_leads_out_of_the_graph_is_told(world: World) -> None:
    spool = durable_spool(world.root)
    assert spool.directory is not None
    outside = world.outside.parent.parent / "results"
    outside.mkdir(exist_ok=True)
    with pa.ipc.new_file(outside / "secret.arrow", pa.schema({"text": pa.string()})) as file:
        file.write(pa.table({"text": ["secret"]}))
    (spool.directory / "part.arrow").symlink_to(outside / "secret.arrow")
    with pytest.raises(Corrupt, match="leads out of the graph"):
        spool.read(PIECE)


def test_a_piece_that_is_gone_damaged_or_unsound_is_told(tmp_path: Path) -> None:
    spool = durable_spool(tmp_path)
    assert spool.directory is not None
    file = spool.directory / "part.arrow"
    rows = pa.table({"text": ["one", "two"]})
    assert spool.read(msgspec.structs.replace(PIECE, key=spool.write("part.arrow", rows))) == rows
    sound = file.read_bytes()
    offsets = np.array([0, 3, 6], np.int32).tobytes()
    place = sound.index(offsets)
    hostile = np.array([0, 2**30, 6], np.int32).tobytes()
    draw = random.Random(17)
    noise = [draw.randbytes(200), sound[: len(sound) // 2], b"", b"ARROW1\0\0" * 9]
    for data in (sound[:place] + hostile + sound[place + len(offsets) :], *noise, None):
        file.unlink()
        if data is not None:
            file.write_bytes(data)
        else:
            file.symlink_to("nothing")
        with pytest.raises(Corrupt, match=r"pieces/part\.arrow"):
            spool.read(PIECE)


TICKETS = (
    "9" * 14 + "-" + "9" * 14 + "-x",
    "0" * 14 + "-{now}-ahead",
    "-1-{now}-x",
    "{now}",
    "-",
    "--",
    "9" * 120 + "-" + "9" * 120,
    "x\u0661-\u0661-x",
    "$(touch stray)",
)


class Counting:
    """A clock that goes on whenever it is looked at, so that patience ends without time."""

    def __init__(self, runtime: Runtime) -> None:
        self.now, self.random, self.ulid = runtime.now, runtime.random, runtime.ulid
        self._looks = itertools.count()

    def monotonic(self) -> float:
        return float(next(self._looks))

    def sleep(self, seconds: float) -> None:
        pass


def test_tickets_of_any_name_are_a_place_in_line_or_nothing(world: World) -> None:
    """Whoever puts one ahead is waited for, as long as a writer is patient, and no longer."""
    with world.open() as g:
        session = g._session
        runtime = Counting(session.runtime)
        line = world.root / "__wait" / "main"
        line.mkdir(parents=True)
        tickets = Tickets(runtime)
        for name in TICKETS:
            (line / name.replace("{now}", str(runtime.now() // 1000))).write_bytes(b"")
        (line / "0-0-folder").mkdir()
        (line / "0-0-link").symlink_to(world.outside / "documents")
        own, waited = tickets.stand_in_line(session.objects, "main", None, 20.0)
        assert waited
        tickets.leave_line(session.objects, "main", own)
        g.mutate('insert Note { text: "goes on" }')


def odd_locks(path: Path, outside: Path) -> Iterator[str]:
    """What can stand where a lock file belongs."""
    path.mkdir()
    yield "folder"
    path.rmdir()
    os.mkfifo(path)
    yield "pipe"
    path.unlink()
    path.symlink_to(outside / "documents" / "canary.txt")
    yield "link"
    path.unlink()
    path.symlink_to(path.name)
    yield "link to itself"
    path.unlink()
    path.write_bytes(b"\xff" * 1000)
    path.chmod(stat.S_IRUSR)
    yield "read-only"


def test_whatever_stands_in_the_queue_is_no_reason_not_to_write(world: World) -> None:
    with world.open() as g:
        g.mutate('insert Note { text: "first" }')
        directory = g._session.root.queue_directory()
        lock = directory / "main.lock"
        assert lock.exists()
        lock.unlink()
        for number, what in enumerate(odd_locks(lock, world.outside)):
            g.mutate(f'insert Note {{ text: "{what}" }}')
            assert count_of(g, what) == 1, number
        shutil.rmtree(directory)
        directory.symlink_to(world.outside / "documents")
        g.mutate('insert Note { text: "a folder" }')


def count_of(g: Graph, text: str) -> int:
    found = g.query(f'match {{ $n: Note {{ text: "{text}" }} }} return {{ count($n) as n }}')
    return int(found.one()["n"])


def test_a_file_system_without_locks_is_no_reason_not_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with LocalQueue(tmp_path).turn("main", 5) as turn:
        assert turn.waited
    root = tmp_path / "graph"
    with omnigraph.init(root, schema="node P { name: String @key }") as g:
        g.mutate('insert P { name: "a" }')
