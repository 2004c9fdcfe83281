"""Words that go into a commit: whatever is given, in whatever call, either it can be read again or
nothing is done."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.branch import Branch
from omnigraph.engine.load.options import LoadOptions
from omnigraph.engine.upkeep.recovery import Recovery
from omnigraph.engine.write.chain import put_version
from omnigraph.errors import InvalidArgument, InvalidBranchName, OmnigraphError
from omnigraph.model.commit_text import WORDS
from omnigraph.model.options import CommitWords
from omnigraph.spark.graph import SparkGraph
from omnigraph.spark.pipeline import Pipeline
from omnigraph.telemetry import Ledger
from tests.bench.chains import version_after
from tests.unit.engine.faulty import SETTINGS, fresh_root, new_graph, over

NAMES = {"branch", "name", "from_", "into", "source", "create_branch_from", "id"}
"""Parameters that name something of the graph."""


class Word(str):
    __slots__ = ()


class Who(str, enum.Enum):  # noqa: UP042
    ME = "me"


BAD_WORDS: dict[str, Any] = {
    "a number": 42,
    "no number": float("nan"),
    "truth": True,
    "bytes": b"ann",
    "a list": ["ann"],
    "a mapping": {"who": "ann"},
    "an object": object(),
    "half a pair": "ann\ud800",
    "the other half": "\udfff",
    "nothing in it": "an\0n",
    "a book": "x" * 200_000,
}
BAD_NAMES: dict[str, Any] = {
    "a number": 42,
    "bytes": b"side",
    "a list": ["side"],
    "half a pair": "side\ud800",
    "nothing": "",
    "too long": "x" * 300,
}
QUERY = 'query noted() { insert Note { text: "noted" } }'
ROWS = [{"type": "Note", "data": {"text": "x"}}]


def write(at: Any, branch: str = "main", **given: Any) -> None:
    on = at if branch == "main" else at.branch(branch)
    with on.transaction(**given) as tx:
        tx.append("Note", {"text": "x"})


def widen(at: Any, **given: Any) -> object:
    return at.apply_schema(at.snapshot().schema + "node More { n: I64? }\n", **given)


Call = Callable[..., object]
GRAPH: dict[str, Call] = {
    "transaction": lambda g, **given: write(g, **given),
    "mutate": lambda g, **given: g.mutate('insert Note { text: "x" }', **given),
    "run": lambda g, **given: g.run(lambda tx: tx.append("Note", {}), **given),
    "run_mutation": lambda g, **given: g.run_mutation(**{"name": "noted"} | given),
    "store_queries": lambda g, **given: g.store_queries(
        {"more": QUERY.replace("noted", "more", 1)}, **given
    ),
    "load": lambda g, **given: g.load(ROWS, **{"engine": "local"} | given),
    "algorithm": lambda g, **given: g.algorithm(**{"name": "degrees", "write_to": "age"} | given),
    "stream_writer": lambda g, **given: g.stream_writer("Note", **given),
    "apply_schema": widen,
    "create_branch": lambda g, **given: g.create_branch(**{"name": "new"} | given),
    "merge": lambda g, **given: g.merge(**{"source": "side"} | given),
    "delete_branch": lambda g, **given: g.delete_branch(**{"branch": "side"} | given),
    "restore": lambda g, **given: g.restore("side", **given),
    "revert": lambda g, **given: g.revert("main", **given),
    "create_tag": lambda g, **given: g.create_tag(**{"name": "v2"} | given),
    "delete_tag": lambda g, **given: g.delete_tag(**{"name": "v1"} | given),
    "protect": lambda g, **given: g.protect(**{"branch": "side"} | given),
    "unprotect": lambda g, **given: g.unprotect(**{"branch": "closed"} | given),
    "optimize": lambda g, **given: g.optimize(**given),
    "embed": lambda g, **given: g.embed(**given),
    "cleanup": lambda g, **given: g.cleanup(**given),
}
BRANCH: dict[str, Call] = {
    "transaction": write,
    "mutate": GRAPH["mutate"],
    "run": GRAPH["run"],
    "run_mutation": GRAPH["run_mutation"],
    "store_queries": GRAPH["store_queries"],
    "load": GRAPH["load"],
    "algorithm": GRAPH["algorithm"],
    "stream_writer": GRAPH["stream_writer"],
    "apply_schema": widen,
    "merge": lambda side, **given: side.merge(**{"source": "main"} | given),
    "restore": lambda side, **given: side.restore("main", **given),
    "revert": lambda side, **given: side.revert("side", **given),
    "optimize": GRAPH["optimize"],
    "embed": GRAPH["embed"],
}
RECOVERY: dict[str, Call] = {
    "begin": lambda recovery, **given: recovery.begin("load", **given),
    "resume": lambda recovery, **given: recovery.resume(**{"id": "0" * 26} | given),
    "discard": lambda recovery, **given: recovery.discard(**{"id": "0" * 26} | given),
    "beat": lambda recovery: None,
    "end": lambda recovery: None,
}
SPARK: dict[str, Call] = {}
NEW: dict[str, Call] = {
    "init": lambda _, **given: omnigraph.init(fresh_root(), schema="node A { n: I64? }\n", **given),
    "LoadOptions": lambda _, **given: LoadOptions(**given),
    "Pipeline": lambda g, **given: Pipeline(g, **given),
}
READING = {
    Graph: """acting at blame branch branches blob changes check close commit copy count describe
        diff entity explain export format history indexes jobs log manifest maintenance may
        plan_schema prepare protected_branches queries query recovery root run_query scan schema
        schema_graph search snapshot spark tags types verify""",
    Branch: """blame blob changes check commit count describe diff entity explain export history
        indexes log manifest plan_schema prepare queries query run_query scan schema
        schema_graph search snapshot types""",
    Recovery: "list",
    SparkGraph: "frames table tables",
}
"""Methods that write nothing, and take no words."""
TABLE: dict[str, tuple[Callable[[Graph], Any], Any, dict[str, Call]]] = {
    "graph": (lambda g: g, Graph, GRAPH),
    "branch": (lambda g: g.branch("side"), Branch, BRANCH),
    "recovery": (lambda g: g.recovery, Recovery, RECOVERY),
    "spark": (lambda g: SparkGraph(g.root, g.at), SparkGraph, SPARK),
}


def parameters(method: Callable[..., object]) -> set[str]:
    """With the options of every write, which are given by keyword."""
    given = inspect.signature(method).parameters
    named = {name for name, one in given.items() if one.kind is not one.VAR_KEYWORD} - {"self"}
    return named | set(CommitWords.__annotations__) if "commit" in given.keys() - named else named


def cases(known: set[str]) -> list[Any]:
    return [
        pytest.param(where, name, parameter, id=f"{where}-{name}-{parameter}")
        for where, (_, kind, calls) in TABLE.items()
        for name in calls
        for parameter in sorted(parameters(getattr(kind, name)) & known)
        if (name, parameter) != ("load", "source")  # which is rows, or where they are
    ]


@pytest.fixture
def g() -> Graph:
    g = new_graph()
    g.create_branch("side")
    write(g)
    write(g, branch="side")
    g.create_branch("closed")
    g.protect("closed")
    g.create_tag("v1")
    return g


def ends(g: Graph) -> dict[str, int]:
    """Of all chains, read anew."""
    session, ledger = over(g.root)._session, Ledger()
    names = session.versions(ledger).list_branches()
    return {name: session.head(name, ledger).version for name in names}


def test_every_public_method_is_in_the_table_or_only_reads() -> None:
    for _, kind, calls in TABLE.values():
        public = {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}
        fields = set(getattr(kind, "__dataclass_fields__", ()))
        assert public - fields == set(READING[kind].split()) | calls.keys(), kind


def test_every_word_of_every_call_is_known() -> None:
    """A new parameter is a word, a name, or something else that somebody has thought of."""
    told = """text params types dry_run progress engine schema allow_data_loss strategy resolve ref
        commit keep older_than grace mode mapping on_error retry_for unit type edges direction
        where write_to options kind base details pins created_at intent plan spark names
        new_branch embed property limit batch commit_every queries remove"""
    thought_of = set(told.split())
    for _, kind, calls in TABLE.values():
        for name in calls:
            assert parameters(getattr(kind, name)) <= thought_of | NAMES | WORDS.keys(), name
    for made in (omnigraph.init, LoadOptions, Pipeline):
        known = (
            thought_of
            | NAMES
            | WORDS.keys()
            | {"root", "settings", "runtime", "stream", "graph", "token"}
        )
        assert parameters(made) <= known, made


@pytest.mark.parametrize(("where", "method", "word"), cases(set(WORDS)))
def test_a_word_that_could_not_be_read_again_is_refused_and_nothing_is_done(
    g: Graph, where: str, method: str, word: str
) -> None:
    get, _, calls = TABLE[where]
    before = ends(g)
    held = get(g)
    for what, bad in BAD_WORDS.items():
        with pytest.raises(InvalidArgument) as error:
            calls[method](held, **{word: bad})
        assert str(error.value), what
        assert error.value.applied is False
    assert ends(g) == before
    assert g.recovery.list() == []


@pytest.mark.parametrize(("where", "method", "name"), cases(NAMES))
def test_a_name_that_cannot_be_one_is_refused_and_nothing_is_done(
    g: Graph, where: str, method: str, name: str
) -> None:
    get, _, calls = TABLE[where]
    before = ends(g)
    held = get(g)
    for what, bad in BAD_NAMES.items():
        if method == "stream_writer":  # it is looked at when the first batch comes
            assert callable(calls[method](held, **{name: bad}))
            continue
        with pytest.raises(OmnigraphError) as error:
            calls[method](held, **{name: bad})
        assert error.value.applied is False, what
    assert ends(g) == before


@pytest.mark.parametrize("made", NEW)
def test_what_is_made_with_words_checks_them(g: Graph, made: str) -> None:
    whole: dict[str, Callable[..., object]] = {
        "init": omnigraph.init,
        "LoadOptions": LoadOptions,
        "Pipeline": Pipeline,
    }
    for word in sorted(parameters(whole[made]) & WORDS.keys()):
        for bad in BAD_WORDS.values():
            with pytest.raises(InvalidArgument):
                NEW[made](g, **{word: bad})


def test_a_batch_is_named_by_a_text_and_a_number() -> None:
    for bad in (42, "s\ud800", "", "x" * 2000, None):
        with pytest.raises((InvalidArgument, TypeError)):
            LoadOptions(stream=(bad, 1) if bad is not None else None, job=42)  # type: ignore[arg-type]
    for batch in ("1", -1, 1.5, 2**70, None):
        with pytest.raises(InvalidArgument, match="batch of a stream"):
            LoadOptions(stream=("s", batch))  # type: ignore[arg-type]


GOOD: dict[str, str] = {
    "a text": "ann",
    "nothing": "",
    "any script": "Zoë 愛 🎉\n\ttwo lines",
    "a part of another class": np.str_("ann"),
    "a class of its own": Word("ann"),
    "one of several": Who.ME,
    "as long as it may be": "x" * 1000,
}


@pytest.mark.parametrize("word", GOOD)
def test_words_that_can_be_read_again_are(g: Graph, word: str) -> None:
    given = GOOD[word]
    plain = str.__str__(given)
    write(g, actor=given, message=given, idempotency_key=given or None)  # no key is empty
    g.mutate('insert Note { text: "x" }', actor=given, message=given)
    g.load(ROWS, actor=given, message=given, engine="local")
    g.delete_branch("side", actor=given)
    found = list(over(g.root).log(limit=3))
    assert [(one.actor, one.message) for one in found] == [(plain, plain)] * 3
    assert over(g.root).verify(deep=True).ok


def test_the_longest_words_have_room(g: Graph) -> None:
    for name, word in WORDS.items():
        if name in ("job", "stream_id", "if_commit"):
            continue
        write(g, **{name: "ä" * word.longest})
        with pytest.raises(InvalidArgument, match=f"{word.longest:,} characters"):
            write(g, **{name: "ä" * (word.longest + 1)})
    assert over(g.root).verify(deep=True).ok


# The last line: whoever makes a version


@pytest.mark.parametrize(
    "changes",
    [
        {"branch": 5},
        {"protected": "yes"},
        {"floor": "1"},
        {"kept": [None]},
        {"schema": "s\ud800"},
        {"streams": {"s": 1}},
        {"ancestry": {"x": 1.5}},
        {"commit": {"id": 5}},
        {"gc_cutoff": 1.5},
        {"tables": ({"key": object()},)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_version_that_nobody_could_read_is_never_put(g: Graph, changes: dict[str, Any]) -> None:
    session, ledger = g._session, Ledger()
    head = session.head("main", ledger)
    bad = version_after(session, head)
    for name, value in changes.items():
        if name == "branch":
            bad = msgspec.structs.replace(
                bad, commit=msgspec.structs.replace(bad.commit, actor=value)
            )
        else:
            bad = msgspec.structs.replace(bad, **{name: value})
    with pytest.raises(InvalidArgument, match="could not be read again"):
        put_version(session, bad, ledger)
    assert over(g.root).snapshot().version == head.version
    write(g)


# Names

UNFIT = [" a", "a ", "\ta", "a\n", "\u00a0a", "a\u2003", "a\x00b", "a\x1fb", "a\x7fb", "a\x85b"]
UNFIT += ["a\u2028b", ".", "..", " ", "main~1", "a@", "", "\ud800"]


@pytest.mark.parametrize("name", UNFIT, ids=ascii)
def test_new_names_that_nobody_could_tell_apart_are_refused(g: Graph, name: str) -> None:
    if name == "a@":
        g.create_branch(name)  # which is no ref
        return
    for make in (g.create_branch, g.create_tag):
        with pytest.raises(InvalidArgument if name == "\ud800" else InvalidBranchName):
            make(name)
    with pytest.raises(InvalidArgument):
        g.load(ROWS, new_branch=name, engine="local")
    assert name not in over(g.root).branches()


@pytest.mark.parametrize("name", ["a b", "a.b", "...", "a/b", "ünï", "-x", ".hidden", "a..b"])
def test_other_names_are_fine(g: Graph, name: str) -> None:
    g.create_branch(name)
    assert name in over(g.root).branches()


@pytest.mark.parametrize("name", [" a", "a ", "a\x01", ".", ".."], ids=ascii)
def test_names_from_before_can_be_read_written_and_deleted(
    g: Graph, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("omnigraph.engine.branches_and_tags.check_branch_name", lambda name: None)
    g.create_branch(name)
    g.create_tag(f"{name} v ")
    monkeypatch.undo()
    fresh = over(g.root)
    write(fresh, branch=name)
    fresh.branch(name).merge("side")
    assert fresh.at(name).count("Note") == 3
    assert f"{name} v " in fresh.tags()
    omnigraph.copy(g.root, tmp_path / "copy", settings=SETTINGS)
    with omnigraph.open(tmp_path / "copy") as copied:
        assert name in copied.branches()
    fresh.delete_tag(f"{name} v ")
    fresh.delete_branch(name)
    assert name not in over(g.root).branches()
