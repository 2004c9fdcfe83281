"""A signal at any moment of any command: the graph is sound, what was acknowledged is there, and no
trace is shown; the code is of the documented set."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph
from tests.hostile.world import SETTINGS, build_graph

COMMANDS = (
    ["mutate", "-e", 'insert Note { text: "sent" }'],
    ["branch", "create", "fresh"],
    ["optimize"],
    ["cleanup", "--keep", "1", "--older-than", "0s", "--yes"],
    ["export", "out.jsonl"],
    ["copy", "there"],
    ["verify", "--deep"],
    ["merge", "side"],
)
ENDS = {0, 1, 2, 4, 7, 8, 130, -signal.SIGTERM, -signal.SIGKILL, -signal.SIGHUP, 143, 129}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("signals") / "graph"
    build_graph(root)
    return root


def strike(pristine: Path, place: Path, draw: random.Random, words: list[str]) -> None:
    root = place / "graph"
    shutil.copytree(pristine, root)
    sent = draw.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
    running = subprocess.Popen(
        [sys.executable, "-m", "omnigraph", "--root", str(root), *words],
        cwd=place,
        env=dict(os.environ) | {"PYTHONPATH": ":".join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        running.wait(draw.uniform(0.05, 1.6))
    except subprocess.TimeoutExpired:
        running.send_signal(sent)
    out, err = running.communicate(timeout=60)
    told = (words, sent, running.returncode, out, err)
    assert running.returncode in ENDS, told
    assert "Traceback" not in err, told
    assert "bug" not in err, told
    with omnigraph.open(root, settings=SETTINGS) as g:
        assert g.verify(deep=True).ok, told
        texts = [row["text"] for batch in g.snapshot().scan("Note") for row in batch.to_pylist()]
        if words[0] == "mutate" and running.returncode == 0:
            assert "sent" in texts, told
        g.mutate('insert Note { text: "goes on" }')
    shutil.rmtree(place)


@pytest.mark.parametrize("number", range(3))
def test_a_signal_at_any_moment_leaves_a_sound_graph(
    pristine: Path, tmp_path: Path, number: int
) -> None:
    draw = random.Random(number)
    place = tmp_path / "place"
    place.mkdir()
    strike(pristine, place, draw, draw.choice(COMMANDS))


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_many_signals_at_any_moment_leave_a_sound_graph(
    pristine: Path, tmp_path: Path, words: list[str]
) -> None:
    draw = random.Random(words[0])
    for _ in range(12):
        place = tmp_path / "place"
        place.mkdir()
        strike(pristine, place, draw, words)


def test_an_interrupt_while_a_class_is_made_has_the_code_of_an_interrupt(tmp_path: Path) -> None:
    text = """
import omnigraph.cli.run as run
from omnigraph.cli.app import main

def interrupted(words):
    exec("raise KeyboardInterrupt")

run.run = interrupted
main()
"""
    (tmp_path / "struck.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "struck"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (130, "Interrupted. The graph is as it was.\n")
