"""Embedding what waits: which rows, by which commits, and what becomes of it when things fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import runtime
from omnigraph.engine.graph import Graph
from omnigraph.engine.vectors.result import EmbedProgress
from omnigraph.errors import (
    Conflict,
    InvalidArgument,
    InvalidEmbedding,
    ModelMissing,
    PreconditionFailed,
    ProtectedBranch,
    ProviderRefused,
    ProviderUnavailable,
    ReadOnly,
    TypeNotFound,
    UnknownModel,
)
from omnigraph.settings import Settings
from tests.bench.embeddings import Provider, provider, unit_vector_of


def docs(*texts: str | None) -> list[dict[str, Any]]:
    return [{"name": f"d{n:04}", "text": text} for n, text in enumerate(texts)]


def add(g: Graph, *texts: str | None) -> None:
    g.load(docs(*texts), type="Doc", mode="merge", engine="local")


def found(g: Any) -> dict[str, list[float] | None]:
    rows = g.scan("Doc", columns=["text", "v"]).read_all().to_pylist()
    return {row["text"]: row["v"] for row in rows}


def check(g: Any) -> None:
    """Every text has its own vector, every blank one none."""
    for text, vector in found(g).items():
        if text is None or not text.strip():
            assert vector is None
        else:
            assert vector == pytest.approx(unit_vector_of(text, 8), abs=1e-7), text


def test_what_is_missing_is_embedded_as_one_commit(g: Graph, there: Provider) -> None:
    add(g, "red", "blue", None, "", "  ", "red")
    done = g.embed("Doc", "v", actor="ada", message="first")
    check(g)
    (of,) = done.properties
    assert (of.type, of.property, of.source, of.model) == ("Doc", "v", "text", "openai:small")
    assert (of.texts, of.embedded, of.refusals, of.paid) == (3, 3, 0, True)
    assert [(c.kind, c.actor, c.message) for c in done.commits] == [("embed", "ada", "first")]
    assert done.commit is not None
    assert done.commit.statistics["node:Doc"].updated == 3
    assert sorted(there.texts) == ["blue", "red"], "a text that comes twice is asked for once"


def test_only_what_is_missing_or_stale_is_asked_for(g: Graph, there: Provider) -> None:
    add(g, "red", "blue")
    g.embed()
    there.requests.clear()
    again = g.embed()
    assert (again.texts, again.commits, there.requests) == (0, (), [])
    with g.transaction() as tx:
        tx.update("Doc", set={"text": "green"}, where='text = "red"')
    g.embed()
    assert there.texts == ["green"]
    check(g)


def test_all_types_and_edges_have_their_turn(g: Graph) -> None:
    add(g, "red", "blue")
    with g.transaction() as tx:
        tx.append("Note", {"name": "n", "body": "a note"})
        tx.append("Cites", {"from": "d0000", "to": "d0001", "why": "because"})
    done = g.embed()
    assert {(p.type, p.property): p.embedded for p in done.properties} == {
        ("Doc", "v"): 2,
        ("Note", "v"): 1,
        ("Cites", "v"): 1,
    }
    assert [p.paid for p in done.properties] == [True, False, True]
    assert g.scan("Cites").read_all()["v"].to_pylist() == [
        pytest.approx(unit_vector_of("because", 8), abs=1e-7)
    ]
    assert g.verify(deep=True).ok


def test_a_type_alone_and_a_branch_alone(g: Graph) -> None:
    add(g, "red")
    with g.transaction() as tx:
        tx.append("Note", {"name": "n", "body": "a note"})
    g.create_branch("side")
    assert g.branch("side").embed("Note").embedded == 1
    assert g.embed(dry_run=True).texts == 2
    assert g.branch("side").embed(dry_run=True).texts == 1


def test_a_dry_run_tells_and_asks_nobody(g: Graph, there: Provider) -> None:
    add(g, "red", "blue whale", "")
    head = g.commit.id
    told = g.embed(dry_run=True)
    (of, *_) = told.properties
    assert (of.texts, of.tokens, of.embedded, told.paid) == (2, 1 + 3, 0, True)
    assert (told.commits, there.requests, g.commit.id) == ((), [], head)


def test_a_commit_after_so_many_texts_or_one_in_all(g: Graph) -> None:
    add(g, *[f"text {n}" for n in range(25)])
    assert len(g.embed(limit=10, commit_every=5).commits) == 2
    assert g.embed(dry_run=True).texts == 15
    done = g.embed(commit_every=None, batch=4)
    assert (len(done.commits), done.embedded) == (1, 15)
    check(g)


def test_a_text_that_comes_in_several_groups_is_paid_for_once(g: Graph, there: Provider) -> None:
    add(g, "red", "blue", "red", "red", "blue")
    assert len(g.embed(commit_every=1).commits) == 5
    assert sorted(there.texts) == ["blue", "red"]
    check(g)


@pytest.mark.parametrize("limit", [0, 1, 3, 100])
def test_a_limit_is_kept(g: Graph, there: Provider, limit: int) -> None:
    add(g, "a", "b", "c")
    assert g.embed(limit=limit).embedded == min(limit, 3)
    assert len(there.texts) == min(limit, 3)


def test_batches_are_as_large_as_asked_for(g: Graph, there: Provider) -> None:
    add(g, *[f"text {n}" for n in range(10)])
    g.embed(batch=4)
    assert sorted(len(request.texts) for request in there.requests) == [2, 4, 4]


def test_progress_ends_at_the_number_of_texts(g: Graph) -> None:
    add(g, "a", "b", "b", "c", "d")
    told: list[EmbedProgress] = []
    g.embed("Doc", batch=2, commit_every=3, progress=told.append)
    assert [one.done for one in told] == sorted(one.done for one in told)
    assert told[-1] == EmbedProgress("Doc", "v", 5, 5)


# Failures


@pytest.mark.parametrize("fault", ["500", "429", "cut", "hang"])
def test_a_provider_that_is_down_changes_nothing(there: Provider, g: Graph, fault: str) -> None:
    add(g, "red", "blue")
    head = g.commit.id
    there.always = fault
    settings = Settings(embed_url=there.url, embed_retry_for=0.3, request_timeout=0.1)
    with omnigraph.open(g.root, settings=settings) as other:
        with pytest.raises(ProviderUnavailable):
            other.embed()
        assert other.commit.id == head
        there.always = ""
        other.embed()
    check(g)


def test_what_was_answered_before_a_failure_is_committed(g: Graph, there: Provider) -> None:
    add(g, *[f"text {n}" for n in range(12)])
    there.faults = ["", "", ""]
    there.always = "500"
    with pytest.raises(ProviderUnavailable):
        g.embed(batch=2)
    waiting = g.embed(dry_run=True).texts
    assert waiting == 6
    answered = set(there.texts[:6])
    there.always = ""
    there.requests.clear()
    g.embed()
    assert not answered & set(there.texts), "nothing is asked for twice"
    check(g)


@pytest.mark.parametrize("fault", ["wrong_dimension", "not_json", "nan", "too_few"])
def test_nonsense_changes_nothing(g: Graph, there: Provider, fault: str) -> None:
    add(g, "red", "blue")
    head = g.commit.id
    there.always = fault
    with pytest.raises(InvalidEmbedding):
        g.embed()
    assert g.commit.id == head


def test_a_text_that_is_refused_keeps_no_other_back(g: Graph, there: Provider) -> None:
    add(g, *[f"text {n}" for n in range(20)], "far too long")
    there.bad = frozenset({"far too long"})
    (of, *_) = g.embed("Doc").properties
    assert (of.embedded, of.refusals) == (20, 1)
    assert [(r.id, "too long" in r.reason) for r in of.refused] == [("d0020", True)]
    assert g.embed(dry_run=True).texts == 1


def test_when_every_text_is_refused_it_is_not_the_texts(g: Graph, there: Provider) -> None:
    add(g, *[f"text {n}" for n in range(200)])
    there.always = "400"
    with pytest.raises(ProviderRefused, match="So it went for 8 texts, and none was taken"):
        g.embed()
    assert len(there.requests) < 40


def test_without_a_key_nothing_is_begun(tmp_path: Path, g: Graph) -> None:
    add(g, "red")
    with (
        omnigraph.open(g.root, settings=Settings()) as other,
        pytest.raises(ModelMissing, match="openai:small needs a key"),
    ):
        other.embed()


def test_a_key_is_nowhere_on_disk(
    g: Graph, there: Provider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    add(g, "red", "blue", "green")
    there.faults, there.always = [""], "500"
    with pytest.raises(ProviderUnavailable):
        g.embed(batch=1, commit_every=None)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"sk-very-secret" in path.read_bytes()]


# What was paid for


def test_what_was_paid_for_and_not_committed_is_not_paid_for_again(
    g: Graph, there: Provider, cache: Path
) -> None:
    """One commit in all has nothing to show when it fails, but the journal has."""
    add(g, *[f"text {n}" for n in range(12)])
    there.faults = ["", "", ""]
    there.always = "500"
    with pytest.raises(ProviderUnavailable):
        g.embed(batch=2, commit_every=None)
    assert g.embed(dry_run=True).texts == 12
    answered = set(there.texts[:6])
    there.always = ""
    there.requests.clear()
    assert g.embed(commit_every=None).embedded == 12
    assert len(there.texts) == 6
    assert not answered & set(there.texts)
    assert not list(cache.iterdir()), "the journal goes when everything is committed"
    check(g)


def test_a_journal_that_was_cut_short_or_is_garbage_does_no_harm(
    g: Graph, there: Provider, cache: Path
) -> None:
    add(g, *[f"text {n}" for n in range(6)])
    there.faults, there.always = ["", ""], "500"
    with pytest.raises(ProviderUnavailable):
        g.embed(batch=2, commit_every=None)
    (journal,) = cache.iterdir()
    journal.write_bytes(journal.read_bytes()[:-5] + b"")
    there.always = ""
    g.embed()
    check(g)


def test_another_endpoint_pays_for_its_own_vectors(
    tmp_path: Path, g: Graph, there: Provider, cache: Path
) -> None:
    """The same name may be another model there."""
    add(g, "one text", "two texts")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "on_reach", _die_at("texts embedded"))
        with pytest.raises(_Died):
            g.embed(commit_every=None)
    with provider() as other, omnigraph.open(tmp_path / "g", settings=at(other)) as elsewhere:
        assert elsewhere.embed().embedded == 2
        assert sorted(other.texts) == ["one text", "two texts"]
    check(g)


class _Died(BaseException):
    """Nothing between here and the top may take it for an error of its own."""


def _die_at(point: str) -> Callable[[str], None]:
    def reach(reached: str) -> None:
        if reached == point:
            raise _Died

    return reach


def at(told: Provider) -> Settings:
    return Settings(embed_url=told.url, embed_retry_for=30.0)


def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(
    g: Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    add(g, "red")
    g.embed()
    check(g)


# Others who write meanwhile


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
    """Does something once, between the answer of the provider and the commit."""
    done: list[str] = []

    def on_reach(point: str) -> None:
        if point == "texts embedded" and not done:
            done.append(point)
            act()

    monkeypatch.setattr(runtime, "on_reach", on_reach)


def test_a_text_that_changed_meanwhile_gets_no_vector_of_the_old_one(
    g: Graph, there: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(g, "red", "blue")
    with omnigraph.open(g.root) as other:

        def change() -> None:
            with other.transaction() as tx:
                tx.update("Doc", set={"text": "green"}, where='text = "red"')

        meanwhile(monkeypatch, change)
        (of,) = g.embed("Doc").properties
    assert (of.texts, of.embedded) == (2, 1)
    assert found(g)["green"] is None
    g.embed()
    check(g)


def test_rows_that_went_or_were_embedded_meanwhile_are_left(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(g, "red", "blue", "green")
    given = [1.0] + [0.0] * 7
    with omnigraph.open(g.root) as other:

        def change() -> None:
            with other.transaction() as tx:
                tx.delete("Doc", where='text = "red"')
                tx.update("Doc", set={"v": given}, where='text = "blue"')

        meanwhile(monkeypatch, change)
        assert g.embed("Doc").embedded == 1
    assert found(g)["blue"] == given
    assert found(g).keys() == {"blue", "green"}


def test_another_schema_meanwhile_is_a_conflict(g: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    add(g, "red")
    with omnigraph.open(g.root) as other:
        changed = g.schema.replace('v: Vector(8)? @embed("text"', 'v: Vector(8)? @embed("name"')
        meanwhile(monkeypatch, lambda: other.apply_schema(changed))
        with pytest.raises(Conflict, match=r"schema of Doc\.v was changed"):
            g.embed("Doc")
    assert found(g) == {"red": None}


# What every write has


def test_if_commit_is_looked_at_before_anybody_is_paid(g: Graph, there: Provider) -> None:
    add(g, *[f"text {n}" for n in range(10)])
    seen = g.commit.id
    with g.transaction() as tx:
        tx.append("Plain", {"name": "p"})
    with pytest.raises(PreconditionFailed):
        g.embed(if_commit=seen)
    assert not there.requests
    assert len(g.embed(if_commit=g.commit.id, commit_every=5).commits) == 2


def test_a_key_of_the_call_makes_it_one_commit_that_is_not_repeated(
    g: Graph, there: Provider
) -> None:
    add(g, *[f"text {n}" for n in range(10)])
    done = g.embed(commit_every=2, idempotency_key="k")
    assert len(done.commits) == 1
    add(g, "another")
    again = g.embed(commit_every=2, idempotency_key="k")
    assert again.repeated
    assert again.commits == done.commits


def test_a_protected_branch_and_a_reader_are_refused_before_anybody_is_paid(
    g: Graph, there: Provider
) -> None:
    add(g, "red")
    g.protect("main")
    with pytest.raises(ProtectedBranch):
        g.embed()
    with omnigraph.open(g.root, mode="r") as reader:
        with pytest.raises(ReadOnly):
            reader.embed()
        assert reader.embed(dry_run=True).texts == 1
    assert not there.requests


@pytest.mark.parametrize(
    ("type", "property", "error", "told"),
    [
        ("Doc", "vv", InvalidArgument, "Doc has no property 'vv'"),
        ("Doc", "text", InvalidArgument, "Doc.text is not embedded from another property"),
        ("Plain", "w", InvalidArgument, "Plain.w is not embedded from another property"),
        ("Plain", None, InvalidArgument, "No property of Plain is embedded"),
        ("Dog", None, TypeNotFound, "Dog"),
        (None, "v", InvalidArgument, "of which type"),
    ],
)
def test_what_cannot_be_embedded_is_named(
    g: Graph, type: str | None, property: str | None, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        g.embed(type, property)


@pytest.mark.parametrize("given", [{"limit": -1}, {"batch": 0}, {"commit_every": 0}])
def test_numbers_that_make_no_sense_are_refused(g: Graph, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=f"`{next(iter(given))}` is a number from"):
        g.embed(**given)


def test_a_model_that_nobody_knows_is_named_before_anything_is_done(tmp_path: Path) -> None:
    schema = 'node Doc { name: String @key  v: Vector(8)? @embed("name", model="tiny") }'
    g = omnigraph.init(tmp_path / "odd", schema=schema)
    g.load([{"name": "a"}], type="Doc")
    with pytest.raises(UnknownModel, match="There is no model 'tiny'"):
        g.embed()


def test_the_local_model_refuses_a_size_before_anything_is_done(tmp_path: Path) -> None:
    schema = 'node Doc { name: String @key  v: Vector(100)? @embed("name") }'
    g = omnigraph.init(tmp_path / "odd", schema=schema)
    g.load([{"name": "a"}], type="Doc")
    with pytest.raises(InvalidEmbedding, match="no vectors of 100 numbers"):
        g.embed()
