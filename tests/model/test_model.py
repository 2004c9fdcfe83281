"""Random transactions, branches, schemas, compactions, stale handles and travel in time, against
a naive model: whatever was ever seen is seen the same for ever."""

from __future__ import annotations

import shutil
import uuid
from itertools import pairwise
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import omnigraph
from omnigraph.errors import Conflict, InvalidData
from tests.model import oracle

NAMES = ["a", "b", "c", "d", "e", "f"]
VALUES = [None, 1, 2]
SETTINGS = omnigraph.Settings(durability="relaxed")

names = st.sampled_from(NAMES)
values = st.sampled_from(VALUES)


EDGE_KEYS: list[tuple[str, ...]] = [(), ("src", "dst"), ("src",), ("dst",)]
"""With one end, writing an edge again moves the other."""


@st.composite
def rule_sets(draw: st.DrawFn) -> dict[str, oracle.Rules]:
    """Two node types and two edge types between them, with rules that often bite."""
    nodes: list[oracle.Rules] = [
        oracle.NodeRules(
            name,
            ("name", "x", "y") if keyed else ("x", "y"),
            key="name" if keyed else None,
            unique=draw(st.sampled_from([None, "y"])),
        )
        for name, keyed in (("N", True), ("M", draw(st.booleans())))
    ]
    edges: list[oracle.Rules] = [
        oracle.EdgeRules(
            name,
            draw(st.sampled_from(["N", "M"])),
            draw(st.sampled_from(["N", "M"])),
            low=draw(st.sampled_from([0, 0, 1])),
            high=draw(st.sampled_from([None, 2])),
            key=draw(st.sampled_from(EDGE_KEYS)),
        )
        for name in ("E", "F")
    ]
    return {rules.name: rules for rules in nodes + edges}


def schema_of(rules: dict[str, oracle.Rules]) -> str:
    lines = []
    for one in rules.values():
        if isinstance(one, oracle.NodeRules):
            body = "".join(
                f"  {p}: String @key\n"
                if p == one.key
                else f"  {p}: I64?{' @unique' if p == one.unique else ''}\n"
                for p in one.properties
            )
            lines.append(f"node {one.name} {{\n{body}}}")
        else:
            card = f"@card({one.low}..{'' if one.high is None else one.high})"
            key = f" {{ @key({', '.join(one.key)}) }}" if one.key else ""
            lines.append(f"edge {one.name}: {one.source} -> {one.target} {card}{key}")
    return "\n".join(lines) + "\n"


@st.composite
def rows_of(
    draw: st.DrawFn, state: oracle.Graph, rules: oracle.Rules, *, whole: bool
) -> list[oracle.Row]:
    """Rows as a caller gives them, most of them sound; `whole` leaves out no property."""
    made: dict[str, oracle.Row] = {}
    for number in range(draw(st.integers(1, 3))):
        if isinstance(rules, oracle.EdgeRules):
            row: oracle.Row = {
                "src": draw(st.sampled_from([*state.tables[rules.source], "a"])),
                "dst": draw(st.sampled_from([*state.tables[rules.target], "b"])),
            }
            if not rules.key:
                row["id"] = f"{row['src']}{row['dst']}{draw(st.integers(0, 1))}"
        else:
            row = {"name" if rules.key else "id": draw(names)}
            for column in rules.properties:
                if column != "name" and (whole or draw(st.booleans())):
                    row[column] = draw(st.one_of(values, st.integers(3, 1000)))
        twice = draw(st.integers(0, 15)) == 15
        made[f"{number}" if twice else oracle.identity(rules, row)] = row
    return list(made.values())


class GraphMachine(RuleBasedStateMachine):
    """One graph, two handles of which one may be stale, and the model of every branch."""

    @initialize(rules=rule_sets())
    def begin(self, rules: dict[str, oracle.Rules]) -> None:
        self.root = f"memory://{uuid.uuid4().hex}"
        self.g = omnigraph.init(self.root, schema=schema_of(rules), settings=SETTINGS)
        self.h = omnigraph.open(self.root, settings=SETTINGS)
        first = oracle.Graph(rules, {name: {} for name in rules})
        self.heads: dict[str, oracle.Graph] = {"main": first}
        self.history: list[tuple[str, oracle.Graph]] = []
        self.pinned: list[tuple[Any, oracle.Graph]] = []
        self.added = 0
        self.remember("main")
        first_ones: list[tuple[Any, ...]] = [
            ("append", name, [{rules[name].key or "id": n} for n in "abc"]) for name in ("N", "M")
        ]
        self.attempt("main", self.g, first_ones, None)

    def teardown(self) -> None:
        if hasattr(self, "g"):
            shutil.rmtree(self.g.root, ignore_errors=True)

    def remember(self, branch: str) -> None:
        snapshot = self.g.at(branch)
        state = self.heads[branch].copy()
        self.history.append((snapshot.commit.id, state))
        self.pinned.append((snapshot, state))
        self.compare(snapshot, state)

    @staticmethod
    def compare(snapshot: Any, state: oracle.Graph) -> None:
        seen = {}
        for name in state.rules:
            columns = state.columns(name)
            found = snapshot.scan(name, columns=columns).read_all().to_pylist()
            seen[name] = sorted((tuple(row[c] for c in columns) for row in found), key=repr)
            assert snapshot.count(name) == len(found)
        assert seen == state.seen()

    # Rules

    @rule(data=st.data(), branch=st.integers(0, 5), stale=st.booleans())
    def write_one(self, data: st.DataObject, branch: int, stale: bool) -> None:
        name = sorted(self.heads)[branch % len(self.heads)]
        statement = self.draw_statement(data, self.heads[name])
        self.attempt(name, self.h if stale else self.g, [statement], None)

    @rule(data=st.data(), type=st.sampled_from(["N", "M", "E", "F"]), stale=st.booleans())
    def upsert_on_main(self, data: st.DataObject, type: str, stale: bool) -> None:
        state = self.heads["main"]
        rows = data.draw(rows_of(state, state.rules[type], whole=False))
        self.attempt("main", self.h if stale else self.g, [("upsert", type, rows)], None)

    @rule(
        data=st.data(),
        branch=st.integers(0, 5),
        stale=st.booleans(),
        meddle=st.sampled_from([None, None, None, "write", "compact"]),
    )
    def write_many(self, data: st.DataObject, branch: int, stale: bool, meddle: str | None) -> None:
        name = sorted(self.heads)[branch % len(self.heads)]
        shadow = oracle.Block(self.heads[name].copy())
        statements = []
        for _ in range(data.draw(st.integers(1, 4))):
            statement = self.draw_statement(data, shadow.graph)
            self.apply(shadow, [statement])
            statements.append(statement)
        self.attempt(name, self.h if stale else self.g, statements, meddle)

    def attempt(
        self, name: str, handle: Any, statements: list[tuple[Any, ...]], meddle: str | None
    ) -> None:
        """One transaction on a branch, by the graph and by the model."""
        expected = oracle.Block(self.heads[name].copy())
        refused = self.apply(expected, statements)
        does_nothing = expected.graph.seen() == self.heads[name].seen()
        tx = handle.branch(name).transaction()
        # Any statement may be refused at once, and the block as a whole at its end.
        try:
            for statement in statements:
                self.perform(tx, statement)
            if refused is None:
                self.compare_pending(tx, expected.graph)
            if meddle == "compact":
                self.g.branch(name).optimize()
            if meddle == "write":
                # Another comes first with one more node, which this block's rules may meet.
                self.meddle(name)
                expected = oracle.Block(self.heads[name].copy())
                refused = self.apply(expected, statements)
            tx.publish()
        except InvalidData:
            if refused is None:
                raise
            return
        except Conflict:
            assert meddle == "write"  # it overwrote, or read, what has changed
            return
        if tx.commit_id is None:
            # Nothing to do where it began: as if it had come before all others.
            assert does_nothing
            return
        assert refused is None, f"should be refused: {refused}"
        self.heads[name] = expected.graph
        self.remember(name)

    def meddle(self, branch: str) -> None:
        block = oracle.Block(self.heads[branch].copy())
        try:
            block.insert("N", [{"name": "d", "x": 2}], "upsert")
            block.check()
        except oracle.Refused:
            return
        with self.g.branch(branch).transaction() as tx:
            tx.upsert("N", {"name": "d", "x": 2})
        self.heads[branch] = block.graph
        self.remember(branch)

    @staticmethod
    def draw_statement(data: st.DataObject, state: oracle.Graph) -> tuple[Any, ...]:
        name = data.draw(st.sampled_from(sorted(state.rules)))
        rules = state.rules[name]
        kind = data.draw(
            st.sampled_from(
                ["append", "append", "upsert", "upsert", "overwrite", "update", "delete"]
            )
        )
        if isinstance(rules, oracle.EdgeRules) and kind == "update":
            kind = "delete"
        if kind in ("append", "upsert", "overwrite"):
            whole = kind != "upsert"
            return kind, name, data.draw(rows_of(state, rules, whole=whole))
        column = data.draw(st.sampled_from(state.columns(name)[1:]))
        text = isinstance(rules, oracle.EdgeRules) or column == "name"
        value = data.draw(names if text else st.sampled_from([1, 2]))
        where = data.draw(st.sampled_from([None, {column: value}, {column: value}]))
        if kind == "delete":
            return kind, name, where
        settable = [c for c in state.columns(name) if c not in ("id", "name")]
        return kind, name, {data.draw(st.sampled_from(settable)): data.draw(values)}, where

    @staticmethod
    def apply(block: oracle.Block, statements: list[tuple[Any, ...]]) -> str | None:
        try:
            for kind, name, *given in statements:
                match kind:
                    case "append" | "upsert":
                        block.insert(name, given[0], kind)
                    case "overwrite":
                        block.overwrite(name, given[0])
                    case "update":
                        block.update(name, *given)
                    case "delete":
                        block.delete(name, *given)
            block.check()
        except oracle.Refused as refused:
            return str(refused)
        return None

    @staticmethod
    def perform(tx: Any, statement: tuple[Any, ...]) -> None:
        kind, name, *given = statement
        condition = None
        if kind in ("update", "delete") and given[-1] is not None:
            ((column, value),) = given[-1].items()
            condition = pc.field(column) == value
        match kind:
            case "update":
                tx.update(name, set=given[0], where=condition)
            case "delete":
                tx.delete(name, where=condition)
            case _:
                getattr(tx, kind)(name, given[0])

    @staticmethod
    def compare_pending(tx: Any, state: oracle.Graph) -> None:
        """Through the view itself, so that the read set of the block stays empty."""
        work = tx._write.working(reading=True)
        for name in state.rules:
            columns = state.columns(name)
            view = work.view(work.snapshot.type(name))
            found = [
                row for batch in view.scan(tx.io, columns=columns) for row in batch.to_pylist()
            ]
            seen = sorted((tuple(row[c] for c in columns) for row in found), key=repr)
            assert seen == state.seen()[name]
            assert view.count() == len(found)

    @rule(branch=st.integers(0, 5))
    def compact(self, branch: int) -> None:
        name = sorted(self.heads)[branch % len(self.heads)]
        self.g.branch(name).optimize()
        self.remember(name)

    @precondition(lambda self: self.added < 4)
    @rule(branch=st.integers(0, 5), type=st.sampled_from(["N", "M"]), filled=st.booleans())
    def add_property(self, branch: int, type: str, filled: bool) -> None:
        name = sorted(self.heads)[branch % len(self.heads)]
        state = self.heads[name].copy()
        rules = state.rules[type]
        assert isinstance(rules, oracle.NodeRules)
        self.added += 1
        column = f"p{self.added}"
        wide = oracle.NodeRules(
            type, (*rules.properties, column), key=rules.key, unique=rules.unique
        )
        state.rules[type] = wide
        self.g.branch(name).apply_schema(schema_of(state.rules))
        self.heads[name] = state
        self.remember(name)

    @precondition(lambda self: len(self.heads) < 4)
    @rule(source=st.integers(0, 5), old=st.integers(0, 20), back=st.booleans())
    def branch(self, source: int, old: int, back: bool) -> None:
        name = f"b{len(self.heads)}"
        if back:
            commit, state = self.history[old % len(self.history)]
            self.g.create_branch(name, ref=commit)
        else:
            origin = sorted(self.heads)[source % len(self.heads)]
            state = self.heads[origin]
            self.g.create_branch(name, ref=origin)
        self.heads[name] = state.copy()
        self.remember(name)

    @rule()
    def reopen(self) -> None:
        self.g.close()
        self.g = omnigraph.open(self.root, settings=SETTINGS)

    @rule()
    def look_with_the_other_handle(self) -> None:
        for name, state in self.heads.items():
            self.compare(self.h.at(name), state)

    @rule(number=st.integers(0, 100), handle=st.booleans())
    def travel(self, number: int, handle: bool) -> None:
        commit, state = self.history[number % len(self.history)]
        self.compare((self.g if handle else self.h).at(commit), state)

    @rule(number=st.integers(0, 100))
    def look_at_what_was_pinned(self, number: int) -> None:
        self.compare(*self.pinned[number % len(self.pinned)])

    @invariant()
    def histories_are_linear(self) -> None:
        if not hasattr(self, "heads"):
            return
        for name in self.heads:
            log = list(self.g.at(name).log(limit=3))
            assert all(c.parents == (p.id,) for c, p in pairwise(log))


def run(examples: int, steps: int, *, shrink: bool = True) -> None:
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    run_state_machine_as_test(
        GraphMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[*phases, Phase.shrink] if shrink else phases,
        ),
    )


def test_the_graph_does_what_the_model_does() -> None:
    run(examples=40, steps=20, shrink=False)


@pytest.mark.slow
def test_the_graph_does_what_the_model_does_for_long() -> None:
    assert settings.default is not None
    run(examples=settings.default.max_examples, steps=60)
