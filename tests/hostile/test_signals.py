"""A signal at any moment of any command: the graph is sound, what was acknowledged is there, and no
trace is shown; the code is of the documented set."""

from __future__ import annotations

import json
import os
import pty
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from tests.hostile.world import SCHEMA, SETTINGS, build_graph

COMMANDS = (
    ["mutate", "-e", 'insert Note { text: "sent" }'],
    ["branch", "create", "fresh"],
    ["optimize"],
    ["cleanup", "--keep", "1", "--older-than", "0s", "--yes"],
    ["export", "out.jsonl"],
    ["copy", "there"],
    ["verify", "--deep"],
    ["merge", "side"],
    ["load", "many.jsonl"],
    ["load", "many.jsonl", "--mode", "merge"],
    ["query", "-e", "match { $a: Person $b: Person $c: Person } return { count($a) as n }"],
    ["schema", "apply", "new.pg", "--yes"],
    ["search", "beside"],
    ["shell"],
)
PROGRAM = """
import os, sys
begun = int(sys.argv.pop(1))

class Sign:
    def find_spec(self, name, path=None, target=None):
        if name == "omnigraph.cli.run":
            sys.meta_path.remove(self)
            os.close(begun)

sys.meta_path.insert(0, Sign())
from omnigraph.cli.app import main
main()
"""
"""Says when the program begins: before, Python itself would get the signal, however slow it is."""
LOADED = 3000
SAID = 6
ENDS = {0, 1, 2, 4, 7, 8, 130, -signal.SIGTERM, -signal.SIGKILL, -signal.SIGHUP, 143, 129}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("signals") / "graph"
    build_graph(root)
    return root


def strike(
    pristine: Path, place: Path, draw: random.Random, words: list[str], longest: float = 1.6
) -> None:
    root = place / "graph"
    shutil.copytree(pristine, root)
    with (place / "many.jsonl").open("w") as file:
        for n in range(LOADED):
            file.write(json.dumps({"type": "Person", "data": {"name": f"loaded {n}"}}) + "\n")
    (place / "new.pg").write_text(SCHEMA.replace("age: I32?", "age: I32? email: String? @index"))
    (place / "said.gq").write_text(
        "".join(f'insert Note {{ text: "said {n}" }};\n' for n in range(SAID))
    )
    sent = draw.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
    sign, begun = os.pipe()
    with (place / ("said.gq" if words[0] == "shell" else os.devnull)).open() as said:
        running = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(begun), "--root", str(root), *words],
            cwd=place,
            env=dict(os.environ) | {"PYTHONPATH": ":".join(filter(None, sys.path))},
            stdin=said,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(begun,),
            text=True,
        )
    os.close(begun)
    os.read(sign, 1)
    os.close(sign)
    struck = False
    try:
        running.wait(draw.uniform(0, longest))
    except subprocess.TimeoutExpired:
        struck = True
        running.send_signal(sent)
    out, err = running.communicate(timeout=60)
    told = (words, sent, running.returncode, out, err)
    assert running.returncode in ENDS, told
    if struck and sent == signal.SIGINT:
        assert running.returncode in (0, 130), told
    assert "Traceback" not in err, told
    assert "bug" not in err, told
    with omnigraph.open(root, settings=SETTINGS) as g:
        assert g.verify(deep=True).ok, told
        texts = [row["text"] for batch in g.snapshot().scan("Note") for row in batch.to_pylist()]
        done = running.returncode == 0
        if words[0] == "mutate" and done:
            assert "sent" in texts, told
        require_whole(g, words[0], texts, done, told)
        g.mutate('insert Note { text: "goes on" }')
    shutil.rmtree(place)


def require_whole(g: Graph, command: str, texts: list[str], done: bool, told: object) -> None:
    """All of it, or nothing: the rows of a load, the steps of a schema change. Of statements that
    were said one after another, the first ones."""
    if command == "load":
        names = [row["name"] for batch in g.scan("Person") for row in batch.to_pylist()]
        count = sum(name.startswith("loaded") for name in names)
        assert count in ({LOADED} if done else {0, LOADED}), told
    elif command == "schema":
        assert ("email" in g.schema) or not done, told
        columns = g.scan("Person").schema.names
        assert ("email" in columns) == ("email" in g.schema), told
    elif command == "shell":
        said = {text for text in texts if text.startswith("said")}
        assert said == {f"said {n}" for n in range(len(said))}, told
        assert len(said) == SAID or not done, told


@pytest.mark.parametrize("number", range(3))
def test_a_signal_at_any_moment_leaves_a_sound_graph(
    pristine: Path, tmp_path: Path, number: int
) -> None:
    draw = random.Random(number)
    place = tmp_path / "place"
    place.mkdir()
    strike(pristine, place, draw, draw.choice(COMMANDS))


@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("words", COMMANDS[-6:], ids=lambda words: words[0])
def test_a_signal_during_a_load_a_query_a_schema_change_or_the_shell(
    pristine: Path, tmp_path: Path, words: list[str], number: int
) -> None:
    draw = random.Random(f"{words} {number}")
    place = tmp_path / "place"
    place.mkdir()
    strike(pristine, place, draw, words, longest=4)


def test_interrupts_at_a_terminal_leave_the_shell_and_the_graph(
    pristine: Path, tmp_path: Path
) -> None:
    """Ctrl-C drops what is being said or done, and never the shell."""
    root = tmp_path / "graph"
    shutil.copytree(pristine, root)
    draw = random.Random(17)
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "omnigraph", "--root", str(root), "shell"],
        env=dict(os.environ)
        | {"PYTHONPATH": ":".join(filter(None, sys.path)), "TERM": "dumb"}
        | {"OMNIGRAPH_HISTORY": str(tmp_path / "history")},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = read_until(ours, b"\\help")
    for n in range(8):
        os.write(ours, f'insert Note {{ text: "said {n}" }};\n'.encode())
        shown += read_until(ours, b"\0", most=draw.uniform(0, 0.4))
        running.send_signal(signal.SIGINT)
    os.write(ours, b'\ninsert Note { text: "the last" };\n\\quit\n')
    shown += read_until(ours, None)
    assert running.wait(60) == 0, shown
    assert b"Traceback" not in shown
    assert b"bug" not in shown
    with omnigraph.open(root, settings=SETTINGS) as g:
        assert g.verify(deep=True).ok
        texts = [row["text"] for batch in g.scan("Note") for row in batch.to_pylist()]
    assert "the last" in texts


def read_until(terminal: int, sign: bytes | None, most: float = 60) -> bytes:
    """What is shown until a sign, the end, or so many seconds without either."""
    shown = b""
    end = time.monotonic() + most
    while sign is None or sign not in shown:
        ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
        if not ready:
            break
        try:
            more = os.read(terminal, 4096)
        except OSError:  # whoever was there has gone
            break
        if not more:
            break
        shown += more
    return shown


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


def test_an_interrupt_at_a_terminal_waits_until_a_module_is_imported(tmp_path: Path) -> None:
    """numpy that is interrupted while it is imported can never be imported again, and the shell
    would answer nothing any more."""
    (tmp_path / "slow.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\n"
        "time.sleep(0.1)\nready = True"
    )
    text = """
import sys, time
from omnigraph.cli.shell.terminal import _Interrupts

interrupts = _Interrupts()
with interrupts.handled():
    interrupts.wanted = True
    try:
        import slow
        for _ in range(500):
            time.sleep(0.01)
    except KeyboardInterrupt:
        print("interrupted", sys.modules["slow"].ready)
"""
    (tmp_path / "struck.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "struck"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "interrupted True\n", done
