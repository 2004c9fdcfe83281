"""Whatever stands in an argument, an option or a variable: an answer or a sentence, and an exit
code of the documented set. The table of commands is walked, so a new command is in it by itself."""

from __future__ import annotations

import inspect
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.cli.arguments import is_shown
from omnigraph.cli.commands import COMMANDS, Command
from omnigraph.cli.parse import load_function, make_app
from omnigraph.settings import Settings
from tests.cli.world import Program, Ran
from tests.hostile.world import build_graph, fingerprint

CODES = {*range(9), 130}
VALUES = (
    "",
    " ",
    "\udcff",
    "x\0y",
    "~nosuch/x",
    "../../x",
    "/dev/null",
    "-1",
    "0",
    "1e400",
    "nan",
    "9" * 400,
    "x" * 70_000,
    "{",
    '{"\udcff": 1}',
    "[[[[" * 500,
    "$(touch stray)",
    "a\nb",
    "main~99999999999999999999",
    "main@x",
    "main*2026-13-45",
    "Person",
    "%2e%2e",
    "💥",
    "s3://",
    "memory://x/../y",
    "\x1b]0;x\x07",
)
INTERACTIVE = {"shell", "completion"}
FOLLOWS = {"follow", "master", "conf"}
"""With these a command does not end by itself, or starts a JVM that writes on its own."""
FEW = 220


def options_of(command: Command) -> list[tuple[str, ...]]:
    """Each argument and option of a command, as the words before a value."""
    app = make_app(command)
    found: list[tuple[str, ...]] = []
    for argument in app.assemble_argument_collection():
        name = argument.names[0] if argument.names else ""
        if not is_shown(argument) or name.lstrip("-") in FOLLOWS:
            continue
        found.append((name,) if name.startswith("--") else ())
    return found


def attempts() -> Iterator[tuple[Command, list[str]]]:
    for command in COMMANDS.values():
        if command.name in INTERACTIVE:
            continue
        for before in options_of(command):
            for value in VALUES:
                yield command, [*command.words, *before, value]
                yield command, [*command.words, "Person", "a", *before, value]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("arguments") / "graph"
    build_graph(root)
    return root


def check(ran: Ran, words: list[str]) -> None:
    shown = [word[:60] for word in words]
    assert ran.code in CODES, (shown, ran)
    for bad in ("Traceback", "this is a bug", "This is a bug", "PanicException"):
        assert bad not in ran.out + ran.err, (shown, ran.err[:2000])
    if ran.code and "verify" not in words:
        assert ran.err.strip() or ran.out.strip(), shown


def run_all(
    tries: list[tuple[Command, list[str]]],
    pristine: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = tmp_path / "a" / "b" / "c"
    place.mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "canary").write_text("mine")
    before = fingerprint(outside)
    monkeypatch.chdir(place)
    root = place / "graph"
    program = Program(
        environment={
            "OMNIGRAPH_DURABILITY": "relaxed",
            "OMNIGRAPH_FOLDING": "off",
            "OMNIGRAPH_REQUEST_TIMEOUT": "1",
        }
    )
    for number, (_, words) in enumerate(tries):
        if number % 100 == 0:
            shutil.rmtree(root, ignore_errors=True)
            shutil.copytree(pristine, root)
        check(program(["--root", str(root), *words]), words)
    assert fingerprint(outside) == before
    assert not list(tmp_path.rglob("stray"))


def test_the_table_has_every_command_and_its_options() -> None:
    names = {command.name for command, _ in attempts()}
    assert names == {command.name for command in COMMANDS.values()} - INTERACTIVE - {
        command.name for command in COMMANDS.values() if not options_of(command)
    }
    branches = [words for command, words in attempts() if command.name == "mutate"]
    assert any("--branch" in words for words in branches)
    assert len(inspect.signature(load_function(COMMANDS["mutate",])).parameters) > 5


def test_hostile_arguments_get_an_answer_or_a_sentence(
    pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = list(attempts())
    random.Random(17).shuffle(tries)
    run_all(tries[:FEW], pristine, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(" ".join(words) for words in COMMANDS))
def test_every_hostile_argument_of_a_command_gets_an_answer_or_a_sentence(
    name: str, pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = [(command, words) for command, words in attempts() if command.name == name]
    run_all(tries, pristine, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("variable", "value", "code"),
    [
        ("TOKIO_WORKER_THREADS", "0", 2),
        ("TOKIO_WORKER_THREADS", "x", 2),
        ("LANCE_CPU_THREADS", "0", 2),
        ("LANCE_IO_THREADS", "abc", 2),
        ("LANCE_IO_THREADS", "4", 0),
        ("LANCE_IO_CORE_RESERVATION", "0", 0),
        ("HOME", "", 0),
        ("TMPDIR", "/nonexistent", 0),
        ("TMPDIR", "/dev/null", 0),
        ("LC_ALL", "xx_YY.foo", 0),
        ("PYTHONIOENCODING", "ascii", 0),
        ("TZ", "Mars/Base", 0),
        ("TERM", "garbage", 0),
        ("XDG_CACHE_HOME", "/dev/null", 0),
        ("XDG_RUNTIME_DIR", "/dev/null", 0),
        ("JAVA_HOME", "/nonexistent", 0),
        ("HTTP_PROXY", "garbage", 0),
    ],
)
def test_a_hostile_variable_of_others_gets_an_answer_or_a_sentence(
    variable: str, value: str, code: int, pristine: Path, tmp_path: Path
) -> None:
    """In a process of its own, because libraries read them once."""
    root = tmp_path / "graph"
    shutil.copytree(pristine, root)
    for words in (
        ["query", "-e", "match { $p: Person } return { $p.name } order { $p.name }"],
        ["mutate", "-e", 'insert Note { text: "x" }'],
    ):
        ran = subprocess.run(
            [sys.executable, "-m", "omnigraph", *words, "--root", str(root)],
            capture_output=True,
            text=True,
            env=dict(os.environ) | {variable: value},
            check=False,
        )
        assert ran.returncode == code, ran
        for bad in ("Traceback", "bug", "panicked", "cannot be read"):
            assert bad not in ran.stderr, ran
        if code:
            assert variable in ran.stderr


VARIABLES = (
    *(f"OMNIGRAPH_{name.upper()}" for name in Settings.__dataclass_fields__),
    *("OMNIGRAPH_ROOT", "OMNIGRAPH_ACTOR", "NO_COLOR", "COLUMNS"),
)


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_hostile_variable_gets_an_answer_or_a_sentence(
    variable: str, pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(pristine, tmp_path / "graph")
    given: dict[str, Any] = {} if variable == "OMNIGRAPH_ROOT" else {"OMNIGRAPH_ROOT": "graph"}
    for value in VALUES:
        if "\0" in value:
            continue  # no variable can hold it
        with monkeypatch.context() as patch:
            patch.setenv(variable, value)
            for words in (["log"], ["mutate", "-e", 'insert Note { text: "x" }']):
                ran = Program(environment={**given, variable: value})(words)
                check(ran, [f"{variable}={value}", *words])
