"""The tour of `make demo` runs to its end, in a short form."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TOUR = Path(__file__).parents[2] / "demo" / "tour.py"


def test_the_tour_shows_what_it_promises() -> None:
    environment = os.environ | {"OMNIGRAPH_DEMO_SCALE": "0.02", "NO_COLOR": "1"}
    ran = subprocess.run(
        [sys.executable, str(TOUR)], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    for promised in (
        "entities in commit",
        "refused, invalid_data",
        "Ledger(reads=0, writes=4",
        "eve: 25 commits, none lost",
        "joe: 25 commits, none lost",
        "applied: True",
        "update Paper 10.1000/29 ('title', 'year')",
        "DivergentUpdate",
    ):
        assert promised in ran.stdout
    assert "\033[" not in ran.stdout
