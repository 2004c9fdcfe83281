"""A run that is killed with SIGKILL, at whatever point: started again it loses nothing, and asks
for nothing that was answered."""

from __future__ import annotations

import pytest

from omnigraph.engine.graph import Graph
from tests.bench.embeddings import Provider, unit_vector_of
from tests.bench.processes import Worker

TEXTS = [f"text {n}" for n in range(40)]


@pytest.mark.parametrize("commit_every", [10, None])
@pytest.mark.parametrize(
    ("point", "nth"), [("texts embedded", 1), ("texts embedded", 3), ("staged", 2)]
)
def test_a_killed_run_goes_on(
    g: Graph, there: Provider, commit_every: int | None, point: str, nth: int
) -> None:
    if commit_every is None:
        nth = 1  # there is one group, and one commit
    rows = [{"name": f"d{n}", "text": text} for n, text in enumerate(TEXTS)]
    g.load(rows, type="Doc", engine="local")
    given = {
        "root": g.root,
        "url": there.url,
        "commit_every": commit_every,
        "stop_at": point,
        "nth": nth,
    }
    with Worker("tests.embed.runs:embed", given) as worker:
        worker.wait_ready()
        worker.go()
        worker.wait_for(point)
        worker.kill()
    asked = list(there.texts)
    assert asked, "it was killed after the first answers"
    committed = len(TEXTS) - g.embed(dry_run=True).texts
    assert committed <= len(asked)
    there.requests.clear()
    done = g.embed("Doc", batch=5, commit_every=commit_every)
    assert done.embedded == len(TEXTS) - committed
    assert sorted(asked + there.texts) == sorted(TEXTS), "each text was asked for exactly once"
    for row in g.scan("Doc").read_all().to_pylist():
        assert row["v"] == pytest.approx(unit_vector_of(row["text"], 8), abs=1e-7)
    assert g.verify(deep=True).ok
