"""The tour of `make demo` runs to its end, in a short form."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph
from omnigraph.engine.executors import registered
from tests.spark.conftest import entry_point

TOUR = Path(__file__).parents[2] / "demo" / "tour.py"


@pytest.mark.usefixtures("spark_engine")
def test_the_tour_shows_what_it_promises(tmp_path: Path) -> None:
    places = [str(Path(omnigraph.__file__).parents[1]), str(entry_point(tmp_path))]
    environment = os.environ | {
        "OMNIGRAPH_DEMO_SCALE": "0.01",
        "NO_COLOR": "1",
        "PYTHONPATH": os.pathsep.join(places),
    }
    assert registered("spark")
    ran = subprocess.run(
        [sys.executable, str(TOUR)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    for promised in (
        "Created papers.graph with 3 node types and 2 edge types.",
        "Paper   +300",
        "It ran on spark: asked for.",
        "3 rows in ",
        "180 nodes in ",
        "but there is no Paper with that id.",
        "4 writes,",
        '→ "On the nature of things"',
        "1 conflict stopped the merge of joe into main.",
        "DivergentUpdate Paper 10.1000/30 year",
        "Merged joe into main in commit",
        "├─╮",
        "Restored main to main~1 in commit",
        "All of it in ",
        "Where to go next",
    ):
        assert promised in ran.stdout, promised
    assert "\033[" not in ran.stdout
    commands = [line for line in ran.stdout.splitlines() if line.startswith(("$ ", "    -"))]
    assert len(commands) > 25
    assert max(map(len, commands)) <= 80
