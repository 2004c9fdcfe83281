"""Many processes create one graph at once: exactly one wins, and the graph is whole."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

import omnigraph
from tests.bench.processes import results_of, run_together
from tests.bench.s3 import S3Server
from tests.processes.history import check_linear, kinds, rows
from tests.processes.workload import SCHEMA

CREATE = "tests.processes.workload:create"


@pytest.mark.parametrize(
    ("creators", "rounds"),
    [
        pytest.param(5, 1, id="small"),
        pytest.param(12, 10, id="full", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("place", ["local", pytest.param("s3", marks=pytest.mark.s3)])
def test_of_many_creators_one_wins_and_the_others_learn_that_the_graph_exists(
    place: str, creators: int, rounds: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    roots = [str(tmp_path / f"graph{n}") for n in range(rounds)]
    if place == "s3":
        server: S3Server = request.getfixturevalue("s3_environment")
        roots = [server.url(f"t/{uuid.uuid4().hex}") for _ in range(rounds)]
    schemas = [SCHEMA + f"\nnode Made{n} {{ x: I64 }}" for n in range(creators)]
    told = results_of(
        run_together(
            CREATE,
            [
                {"roots": roots, "schema": schema, "name": f"creator-{n}"}
                for n, schema in enumerate(schemas)
            ],
            within=300,
        )
    )
    for root, answers in zip(roots, zip(*told, strict=True), strict=True):
        assert sorted(answers) == ["exists"] * (creators - 1) + ["won"]
        winner = answers.index("won")
        with omnigraph.open(root) as g:
            commits = check_linear(g)
            assert kinds(commits) == {"init": 1, "write": 1}
            assert commits[0].actor == f"creator-{winner}"
            assert g.snapshot().schema == schemas[winner]
            with g.transaction() as tx:
                tx.append(f"Made{winner}", [{"x": 1}])
            assert rows(g, f"Made{winner}", "x") == [(1,)]
            assert rows(g, "Event", "writer") == [(winner,)]
