"""Owns reads in passing: somebody reads while others write. Each answer must be that of a commit
which was the head of the branch at some time between the question and the answer."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from omnigraph.engine.graph import Graph
from omnigraph.errors import HistoryGap
from tests.sim.world.algorithms import same_values
from tests.sim.world.asking import check_exported, check_manifest, having_word
from tests.sim.world.hands import Hand, draw_place, foresee_place, state_of, take
from tests.sim.world.histories import check_block, check_life, same_changes, told_changes
from tests.sim.world.model import Refused, State
from tests.sim.world.past import Line
from tests.sim.world.queries import query_all, same_rows
from tests.sim.world.reading import key_rows
from tests.sim.world.steps import Fault, Operation, Record, Step, operation
from tests.sim.world.writing import NAMES

if TYPE_CHECKING:
    from tests.sim.world.world import World

Claim = Callable[["World", str], None]
"""Raises `Fault` unless the answer is right where this commit is the head."""


def _query(world: World, hand: Hand, args: Mapping[str, Any]) -> list[Claim]:
    state = state_of(world, args["branch"])
    kind = state.types[args["roll"] % len(state.types)]
    text, _, _ = query_all(state, kind)
    kernel = ("auto", "indexed", "adjacency")[args["roll"] % 3]
    found = [dict(row) for row in hand.call("query", text, kernel=kernel)]

    def claim(world: World, head: str) -> None:
        now = world.past.state(head)
        asked, _, wanted = query_all(now, _type(now, kind.name))
        if asked.split(" return ")[0] != text.split(" return ")[0]:
            raise Fault(f"it is asked otherwise: {asked}")
        names = {name for row in found for name in row}
        same_rows(text, found, [{n: v for n, v in row.items() if n in names} for row in wanted])

    return [claim]


def _type(state: State, name: str) -> Any:
    try:
        return state.type(name)
    except Refused as why:
        raise Fault(str(why)) from None


def _entities(world: World, hand: Hand, args: Mapping[str, Any]) -> list[Claim]:
    def ask(kind: str, key: str) -> Claim:
        found = hand.call("entity", kind, key)
        known = key_rows(world, kind, [found]).get(key) if found else None
        blob = hand.call("blob", kind, key, "data") if found and kind == "Doc" else None
        read = None if blob is None else blob.read()

        def claim(world: World, head: str) -> None:
            now = world.past.state(head)
            of = _type(now, kind)
            row = now.rows[of.uid].get(key)
            if known != (None if row is None else of.named(row)):
                raise Fault(f"{kind} {key} is {known}, and must be {row}")
            if known is not None and kind == "Doc" and read != of.named(row)["data"]:
                raise Fault(f"the blob of {key} is {read!r}, and must be {row}")

        return claim

    return [ask(kind, key) for kind in ("Person", "Doc") for key in NAMES[:3]]


def _export(world: World, hand: Hand, args: Mapping[str, Any]) -> list[Claim]:
    stream = io.BytesIO()
    hand.call("export", to=stream)
    return [lambda world, head: check_exported(stream.getvalue(), world.past.state(head))]


def _manifest(world: World, hand: Hand, args: Mapping[str, Any]) -> list[Claim]:
    rows = hand.call("manifest").to_pylist()
    return [lambda world, head: check_manifest(rows, world.past.state(head))]


def _log(world: World, hand: Hand, args: Mapping[str, Any]) -> list[Claim]:
    found = [one.id for one in hand.call("log", first_parent=True)]
    every = [one.id for one in hand.call("log")]

    def first(world: World, head: str) -> None:
        if found != _path(world, args["branch"], head)[::-1]:
            raise Fault(f"the log is {found}")

    def all_of(world: World, head: str) -> None:
        if len(every) != len(set(every)) or set(every) != world.past.before(head):
            raise Fault(f"the log through all parents is {every}")

    return [first, all_of]


def _path(world: World, branch: str, head: str) -> list[str]:
    commits = world.past.lines[branch].commits
    return commits[: commits.index(head) + 1]


def _changes(world: World, hand: Hand, args: Mapping[str, Any]) -> list[Claim]:
    told, gap = [], False
    try:
        for block in hand.call("changes", "beginning"):
            told.append((block.commit.id, told_changes(world, block.changes)))  # noqa: PERF401
    except HistoryGap:
        gap = True

    def claim(world: World, head: str) -> None:
        path = _path(world, args["branch"], head)
        if gap and not any(one in world.past.fragile for one in path):
            raise Fault("the feed has a gap, and everything is kept")
        if [commit for commit, _ in told] != (path[: len(told)] if gap else path):
            raise Fault(f"the feed tells {[commit for commit, _ in told]}")
        for commit, changes in told:
            check_block(world, commit, changes)

    return [claim]


def _history(world: World, hand: Hand, args: Mapping[str, Any]) -> list[Claim]:
    key, told, gap = NAMES[args["roll"] % 4], {}, False
    try:
        for moment in hand.call("history", "Person", key):
            told[moment.commit.id] = str(moment.change.op)
    except HistoryGap:
        gap = True

    def claim(world: World, head: str) -> None:
        path = _path(world, args["branch"], head)
        if stray := told.keys() - set(path):
            raise Fault(f"the history tells of {stray}")
        check_life(world, path, "Person", key, told, gap=gap)

    return [claim]


def _diff(world: World, hand: Hand, args: Mapping[str, Any]) -> list[Claim]:
    commits = world.past.lines[args["branch"]].commits
    since = commits[args["roll"] % len(commits)]
    told = told_changes(world, hand.call("diff", since))

    def claim(world: World, head: str) -> None:
        same_changes("the difference", told, world.past.state(since), world.past.state(head))

    return [claim]


def _algorithm(world: World, hand: Hand, args: Mapping[str, Any]) -> list[Claim]:
    name = ("degrees", "connected_components", "triangle_count")[args["roll"] % 3]
    rows = hand.call("algorithm", name, edges=["Knows"], engine="local").to_pylist()
    return [lambda world, head: same_values(name, rows, world.past.state(head))]


def _search(world: World, hand: Hand, args: Mapping[str, Any]) -> list[Claim]:
    word = NAMES[args["roll"] % len(NAMES)]
    hits = hand.call("search", word, types=["Person"], limit=1000).to_pylist()
    found = sorted(hit["id"] for hit in hits)

    def claim(world: World, head: str) -> None:
        wanted = sorted(having_word(world.past.state(head), "Person", word))
        if found != wanted:
            raise Fault(f"a search for {word!r} found {found}, must be {wanted}")

    return [claim]


def _stored(world: World, hand: Hand, args: Mapping[str, Any]) -> list[Claim]:
    texts = {name: one.text for name, one in hand.call("queries").items()}

    def claim(world: World, head: str) -> None:
        if texts != world.past.state(head).queries:
            raise Fault(f"the stored queries are {texts}")

    return [claim]


def _verify(world: World, hand: Hand, args: Mapping[str, Any]) -> list[Claim]:
    """A graph that is written to is sound at every moment. What could not be read is told."""
    errors = [str(one.message) for one in hand.graph.verify(deep=True).errors]
    if wrong := [one for one in errors if not one.startswith("injected")]:
        raise Fault(f"verify finds {wrong[:3]}")
    return []


def _names(world: World, hand: Hand, args: Mapping[str, Any]) -> list[Claim]:
    """They move in a round, and are looked at after it; asking must not fail."""
    hand.graph.branches()
    hand.graph.tags()
    hand.graph.protected_branches()
    return []


LOOKS: dict[str, Callable[[World, Hand, Mapping[str, Any]], list[Claim]]] = {
    "query": _query,
    "entities": _entities,
    "export": _export,
    "manifest": _manifest,
    "log": _log,
    "changes": _changes,
    "history": _history,
    "diff": _diff,
    "algorithm": _algorithm,
    "search": _search,
    "stored queries": _stored,
    "verify": _verify,
    "names": _names,
}


def draw_look(world: World, chance: Random) -> dict[str, Any] | None:
    args = draw_place(world, chance)
    if args["branch"] not in world.past.lines:
        return None
    return args | {"how": chance.choice(sorted(LOOKS)), "roll": chance.getrandbits(16)}


def perform_look(world: World, g: Graph, record: Record) -> None:
    hand = take(world, g, record.args)
    if record.args["branch"] in world.past.lines:
        record.facts["claims"] = LOOKS[record.args["how"]](world, hand, record.args)


def foresee_look(world: World, step: Step) -> None:
    foresee_place(world, step.args, writing=False)


operation(Operation("look in passing", 0, (), draw_look, perform_look, foresee_look, reads=True))


def require_claims(world: World, record: Record, line: Line, acked: set[str]) -> None:
    """For each answer, in order, there is a head that it is right of, and none older than the one
    before it."""
    at = 0
    for claim in record.facts.get("claims", ()):
        faults: list[str] = []
        for number in range(at, len(line.commits)):
            head = line.commits[number]
            if acked <= world.past.before(head):
                try:
                    claim(world, head)
                except Fault as fault:
                    faults.append(f"  with {world.past.commits[head].label}: {fault}")
                else:
                    at = number
                    break
        else:
            told = "\n".join(faults)
            raise Fault(f"{record.step} gave what no head of the branch gives:\n{told}")
