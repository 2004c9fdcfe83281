"""Embedding on executors gives what it gives here, and a load on Spark makes stale vectors null."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import InvalidEmbedding, ProviderUnavailable
from omnigraph.settings import Settings
from tests.bench.embeddings import Provider, provider, unit_vector_of

SCHEMA = """
node Doc {
  name: String @key
  text: String?
  near: Vector(64)? @embed("text")
  far: Vector(8)? @embed("text", model="openai:small")
}
"""


@pytest.fixture
def there() -> Iterator[Provider]:
    with provider() as made:
        yield made


@pytest.fixture
def g(
    spark: Any, there: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Graph]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    settings = Settings(embed_url=there.url, embed_retry_for=0.2)
    with omnigraph.init(tmp_path / "g", schema=SCHEMA, settings=settings) as made:
        yield made


def load(g: Graph, *texts: str | None, engine: Any = "local") -> None:
    rows = [{"name": f"d{n}", "text": text} for n, text in enumerate(texts)]
    g.load(rows, type="Doc", mode="merge", engine=engine)


def column(g: Any, name: str) -> dict[str, Any]:
    rows = g.scan("Doc").read_all().to_pylist()
    return {row["name"]: row[name] for row in rows}


def test_executors_give_what_one_process_gives(g: Graph, there: Provider) -> None:
    load(g, *[f"text {n % 1500}" for n in range(3000)], "", None)
    g.create_branch("here")
    done = g.embed(engine="spark", commit_every=2000)
    assert [one.embedded for one in done.properties] == [3000, 3000]
    assert len(there.texts) == 1500, "a text that comes twice is asked for once"
    g.branch("here").embed()
    assert column(g, "near") == column(g.branch("here"), "near")
    assert column(g, "far")["d7"] == pytest.approx(unit_vector_of("text 7", 8), abs=1e-7)
    assert column(g, "far")["d3000"] is None


def test_a_text_that_is_refused_is_told(g: Graph, there: Provider) -> None:
    load(g, "red", "blue", "bad")
    there.bad = frozenset({"bad"})
    (of,) = g.embed("Doc", "far", engine="spark").properties
    assert (of.embedded, [one.id for one in of.refused]) == (2, ["d2"])


@pytest.mark.parametrize(
    ("fault", "error"), [("500", ProviderUnavailable), ("wrong_dimension", InvalidEmbedding)]
)
def test_a_failure_is_told_in_our_words_and_changes_nothing(
    g: Graph, there: Provider, fault: str, error: type[Exception]
) -> None:
    load(g, "red", "blue")
    head = g.commit.id
    there.always = fault
    with pytest.raises(error, match=r"127\.0\.0\.1"):
        g.embed("Doc", "far", engine="spark")
    assert g.commit.id == head


def test_a_merging_load_on_spark_makes_stale_vectors_null(g: Graph) -> None:
    load(g, "red", "blue")
    g.embed()
    load(g, "green", "blue", engine="spark")
    found = column(g, "near")
    assert found["d0"] is None
    assert found["d1"] is not None
    assert g.embed().embedded == 2
