"""Files of the user's that commands write: never an input, never unasked, never half; and what is
said when the output cannot be written."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import AlreadyExists, IdempotencyMismatch, InvalidArgument
from tests.cli.world import Program
from tests.hostile.world import fingerprint

SCHEMA = "node Person { name: String @key age: I32? }\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "people.graph"
    with omnigraph.init(place, schema=SCHEMA) as g, g.transaction() as tx:
        tx.append("Person", [{"name": f"p{n}", "age": n} for n in range(100)])
    return place


def rows(path: Path, *names: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "".join(json.dumps({"type": "Person", "data": {"name": n}}) + "\n" for n in names)
    )
    return path


@pytest.mark.parametrize("given", ["in/a.jsonl", "in", "in/*.jsonl", "./in/../in/a.jsonl"])
def test_rejected_rows_never_go_onto_an_input(
    root: Path, tmp_path: Path, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = rows(tmp_path / "in" / "a.jsonl", "Ada")
    before = source.read_bytes()
    (tmp_path / "link.jsonl").symlink_to(source)
    for rejected in ("in/a.jsonl", "link.jsonl"):
        ran = Program()(
            ["load", given, "--rejected", rejected, "--on-error", "quarantine", "--root", str(root)]
        )
        assert ran.code == 2, ran.err
        assert f"--rejected {rejected} is one of the files to load." in ran.err
        assert source.read_bytes() == before


def test_an_export_onto_a_file_asks_and_onto_the_graph_is_refused(
    root: Path, tmp_path: Path
) -> None:
    target = tmp_path / "out.jsonl"
    target.write_text("mine")
    ran = Program()(["export", str(target), "--root", str(root)])
    assert ran.code == 2
    assert "is there already" in ran.err
    assert "--yes" in ran.err
    assert target.read_text() == "mine"
    assert Program()(["export", str(target), "--yes", "--root", str(root)]).code == 0
    assert len(target.read_text().splitlines()) == 100
    for inside in (root / "_graph.json", root, root / "nodes" / "x.jsonl"):
        before = sorted(root.rglob("*"))
        ran = Program()(["export", str(inside), "--format", "jsonl", "--yes", "--root", str(root)])
        assert ran.code == 2, ran.err
        assert "is in the graph itself" in ran.err
        assert sorted(root.rglob("*")) == before
    with omnigraph.open(root, mode="r") as g:
        with pytest.raises(AlreadyExists):
            g.export(to=target, overwrite=False)
        with pytest.raises(InvalidArgument, match="in the graph itself"):
            g.branch("main").export(to=root / "a.jsonl")


def test_of_two_exports_to_one_path_one_wins_whole(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    (tmp_path / ".out.jsonl.part").symlink_to(tmp_path / "elsewhere")

    def export(_: int) -> None:
        with omnigraph.open(root, mode="r") as g:
            for _ in range(10):
                g.export(to=target)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(export, range(4)))
    assert len(target.read_text().splitlines()) == 100
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert not (tmp_path / "elsewhere").exists()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"out.jsonl", "people.graph", ".out.jsonl.part"}


def test_a_job_that_has_landed_loads_nothing_else(root: Path, tmp_path: Path) -> None:
    first, second = rows(tmp_path / "a.jsonl", "Ada"), rows(tmp_path / "b.jsonl", "Bob")
    with omnigraph.open(root) as g:
        done = g.load(first, job="nightly")
        assert not done.repeated
        again = g.load(first, job="nightly")
        assert again.repeated
        assert again.commit_id == done.commit_id
        with pytest.raises(IdempotencyMismatch, match="'nightly' has loaded something else"):
            g.load(second, job="nightly")
        with pytest.raises(InvalidArgument, match="A job needs a name"):
            g.load(second, job=" ")
        assert g.entity("Person", "Bob") is None
    ran = Program()(["load", str(first), "--job", "nightly", "--root", str(root)])
    assert ran.code == 0
    assert ran.out == f"It was loaded before, in commit {done.commit_id}.\n"
    told = Program()(["load", str(first), "--job", "nightly", "--root", str(root), "--json"])
    assert json.loads(told.out)["repeated"] is True
    assert Program()(["load", str(second), "--job", "nightly", "--root", str(root)]).code == 4
    assert Program()(["load", str(second), "--job", "", "--root", str(root)]).code == 2


# The output


def run_full(*words: str) -> subprocess.CompletedProcess[str]:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        return subprocess.run(
            [sys.executable, "-m", "omnigraph", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=os.environ | {"NO_COLOR": "1"},
        )


def test_a_commit_whose_output_is_lost_is_told_as_landed(root: Path) -> None:
    ran = run_full("mutate", "-e", 'insert Person { name: "Ada" }', "--root", str(root))
    with omnigraph.open(root, mode="r") as g:
        commit = g.snapshot().commit.id
        assert g.entity("Person", "Ada") is not None
    assert ran.returncode == 0  # that is what it says: who tries again would do it twice
    assert ran.stderr == (
        f"warning: No space is left for the output. It is done, in commit {commit}.\n"
    )


WRITES = (
    (["branch", "create", "x"], "It is done, in commit "),
    (["branch", "delete", "x"], "The branch is deleted."),
    (["tag", "create", "v"], "The tag is created."),
    (["tag", "delete", "v"], "The tag is deleted."),
    (["protect", "main"], "It is done, in commit "),
    (["unprotect", "main"], "It is done, in commit "),
    (["cleanup", "--yes"], "The cleanup is done."),
    (["load", "{rows}"], "It is done, in commit "),
    (["restore", "main~1", "--yes"], "It is done, in commit "),
    (["copy", "{place}/copy"], "The graph is copied."),
    (["delete", "{place}/copy", "--yes"], "The graph is deleted."),
    (["init", "{place}/new", "--schema", "{place}/s.pg"], "The graph is created, in commit "),
)


def test_whatever_is_done_is_told_as_done_when_the_output_is_lost(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "s.pg").write_text("node A { n: I32? }\n")
    given = {"place": tmp_path, "rows": rows(tmp_path / "rows.jsonl", "Ada")}
    for words, done in WRITES:
        where = [] if words[0] == "init" else ["--root", str(root)]
        ran = run_full(*(word.format(**given) for word in words), *where)
        told = f"warning: No space is left for the output. {done}"
        assert (ran.returncode, ran.stderr[: len(told)]) == (0, told), ran


def test_where_nothing_can_be_told_the_code_still_is(root: Path) -> None:
    for words, code in (
        (["mutate", "-e", 'insert Person { name: "Ada" }'], 0),
        (["mutate", "-e", 'insert Nobody { name: "Ada" }'], 6),
        (["log"], 7),
        (["log", "--nonsense"], 2),
    ):
        with open("/dev/full", "w") as full:  # noqa: PTH123
            ran = subprocess.run(
                [sys.executable, "-m", "omnigraph", *words, "--root", str(root)],
                stdout=full,
                stderr=full,
                check=False,
            )
        assert ran.returncode == code, words


@pytest.mark.parametrize("place", ["people.graph/bad.jsonl", "people.graph", "mine.txt", "a.json"])
def test_rejected_rows_never_go_onto_what_is_somebody_elses(
    root: Path, tmp_path: Path, place: str
) -> None:
    (tmp_path / "mine.txt").write_text("a letter\n")
    (tmp_path / "a.json").write_text('{"a": 1}\n')
    before = fingerprint(tmp_path)
    given = rows(tmp_path / "rows" / "a.jsonl", "Ada")
    words = ["load", str(given), "--on-error", "quarantine", "--root", str(root)]
    ran = Program()([*words, "--rejected", str(tmp_path / place)])
    assert ran.code == 2, ran
    shutil.rmtree(given.parent)
    assert fingerprint(tmp_path) == before


def test_rejected_rows_go_where_others_were_put_before(root: Path, tmp_path: Path) -> None:
    given = rows(tmp_path / "a.jsonl", "Ada")
    words = ["load", str(given), "--on-error", "quarantine", "--root", str(root)]
    for _ in range(3):
        ran = Program()([*words, "--rejected", str(tmp_path / "bad.jsonl")])
        assert ran.code == 0, ran
    assert "Ada" in (tmp_path / "bad.jsonl").read_text()


@pytest.mark.parametrize(
    "words", [("--help",), ("mutate", "--help"), ("branch",), ("version",), ("completion", "bash")]
)
def test_an_output_that_is_full_is_one_sentence(words: tuple[str, ...]) -> None:
    ran = run_full(*words)
    assert ran.returncode == 7
    assert ran.stderr == (
        "error: No space is left for the output.\nhelp: Free some space, or choose another place.\n"
    )


def test_files_are_never_written_to_an_address(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder called `s3:` came to be, and the password of the address was shown."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    given = rows(tmp_path / "rows" / "a.jsonl", "Ada")
    for address in ("s3://ada:hush@bucket/x.jsonl", "https://ada:hush@host/x.jsonl"):
        for words in (
            ["export", address],
            ["load", str(given), "--on-error", "quarantine", "--rejected", address],
        ):
            ran = Program()(["--root", str(root), *words])
            assert (ran.code, "is an address" in ran.err) == (2, True), ran
            assert "hush" not in ran.out + ran.err
    with omnigraph.open(root) as g, pytest.raises(InvalidArgument, match="is an address"):
        g.export(to="file:///tmp/x.jsonl")
    assert not list(place.iterdir())


@pytest.mark.parametrize(
    "words", [["mutate", "-e", 'insert Person { name: "x" }'], ["embed"], ["load", "a.jsonl"]]
)
def test_a_key_that_a_script_left_empty_is_refused(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """The second of two such calls would count as a repeat of the first."""
    monkeypatch.chdir(tmp_path)
    rows(tmp_path / "a.jsonl", "Ada")
    ran = Program()(["--root", str(root), *words, "--idempotency-key", ""])
    assert (ran.code, "An idempotency key has 1 to 10,000 characters" in ran.err) == (2, True), ran
