"""What a limit on memory bounds, and what happens where there is not enough of something."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph

LIMIT = 50_000_000
SCHEMA = """
node Thing { name: String @key text: String? group: I32? }
node Other { n: I64? }
edge To: Thing -> Thing
"""
THINGS = 20_000
OTHERS = 200


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("hungry") / "graph"
    with omnigraph.init(place, schema=SCHEMA) as g, g.transaction() as tx:
        names = [f"thing-{n}" for n in range(THINGS)]
        texts = [f"{n} " + "a text that is long " * 8 for n in range(THINGS)]
        groups = [n % 100 for n in range(THINGS)]
        tx.append("Thing", pa.table({"name": names, "text": texts, "group": groups}))
        tx.append("Other", pa.table({"n": list(range(OTHERS))}))
        tx.append("To", pa.table({"src": names, "dst": names[1:] + names[:1]}))
    return place


def ask(root: Path, text: str, limit: int = LIMIT) -> dict[str, Any]:
    warm = "match { $t: Thing $t to $u } return { $t.text, $u.name, $t.group } limit 1000000"
    ran = subprocess.run(
        [sys.executable, "-m", "tests.hostile.hungry", str(root), str(limit), warm, text],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    told: dict[str, Any] = json.loads(ran.stdout)
    return told


HUNGRY = {
    "collect of a product": (
        "match { $t: Thing $o: Other } return { count($o) as n, collect($t.text) as texts }"
    ),
    "collect of entities": "match { $t: Thing $o: Other } return { $o.n, collect($t) as found }",
    "collect by group": (
        "match { $t: Thing $o: Other } return { $t.group, collect($t.text) as texts }"
    ),
    "distinct": "match { $t: Thing $o: Other } return distinct { $t.text, $o.n }",
    "distinct entities": "match { $t: Thing $o: Other } return distinct { $t, $o }",
    "sort": "match { $t: Thing $o: Other } return { $t.text, $o.n } order { $t.text, $o.n }",
    "sort of computed texts": (
        "match { $t: Thing $o: Other } return { lower($t.text) as x } order { x desc }"
    ),
    "groups": "match { $t: Thing $o: Other } return { $t.text, $o.n, count($t) as n }",
    "ordered groups": (
        "match { $t: Thing $o: Other } return { $t.text, $o.n, count($t) as c } order { c }"
    ),
    "an aggregate over a pattern": (
        "match { $o: Other } return { $o.n, max($t.text) { $t: Thing } as text }"
    ),
}


@pytest.mark.parametrize("case", HUNGRY)
def test_a_query_keeps_to_its_limit_on_memory(root: Path, case: str) -> None:
    """4,000,000 rows with texts of 160 bytes are 700 MB; batches and transients are not."""
    told = ask(root, HUNGRY[case])
    assert told["peak"] < 5 * LIMIT, told
    assert told.get("code") in (None, "memory_limit"), told
    if "code" not in told:
        assert told["rows"] > 0


FRUGAL = {
    "sort": ("match { $t: Thing } return { $t.text, $t.name } order { $t.text }", THINGS),
    "groups": ("match { $t: Thing $o: Other } return { $t.group, count($o) as n }", 100),
    "distinct": ("match { $t: Thing $o: Other } return distinct { $t.group }", 100),
    "collect": ("match { $t: Thing } return { $t.group, collect($t.text) as texts }", 100),
    "product": ("match { $t: Thing $o: Other } return { $t.text, $o.n } limit 200000", 200_000),
}


@pytest.mark.parametrize("case", FRUGAL)
def test_a_query_that_fits_its_limit_is_answered(root: Path, case: str) -> None:
    text, rows = FRUGAL[case]
    told = ask(root, text)
    assert "code" not in told, told
    assert told["rows"] == rows
    assert told["peak"] < 5 * LIMIT, told
