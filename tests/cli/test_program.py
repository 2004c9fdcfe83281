"""The program as a whole: what it imports, what it prints where, and how it ends."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.cli.colours import Paint, bare, visible_width
from omnigraph.cli.commands import COMMANDS, GROUPS, Command
from omnigraph.cli.commands.load import _doing
from omnigraph.cli.options import Options
from omnigraph.cli.output import Output, Streams
from omnigraph.cli.progress import waiting
from omnigraph.cli.run import run
from omnigraph.cli.table import draw_table, fit_widths
from omnigraph.engine.load.progress import LoadProgress
from omnigraph.telemetry import Ledger, watch_requests
from tests.bench.aging import HOUR, PassingTime, at_point
from tests.bench.s3 import S3Server
from tests.cli.world import BinaryOut, Program, Terminal

SOURCE = Path(omnigraph.__file__).parents[1]
SCHEMA = "node Person {\n    name: String @key\n    age: I32?\n}\nedge Knows: Person -> Person\n"
SLOW_IMPORTS = {"pyarrow", "lance", "numpy", "duckdb", "obstore", "rich", "omnigraph.engine"}


def start(*arguments: str, root: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    environment.pop("NO_COLOR", None)
    environment["OMNIGRAPH_ROOT"] = str(root)
    return subprocess.Popen(
        [sys.executable, "-c", "from omnigraph.cli.app import main; main()", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=environment,
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "people.graph"
    with omnigraph.init(place, schema=SCHEMA) as g, g.transaction(actor="ada") as tx:
        tx.append("Person", [{"name": f"person {n}"} for n in range(3)])
    return place


def imported_by(*arguments: str) -> set[str]:
    code = (
        "import sys; from omnigraph.cli.run import run; "
        f"run({list(arguments)!r}); print(*sys.modules, file=sys.stderr)"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return set(ran.stderr.split())


def test_help_imports_nothing_that_is_slow() -> None:
    assert not imported_by("--help") & (SLOW_IMPORTS | {"cyclopts"})
    assert not imported_by("merge", "--help") & SLOW_IMPORTS


@pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda command: command.name)
def test_every_command_has_help_with_an_example_in_80_columns(command: Command) -> None:
    ran = Program()([*command.words, "--help"])
    assert ran.code == 0
    assert ran.out.startswith(f"Usage: omnigraph {command.name}")
    about, _, examples = ran.out.partition("\nExamples\n")
    assert f"  omnigraph {command.name}" in examples
    assert max(map(len, about.splitlines())) <= 80
    described = about.partition("Options\n")[2]
    for line, after in pairwise([*described.splitlines(), ""]):
        silent = re.fullmatch(r"  -\S+( \S+)*", line) and not after.startswith("   ")
        assert not silent, f"{line} says nothing"


def test_help_can_be_asked_for_in_every_way() -> None:
    program = Program()
    assert program([]).out == program(["--help"]).out == program(["help"]).out
    assert program(["log", "-h"]).out == program(["help", "log"]).out
    for group in GROUPS:
        assert program(group).out == program([*group, "--help"]).out
        assert f"omnigraph {group[0]} COMMAND" in program(group).out
    assert program(["--version"]).out == program(["version"]).out


def test_the_overview_names_every_command() -> None:
    out = Program()(["--help"]).out
    assert [name for name in COMMANDS if f"  {' '.join(name)} " not in out] == []
    assert max(map(len, out.splitlines())) <= 80


def test_the_version_is_that_of_the_package() -> None:
    told = json.loads(Program()(["version", "--json"]).out)
    assert told["omnigraph"] == omnigraph.__version__
    assert Program()(["version"]).out.startswith(f"omnigraph {omnigraph.__version__}\n")


def test_colours_are_for_terminals_and_obey_no_color(root: Path) -> None:
    on_terminal = Program(width=80)
    argv = ["log", "--root", str(root)]
    coloured = on_terminal(argv, NO_COLOR="").out
    assert "\x1b[" in coloured
    assert "\x1b[" not in on_terminal(argv, NO_COLOR="1").out
    assert "\x1b[" not in on_terminal(argv, NO_COLOR="", TERM="dumb").out
    assert "\x1b[" not in on_terminal([*argv, "--color", "never"], NO_COLOR="").out
    assert "\x1b[" not in Program()(argv, NO_COLOR="").out
    assert "\x1b[" in Program()([*argv, "--color=always"]).out
    assert bare(coloured) == on_terminal(argv).out


def test_nothing_but_the_result_is_on_stdout(root: Path) -> None:
    ran = Program()(["lint", "-", "--root", str(root), "--json"], "match { $p: Person } return")
    assert ran.code == 6
    assert json.loads(ran.out)[0]["diagnostics"]
    assert ran.err == "1 file: 1 error, 0 warnings.\n"
    quiet = Program()(["lint", "-", "--root", str(root), "-q"], "match { $p: Person } return {$p}")
    assert (quiet.out, quiet.err) == ("", "")


def test_the_ledger_counts_what_the_command_asked_of_storage(root: Path) -> None:
    ran = Program()(["branch", "create", "x", "--io", "--root", str(root)])
    assert re.search(r"^io: \d+ reads?, 1 write, \d+ hops? in sequence, ", ran.err, re.MULTILINE)
    assert "put 1" in ran.err
    again = Program()(["log", "--io", "--root", str(root)])
    assert ", 0 writes, " in again.err


def test_a_root_comes_from_the_option_then_the_environment_then_the_file(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    (tmp_path / "omnigraph.toml").write_text('root = "people.graph"\nactor = "toml"\n')
    assert json.loads(Program()(["stats", "--json"]).out)["root"] == str(root)
    wrong = Program()(["stats"], OMNIGRAPH_ROOT="elsewhere")
    assert (wrong.code, "elsewhere" in wrong.err) == (3, True)
    assert Program()(["stats", "--root", str(root)], OMNIGRAPH_ROOT="elsewhere").code == 0
    Program()(["protect", "main"])
    assert json.loads(Program()(["branch", "list", "--json"]).out)[0]["actor"] == "toml"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rot = 'x'", "Did you mean 'root'?"),
        ("root = 3", "root in"),
        ("root =", "cannot be read"),
        ("colour = 'x'", "There are root, actor."),
    ],
)
def test_a_wrong_configuration_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "omnigraph.toml").write_text(text)
    ran = Program()(["stats"])
    assert ran.code == 2
    assert told in ran.err


def test_a_question_is_asked_and_only_yes_goes_on(root: Path) -> None:
    with omnigraph.open(root) as g:
        g.create_branch("x")
        with g.branch("x").transaction() as tx:
            tx.append("Person", {"name": "new"})
    program = Program(width=80, environment={"OMNIGRAPH_ROOT": str(root)})
    refused = program(["branch", "delete", "x"], Terminal("n\n"))
    assert refused.code == 1
    assert "1 commit of x is not in main. Go on? [y/N] Nothing was changed." in refused.err
    assert program(["branch", "delete", "x"], Terminal("")).code == 1
    assert program(["branch", "delete", "x"], Terminal("y\n")).out == "Deleted x.\n"


def test_a_bug_is_one_line_and_with_debug_a_stack(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("omnigraph.engine.reads.Reads.log", broken)
    ran = Program()(["log", "--root", str(root)])
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "error: Something went wrong that should not: ZeroDivisionError: oh.",
        "help: This is a bug; --debug shows where.",
    ]
    with pytest.raises(ZeroDivisionError):
        Program()(["log", "--root", str(root), "--debug"])
    debugged = Program()(["entity", "Nope", "x", "--root", str(root), "--debug"])
    assert "Traceback" in debugged.err
    assert debugged.code == 3


def test_an_interrupt_is_one_line_and_leaves_the_graph_as_it_was(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("omnigraph.engine.graph.Graph.protect", interrupted)
    ran = Program()(["protect", "main", "--root", str(root)])
    assert (ran.code, ran.out, ran.err) == (130, "", "Interrupted. The graph is as it was.\n")


def test_an_interrupt_after_the_put_names_the_commit(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.engine.graph import Graph

    protect = Graph.protect

    def too_late(self: Graph, branch: str, **commit: Any) -> None:
        protect(self, branch, **commit)
        raise KeyboardInterrupt

    monkeypatch.setattr(Graph, "protect", too_late)
    ran = Program()(["protect", "main", "--root", str(root)])
    with omnigraph.open(root) as g:
        commit = g.snapshot().commit.id
    assert ran.code == 130
    assert ran.err == f"Interrupted too late: it is done, in commit {commit}.\n"


@pytest.mark.parametrize(
    ("words", "point", "said"),
    [
        (
            ["cleanup", "--keep", "1", "--older-than", "0s", "--yes"],
            "cleanup pruned",
            "Interrupted. What stays can be read; run it again to delete the rest.\n",
        ),
        (
            ["copy", "copied"],
            "chains surveyed",
            "Interrupted. The graph is as it was; run it again to copy the rest.\n",
        ),
    ],
)
def test_an_interrupt_of_what_goes_in_steps_says_how_to_go_on(
    words: list[str], point: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cleanup has made a commit by then, and is not done by it."""
    monkeypatch.chdir(tmp_path)
    place, clock = tmp_path / "graph", PassingTime(monkeypatch)
    with omnigraph.init(place, schema="node Note { text: String }\n", runtime=clock) as g:
        for number in range(4):
            with g.transaction() as tx:
                tx.append("Note", {"text": f"note {number}"})
    clock.wait(place, 2 * HOUR)

    def interrupt() -> None:
        raise KeyboardInterrupt

    with at_point(point, interrupt) as reached:
        ran = Program(clock)([*words, "--root", str(place)])
    assert reached
    assert (ran.code, ran.out, ran.err) == (130, "", said)
    assert Program(clock)([*words, "--root", str(place)]).code == 0
    assert Program(clock)(["verify", "--root", str(place)]).code == 0


def test_ctrl_c_ends_a_process_that_follows(root: Path) -> None:
    process = start("changes", "--follow", "--poll", "0.05", root=root)
    assert process.stdout is not None
    while "person 2" not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "Interrupted. The graph is as it was.\n"


def test_a_reader_that_has_seen_enough_is_no_failure(root: Path) -> None:
    with omnigraph.open(root) as g:
        for n in range(3):
            long = f"{n}" * 70_000  # more than a pipe holds
            g.mutate(f'insert Person {{ name: "p{n}" }}', message=long)
    process = start("log", "--format", "jsonl", root=root)
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["kind"] == "mutate"
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    assert (process.wait(60), err) == (0, "")
    process.stderr.close()


def test_a_file_that_may_not_be_read_or_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "x.pg"
    path.write_text("node   X { a: String }")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", denied)
        ran = Program()(["schema", "fmt", str(path)])
    assert (ran.code, ran.err) == (5, f"error: The file {path} may not be read.\n")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", denied)
        ran = Program()(["schema", "fmt", str(path)])
    assert (ran.code, ran.err) == (5, f"error: The file {path} may not be written.\n")
    path.write_bytes(b"\xff\xfe")
    assert Program()(["schema", "fmt", str(path)]).code == 2


def test_an_export_to_where_nothing_may_be_written_is_denied(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    to = tmp_path / "out.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr("tempfile.mkstemp", denied)
        ran = Program()(["export", str(to), "--root", str(root)])
    assert (ran.code, ran.err) == (5, f"error: The file {to} may not be written.\n")


@pytest.mark.parametrize(
    ("number", "code", "told"),
    [
        (errno.EROFS, 5, "may not be written: the file system is read-only."),
        (errno.EACCES, 5, "may not be written."),
        (errno.ENOSPC, 7, "No space is left for"),
        (errno.ENOENT, 2, "cannot be written: No such file or directory."),
    ],
)
def test_rows_that_could_not_be_put_aside_are_told_before_anything_is_loaded(
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    code: int,
    told: str,
) -> None:
    real = Path.open

    def refused(path: Path, mode: str = "r", *rest: object, **more: object) -> object:
        if "a" in mode:
            raise OSError(number, os.strerror(number))
        return real(path, mode, *rest, **more)  # type: ignore[call-overload]

    source = tmp_path / "more.jsonl"
    source.write_text('{"type": "Person", "data": {"name": "Ada"}}\n')
    monkeypatch.setattr(Path, "open", refused)
    rejected = ["--on-error", "quarantine", "--rejected", str(tmp_path / "bad.jsonl")]
    ran = Program()(["load", str(source), *rejected, "--root", str(root)])
    assert ran.code == code
    assert told in ran.err
    with omnigraph.open(root) as g:
        assert g.entity("Person", "Ada") is None


def test_ctrl_c_is_one_line_while_the_program_is_still_being_imported() -> None:
    code = (
        "import sys, types\n"
        "class Slow(types.ModuleType):\n"
        "    def __getattr__(self, name): raise KeyboardInterrupt\n"
        "sys.modules['omnigraph.cli.run'] = Slow('omnigraph.cli.run')\n"
        "from omnigraph.cli.app import main; main()"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (130, "")
    assert ran.stderr == "Interrupted. The graph is as it was.\n"
    assert not imported_by_the_entry() & (SLOW_IMPORTS | {"cyclopts", "omnigraph.cli.run"})


def imported_by_the_entry() -> set[str]:
    code = "import sys, omnigraph.cli.app; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return set(ran.stdout.split())


def test_ctrl_c_before_the_command_begins_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("omnigraph.cli.parse.parse_words", interrupted)
    ran = Program()(["stats"])
    assert (ran.code, ran.err) == (130, "Interrupted. The graph is as it was.\n")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_stream_that_the_caller_closed_is_no_failure(root: Path, closed: str) -> None:
    program = f"{shlex.quote(sys.executable)} -m omnigraph stats --root {shlex.quote(str(root))}"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    ran = subprocess.run(
        ["bash", "-c", f"{program} {closed}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_an_output_without_space_is_told_and_is_no_bug(root: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "omnigraph", "stats", "--root", str(root)],
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ran.returncode == 7
    assert ran.stderr.splitlines() == [
        "error: No space is left for the output.",
        "help: Free some space, or choose another place.",
    ]


def test_a_graph_on_a_read_only_disk_is_denied(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(
            'LanceError(IO): Read-only file system (os error 30) at path "x", object_store.rs:1'
        )

    monkeypatch.setattr("lance.fragment.write_fragments", refused)
    ran = Program()(["mutate", "-e", 'insert Person { name: "x" }', "--root", str(root)])
    assert ran.code == 5
    assert re.fullmatch(
        r"error: No permission for the table \S+ \(Read-only file system\)\.\n", ran.err
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_completion_for_every_command(shell: str) -> None:
    out = Program()(["completion", shell]).out
    for command in COMMANDS.values():
        assert re.search(rf"\b{command.words[-1]}\b", out)
    if shell != "fish":
        subprocess.run(["bash", "-n"], input=out, text=True, check=True)


def test_bash_completes_commands_options_and_branches(root: Path, tmp_path: Path) -> None:
    script = Program()(["completion", "bash"]).out
    fake = tmp_path / "omnigraph"
    fake.write_text("#!/bin/sh\nprintf 'main\\nreview\\n'\n")
    fake.chmod(0o755)

    def complete(*words: str) -> list[str]:
        given = " ".join(f"'{word}'" for word in words)
        asked = (
            f"{script}\nCOMP_WORDS=(omnigraph {given}); COMP_CWORD={len(words)}; "
            '_omnigraph; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        ran = subprocess.run(
            ["bash", "-c", asked], capture_output=True, text=True, check=True, env=environment
        )
        return ran.stdout.split()

    assert complete("sche") == ["schema"]
    assert complete("schema", "l") == ["lint"]
    assert complete("schema", "apply", "--dr") == ["--dry-run"]
    assert complete("merge", "re") == ["review"]
    assert "--first-parent" in complete("log", "--")


def test_a_table_fits_the_terminal_and_loses_nothing_in_a_file() -> None:
    rows = [["a" * 60, 1, None], ["日本語" * 20, 22, "x" * 60]]
    for width in (40, 80, 133):
        lines = list(draw_table(["one", "n", "two"], rows, Paint(), width))
        assert max(map(visible_width, lines)) <= width
    whole = "\n".join(draw_table(["one", "n", "two"], rows, Paint(), None))
    assert "a" * 60 in whole
    assert "日本語" * 20 in whole
    assert list(draw_table([], [], Paint(), 80)) == []
    assert fit_widths([3, 50, 60], 200) == [3, 50, 60]


def test_a_table_is_drawn_as_its_rows_come() -> None:
    """A result may have more rows than there is memory."""
    taken = 0

    def rows() -> Iterator[list[Any]]:
        nonlocal taken
        for number in range(100_000):
            taken += 1
            yield [number, "x" * (5 if number < 50_000 else 90)]

    lines = draw_table(["n", "text"], rows(), Paint(), 40)
    assert [next(lines) for _ in range(3)] == ["  n  text", "───  ─────", "  0  xxxxx"]
    assert taken < 2_000
    *_, last = lines
    assert last == f"99999  {'x' * 32}…"


def test_a_long_sentence_is_broken_between_words_on_a_terminal(root: Path) -> None:
    wide = ["query", "--root", str(root), "-e", "match { $p: Person } return { $p.name }"]
    words = [*wide, "--engine", "local", "--conf", "spark.driver.memory=8g"]
    program = Program(width=40)
    told = program(words, terminal=True).err.splitlines()
    assert told == [
        "error: --conf is for Spark, and --engine",
        "local does not use it.",
        "help: Leave --conf out, or say --engine",
        "spark.",
    ]
    assert len(program(words).err.splitlines()) == 2


def test_what_would_move_the_cursor_is_escaped(root: Path) -> None:
    with omnigraph.open(root) as g, g.transaction(message="a\x1b[2Jb", actor="\u202eevil") as tx:
        tx.append("Person", {"name": "x\ny\x07"})
    program = Program(environment={"OMNIGRAPH_ROOT": str(root)}, width=80)
    shown = "".join(program(argv).out for argv in (["log"], ["show"], ["diff", "main~1"]))
    assert not set(shown) & {"\x1b", "\x07", "\u202e"}
    assert "x\\ny\\x07" in shown


def test_it_is_quick_to_say_that_it_does_not_know() -> None:
    assert not imported_by("lgo") & (SLOW_IMPORTS | {"cyclopts"})


def test_a_query_gives_an_arrow_stream(root: Path) -> None:
    import pyarrow as pa

    argv = ["query", "-e", "match { $p: Person } return { $p.name as name } order { name }"]
    argv += ["--root", str(root), "--format", "arrow"]
    ran = Program()(argv)
    assert pa.ipc.open_stream(ran.bytes).read_all().to_pydict() == {
        "name": ["person 0", "person 1", "person 2"]
    }
    assert Program(width=80)(argv).code == 2


def test_a_big_result_does_not_wait_for_its_end(root: Path) -> None:
    with omnigraph.open(root) as g, g.transaction() as tx:
        tx.append("Person", [{"name": f"{n:0200}"} for n in range(5_000)])
    process = start(
        "query", "-e", "match { $p: Person } return { $p }", "--format", "jsonl", root=root
    )
    assert process.stdout is not None
    assert "p" in json.loads(process.stdout.readline())
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(60) == 0
    process.stderr.close()


@pytest.mark.s3
def test_the_same_program_works_on_s3(s3_environment: S3Server, s3_prefix: str) -> None:
    url = s3_environment.url(s3_prefix)
    program = Program(environment={"OMNIGRAPH_ROOT": url})
    assert program(["log"]).code == 3
    made = program(["init", "--schema", "-"], SCHEMA)
    assert (made.code, made.err) == (0, "")
    assert program(["load", "-"], '{"type": "Person", "data": {"name": "Ada"}}\n').code == 0
    assert json.loads(program(["stats", "--json"]).out)["entities"] == 1


@pytest.mark.s3
def test_a_root_on_s3_without_credentials_is_one_clear_sentence(
    s3_environment: S3Server, s3_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = s3_environment.url(s3_prefix)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    ran = Program()(["log", "--root", url])
    assert ran.code == 5
    assert ran.err.startswith(f"error: There are no credentials for {url}.\nhelp: Set AWS_ACCESS_")
    assert len(ran.err.splitlines()) == 2


def test_a_progress_bar_is_for_a_terminal_that_waits(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "more.jsonl"
    path.write_text('{"type": "Person", "data": {"name": "Ada"}}\n')

    def told(patience: float, *options: str) -> str:
        monkeypatch.setattr("omnigraph.cli.progress._PATIENCE", patience)
        err = Terminal()
        streams = Streams(io.StringIO(), BinaryOut(terminal=True), err, 80)
        argv = ["load", str(path), "--mode", "merge", "--root", str(root), *options]
        assert run(argv, streams=streams, environment={}) == 0
        return err.getvalue()

    assert "publishing, 1 row" in told(0)
    assert told(0, "--quiet") == told(3600) == ""


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (LoadProgress("reading", 7, 10, 20), "reading, 7 rows"),
        (
            LoadProgress("reading", 0, 0, None, 0, 2),
            "reading, 0 of 2 tasks",
        ),  # nobody knows of rows
        (
            LoadProgress("writing", 500, 0, None, 1, 4, 2.0, total_rows=2000),
            "writing, 500 of 2,000 rows, 250 rows/s, 1 of 4 tasks",
        ),
    ],
)
def test_a_bar_says_what_is_known(progress: LoadProgress, words: str) -> None:
    assert _doing(progress) == words


def test_what_cannot_say_how_far_it_is_has_a_line_that_goes() -> None:
    err = Terminal()
    streams = Streams(io.StringIO(), BinaryOut(terminal=True), err, 80)
    with waiting(Output(streams, Options(), {}), "starting Spark"):
        assert err.getvalue() == "starting Spark …"
    assert err.getvalue().endswith("\r\x1b[K")


def test_a_query_is_explained_in_the_words_of_the_engine(root: Path, tmp_path: Path) -> None:
    text = "query one($n: String) { match { $p: Person { name: $n } } return { $p.name } }"
    path = tmp_path / "one.gq"
    path.write_text(text)
    argv = ["explain", str(path), "one", "--param", "n=person 1", "--root", str(root)]
    with omnigraph.open(root) as g:
        expected = g.query(text, params={"n": "person 1"}).explain()
    assert Program()(argv).out.rstrip() == expected.rstrip()
    assert json.loads(Program()([*argv, "--json"]).out)["plan"] == expected
    assert "1 row in " in Program()([*argv, "--analyze"]).out


def test_requests_made_side_by_side_are_counted_once() -> None:
    with watch_requests() as watched:
        whole, one, other = Ledger(), Ledger(), Ledger()
        one.record("get", "data", size=3)
        other.record("put", "data", count=2, size=5)
        whole.join([one, other])
        whole.record("list", "version")
        Ledger().record("get", "graph")
    for _ in range(2):
        total = watched.total()
        assert (total.reads, total.writes, total.hops, total.bytes) == (3, 2, 4, 8)
