"""The shell: what is complete, what is completed, scripts, and a session at a terminal."""

from __future__ import annotations

import codecs
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.cli.shell.complete import Completer
from omnigraph.cli.shell.reading import State, read_statements
from omnigraph.model.catalog import Catalog
from tests.cli.world import Program

SOURCE = Path(omnigraph.__file__).parents[1]
SCHEMA = """
node Person {
    name: String @key
    age: I32?
}
node Company {
    name: String @key
}
edge WorksAt: Person -> Company {
    since: I32?
}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "people.graph"
    with omnigraph.init(place, schema=SCHEMA) as g, g.transaction(actor="ada") as tx:
        tx.append("Person", [{"name": "Ada", "age": 36}, {"name": "Bob"}])
        tx.append("Company", {"name": "Acme"})
        tx.append("WorksAt", {"src": "Ada", "dst": "Acme"})
    return place


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("", "empty"),
        ("   \n", "empty"),
        (";", "empty"),
        ("match {", "open"),
        ("match { $p: Person }", "open"),
        ("match { $p: Person }\nreturn {", "open"),
        ("match { $p: Person } return { $p.name }", "complete"),
        ("match { $p: Person } return { $p.name };", "complete"),
        ("query all() { match { $p: Person } return { $p.name }", "open"),
        ("query all() { match { $p: Person } return { $p.name } }", "complete"),
        ('insert Person { name: "x', "open"),
        ('insert Person { name: "x" }', "complete"),
        ("/* a comment", "open"),
        ("branch list", "complete"),
        ("branch create", "open"),
        ("branch create\n\n", "wrong"),
        ("branch create;", "wrong"),
        ("match { $p: Person } retrun { $p.name }", "wrong"),
        ("frobnicate the graph", "wrong"),
        ("// only a comment", "open"),
    ],
)
def test_a_statement_waits_until_it_is_complete(text: str, state: State) -> None:
    assert read_statements(f"{text}\n" if text else "").state == state


@pytest.fixture
def completer(root: Path) -> Iterator[Completer]:
    with omnigraph.open(root) as g:
        g.create_branch("review")
        catalog: Catalog = g.snapshot().catalog
        yield Completer(lambda: catalog, g.branches, ["help", "use", "log", "schema show"])


@pytest.mark.parametrize(
    ("before", "word", "expected"),
    [
        ("", "\\l", ["\\log"]),
        ("", "ma", ["match"]),
        ("match { $p: ", "Per", ["Person"]),
        ("insert ", "", ["Company", "Person", "WorksAt"]),
        ("match { $p: Person } return { ", "$p.a", ["$p.age"]),
        ("match { $p: Person } return { ", "$p.", ["$p.name", "$p.age", "$p.@id"]),
        ("match { $p ", "wo", ["worksAt"]),
        ("branch merge ", "re", ["review"]),
        ("\\use ", "", ["main", "review"]),
        ("\\log ", "--gr", ["--graph"]),
        ("\\log '", "--gr", []),
        ("\\nothing ", "--gr", []),
    ],
)
def test_words_are_completed_by_what_can_stand_there(
    completer: Completer, before: str, word: str, expected: list[str]
) -> None:
    assert completer.candidates(before, word) == expected


def test_a_property_is_completed_by_the_type_given_on_an_earlier_line(
    completer: Completer,
) -> None:
    assert completer.candidates("return { ", "$w.s", "match { $w: WorksAt }") == ["$w.since"]


def script(root: Path, text: str, *options: str) -> tuple[int, str, str]:
    ran = Program(environment={"OMNIGRAPH_ROOT": str(root)})(["shell", *options], text)
    return ran.code, ran.out, ran.err


def test_a_script_runs_statement_by_statement(root: Path) -> None:
    code, out, err = script(
        root,
        """
match { $p: Person }
return { $p.name as name, $p.age as age } order { name }

branch create review from main
\\use review
insert Person { name: "Eve", age: 20 }
\\format csv
match { $p: Person } return { count($p) as n }
\\use main
match { $p: Person } return { count($p) as n }
branch merge review into main
match { $p: Person } return { count($p) as n }
\\set who Bob
query one($who: String) { match { $p: Person { name: $who } } return { $p.name } }
explain query one($who: String) { match { $p: Person { name: $who } } return { $p.name } }
\\log --oneline -n 1 --json
branch delete review
branch list
""",
        "--as",
        "ada",
        "--quiet",
    )
    assert err == ""
    assert code == 0
    assert out.startswith("name   age\n────  ────\nAda     36\nBob   null\n")
    assert "n\n3\nn\n2\n" in out
    assert "p.name\nBob\n" in out
    with omnigraph.open(root) as g:
        text = "query one($who: String) { match { $p: Person { name: $who } } return { $p.name } }"
        assert g.query(text, params={"who": "Bob"}).explain() in out
    assert '"kind": "merge", "actor": "ada"' in out
    with omnigraph.open(root) as g:
        assert g.branches() == ["main"]
        assert g.entity("Person", "Eve") is not None


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("match { $p: Prson } return { $p.name }", 6, "did you mean `Person`?"),
        ("match { $p: Person", 6, "error[Q00"),
        ("\\use nope", 3, "There is no branch 'nope'."),
        ("\\lgo", 2, "Did you mean \\log?"),
        ("\\", 2, "A command is missing"),
        ("\\log --limt 3", 2, "Did you mean --limit?"),
        ("\\read missing.gq", 3, "There is no file missing.gq."),
        ("\\log 'x", 2, "The line cannot be read"),
        ("\\format tabel", 2, "Did you mean 'table'?"),
        ("\\shell", 2, "outside of the shell"),
        ("branch delete nope", 3, "There is no branch 'nope'."),
    ],
)
def test_a_script_stops_at_the_first_failure(root: Path, text: str, code: int, told: str) -> None:
    found, out, err = script(root, f"{text}\n\nbranch create never\n")
    assert (found, out) == (code, "")
    assert told in err
    with omnigraph.open(root) as g:
        assert g.branches() == ["main"]


def test_order_and_limit_below_a_statement_belong_to_it(root: Path, tmp_path: Path) -> None:
    text = (
        "match { $p: Person }\nreturn { $p.name }\norder { $p.name desc }\nlimit 1\n\nbranch list"
    )
    code, out, err = script(root, text, "--format", "csv")
    assert (code, err) == (0, "")
    assert out.startswith("p.name\nBob\nbranch,")
    path = tmp_path / "some.gq"
    path.write_text(text)
    assert script(root, f"\\read {path}", "--format", "csv") == (code, out, err)
    code, out, err = script(root, "order { $p.name }")
    assert (code, out) == (6, "")
    assert "help: The statement above ran with its line: write this behind it." in err


def test_a_ref_that_is_no_branch_is_read_and_not_written_to(root: Path) -> None:
    code, out, err = script(
        root,
        'match { $p: Person } return { count($p) as n }\ninsert Person { name: "x" }',
        "--ref",
        "main~1",
        "-q",
    )
    assert (code, out) == (3, "n\n─\n0\n")
    assert err == "error: 'main~1' is a commit, not a branch.\nhelp: Name the branch to write to.\n"


def test_a_file_of_statements_is_read(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "some.gq"
    path.write_text("branch create one\nmatch { $p: Person }\nreturn { count($p) as n }")
    code, out, _ = script(root, f"\\read {path}\n\\types\n\\timing\n\\io\n\\help\n\\quit\nnonsense")
    assert code == 0
    assert "Created one from main" in out
    assert re.search(r"^n\n─\n2$", out, re.MULTILINE)
    assert re.search(r"^Person +node +2 +name, age$", out, re.MULTILINE)


class Session:
    """The program at a pseudo-terminal."""

    def __init__(self, root: Path, home: Path) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(SOURCE),
            "OMNIGRAPH_ROOT": str(root),
            "OMNIGRAPH_HISTORY": str(home / "history"),
            "TERM": "xterm",
            "NO_COLOR": "1",
            "INPUTRC": "/dev/null",
            "COLUMNS": "100",
        }
        self.terminal, inside = pty.openpty()
        # The terminal becomes the one that Ctrl-C comes from, also where whoever runs the tests has
        # signals ignored, as a job in the background has. A session that hangs tells where.
        code = (
            "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
            "import faulthandler; faulthandler.dump_traceback_later(120); "
            "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
            "from omnigraph.cli.app import main; main()"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "shell"],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            env=environment,
            start_new_session=True,
        )
        os.close(inside)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.seen = ""

    def comes(self, text: str, seconds: float) -> bool:
        """Reads until the text has come, or the time has passed, or the program has ended."""
        deadline = time.monotonic() + seconds
        while text not in self.seen and time.monotonic() < deadline:
            if select.select([self.terminal], [], [], 1)[0]:
                try:
                    self.seen += self._decoder.decode(os.read(self.terminal, 4096))
                except OSError:
                    break
        return text in self.seen

    def expect(self, text: str) -> str:
        self.comes(text, 300)  # only so that a failure ends
        before, found, self.seen = self.seen.partition(text)
        assert found, f"{text!r} did not come: {before!r}"
        return before

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def interrupt(self, until: str) -> None:
        """Ctrl-C, again while the answer does not come: readline shows its prompt, and codes for
        the terminal after it, before it waits for keys. It misses a signal that falls between the
        two, as a person would see too."""
        for _ in range(60):
            self.type("\x03")
            if self.comes(until, 5):
                break
        self.expect(until)

    def end(self) -> int:
        code = self.process.wait(300)
        os.close(self.terminal)
        return code


@pytest.fixture
def start_session(tmp_path: Path) -> Iterator[Callable[[Path], Session]]:
    sessions: list[Session] = []

    def start(root: Path) -> Session:
        sessions.append(Session(root, tmp_path))
        return sessions[-1]

    yield start
    for session in sessions:
        session.process.kill()
        session.process.wait()


def test_a_session_at_a_terminal(
    root: Path, tmp_path: Path, start_session: Callable[[Path], Session]
) -> None:
    session = start_session(root)
    session.expect("main> ")
    session.type("match { $p: Per\t } ret\t { $p.na\t as name } order { name }\n")
    assert "Person" in session.expect("name")
    session.expect("Ada")
    session.expect("2 rows")
    session.expect("main> ")
    session.type("match { $p: Person }\n")
    session.expect("… ")
    session.type("return { count($p) as people }\n")
    session.expect("people\r\n──────\r\n     2")
    session.expect("main> ")
    session.type("match {\n")
    session.expect("… ")
    session.interrupt(until="main> ")  # Ctrl-C drops the statement
    session.type("match { $p: Prson } return { $p.name }\n")
    session.expect("did you mean `Person`?")
    session.expect("main> ")
    session.type("branch create review\n")
    session.expect("Created review")
    session.expect("main> ")
    session.type("\\use re\t\n")
    session.expect("review> ")
    session.type("\x1b[A\x1b[A\n")  # the line before the last one
    session.expect("exists already")
    session.expect("review> ")
    session.type("\x04")  # Ctrl-D
    assert session.end() == 0
    assert "branch create review" in (tmp_path / "history").read_text()
