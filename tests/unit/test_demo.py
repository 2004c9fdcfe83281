"""The tour of `make demo` runs to its end, in a short form."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import omnigraph

TOUR = Path(__file__).parents[2] / "demo" / "tour.py"


def test_the_tour_shows_what_it_promises() -> None:
    environment = os.environ | {
        "OMNIGRAPH_DEMO_SCALE": "0.01",
        "NO_COLOR": "1",
        "PYTHONPATH": str(Path(omnigraph.__file__).parents[1]),
    }
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
        "3 rows in ",
        "but there is no Paper with that id.",
        "4 writes,",
        'title: "On the nature of 29" → "On the nature of things"',
        "1 conflict stopped the merge of joe into main.",
        "DivergentUpdate Paper 10.1000/30 year",
        "Merged joe into main in commit",
        "├─╮",
        "Restored main to main~1 in commit",
        "All of it in ",
    ):
        assert promised in ran.stdout
    assert "\033[" not in ran.stdout
