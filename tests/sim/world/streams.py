"""Owns batches of streams: each is one commit, however often it is sent, and earlier ones are
refused. What `stream_writer` does with them once Spark has handed their rows over."""

from __future__ import annotations

import io
from random import Random
from typing import TYPE_CHECKING, Any

from omnigraph.engine.graph import Graph
from omnigraph.engine.load.options import LoadOptions
from omnigraph.engine.load.run import load
from omnigraph.model.options import CommitOptions
from tests.sim.world import statements as saying
from tests.sim.world.batches import load_lines
from tests.sim.world.hands import BRANCHES, foresee_place, state_of
from tests.sim.world.model import Refused, Unsure
from tests.sim.world.statements import Statement
from tests.sim.world.steps import Fault, Operation, Record, Step, operation
from tests.sim.world.writing import draw_rows, statements_effect

if TYPE_CHECKING:
    from tests.sim.world.world import World


def draw_batch(world: World, chance: Random) -> dict[str, Any] | None:
    """The next batch of a stream, the last one again, or one that was long ago."""
    branch = chance.choice([one for one in BRANCHES if one in world.past.lines])
    line = world.past.lines[branch]
    stream = f"{branch} {line.incarnation}"
    drawn = world.memory.setdefault("drawn batches", {})
    number = max(0, drawn.get(stream, 0) + chance.choice((1, 1, 1, 1, 0, 0, -1)))
    drawn[stream] = max(number, drawn.get(stream, 0))
    state = state_of(world, branch)
    kind = chance.choice(state.types)
    rows = Statement("upsert", kind.name, draw_rows(world, chance, state, kind))
    return {"branch": branch, "stream": stream, "batch": number, "statements": (rows,)}


def _landed(world: World, stream: str) -> tuple[int, str]:
    known: tuple[int, str] = world.memory.get("batches", {}).get(stream, (-1, ""))
    return known


def foresee_batch(world: World, step: Step) -> None:
    args = step.args
    foresee_place(world, args, writing=False)
    line = world.past.lines[args["branch"]]
    if args["stream"] != f"{args['branch']} {line.incarnation}":
        raise Unsure("a stream of another branch of this name")
    number, _ = _landed(world, args["stream"])
    if args["batch"] == number:
        return
    if args["batch"] < number:
        raise Refused("a later batch is there", "idempotency_mismatch")
    foresee_place(world, args)
    saying.run_statements(state_of(world, args["branch"]), args["statements"])


def perform_batch(world: World, g: Graph, record: Record) -> None:
    args = record.args
    options = LoadOptions(
        stream=(args["stream"], args["batch"]),
        branch=args["branch"],
        mode="merge",
        engine="local",
        commit=CommitOptions(actor=record.step.by, message=record.step.label),
    )
    done = load(g._session, io.BytesIO(load_lines(world, args)), options)
    record.commit, record.repeated = done.commit_id, done.repeated


def settle_batch(world: World, record: Record) -> None:
    number, commit = _landed(world, record.args["stream"])
    again = record.args["batch"] == number
    if again != record.repeated or (again and record.commit != commit):
        raise Fault(
            f"{record.step.label} was told repeated={record.repeated}, {record.commit}; batch "
            f"{number} of the stream is {commit}"
        )
    remember_batch(world, record)


def remember_batch(world: World, record: Record) -> None:
    """What landed, whatever was told."""
    made = [one.id for one in world.past.commits.values() if one.label == record.step.label]
    if record.outcome == "ok" and not record.repeated and record.commit is not None:
        made = [record.commit]
    for commit in made:
        held = world.memory.setdefault("batches", {})
        held[record.args["stream"]] = max(
            (record.args["batch"], commit), _landed(world, record.args["stream"])
        )


def settle_batches(world: World, records: list[Record]) -> None:
    """After a round: a batch has one commit, and everybody was told of it."""
    told: dict[tuple[str, int], set[str]] = {}
    for record in records:
        if record.step.op == "batch":
            remember_batch(world, record)
            made = {one.id for one in world.past.commits.values() if one.label == record.step.label}
            if record.outcome == "ok" and record.commit is not None:
                made |= {record.commit}
            told.setdefault((record.args["stream"], record.args["batch"]), set()).update(made)
    for (stream, batch), commits in told.items():
        if len(commits) > 1:
            raise Fault(f"batch {batch} of {stream} has the commits {sorted(commits)}")


operation(
    Operation(
        "batch",
        4,
        (),
        draw_batch,
        perform_batch,
        foresee_batch,
        statements_effect,
        settle_batch,
    )
)
