"""Pressing Tab in a real shell over a graph whose branch names are commands."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph

SCHEMA = "node A { name: String @key }\n"
NAMES = (
    "$(touch${IFS}x)",
    "`touch${IFS}y`",
    "${IFS}a",
    "*",
    "a,b",
    "it's",
    'q"u',
    "sp ace",
    "; touch z",
    "--help",
    "x\\y",
)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with a file that a star would match, a graph, and the program."""
    place = tmp_path_factory.mktemp("desk")
    with omnigraph.init(place / "g", schema=SCHEMA) as g:
        for name in NAMES:
            g.create_branch(name)
    (place / "bin").mkdir()
    program = place / "bin" / "omnigraph"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m omnigraph "$@"\n')
    program.chmod(0o755)
    for shell in ("bash", "zsh", "fish"):
        told = run_in(place, [str(program), "completion", shell])
        (place / f"complete.{shell}").write_text(told)
    return place


def run_in(place: Path, command: list[str], text: str | None = None) -> str:
    environment = os.environ | {
        "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
        "OMNIGRAPH_ROOT": str(place / "g"),
        "HOME": str(place),
        "TERM": "dumb",
    }
    ran = subprocess.run(
        command, cwd=place, env=environment, input=text, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def left_behind(place: Path) -> set[str]:
    known = {"bin", "g", "complete.bash", "complete.zsh", "complete.fish", ".local", ".config"}
    return {entry.name for entry in place.iterdir()} - known - {".cache", ".zcompdump"}


def is_here(shell: str, place: Path) -> bool:
    """Without the shell, its script is read: it must hold nothing that evaluates a text."""
    script = (place / f"complete.{shell}").read_text()
    assert not {"eval", "compgen", "bashcompinit"} & set(script.split())
    return shutil.which(shell) is not None


def in_bash(place: Path, word: str) -> list[str]:
    """What Tab would put on the line, which bash reads again when Enter is pressed."""
    return run_in(
        place,
        [
            "bash",
            "-c",
            (
                'source complete.bash; COMP_WORDS=(omnigraph merge "$1"); COMP_CWORD=2; '
                'COMPREPLY=(); _omnigraph; printf "%s\\n" "${COMPREPLY[@]}"'
            ),
            "bash",
            word,
        ],
    ).splitlines()


def test_bash_never_evaluates_the_name_of_a_branch(desk: Path) -> None:
    offered = in_bash(desk, "")
    assert left_behind(desk) == set()
    # What is put on the line means the name, and nothing else.
    again = run_in(desk, ["bash", "-c", f"printf '%s\\n' {' '.join(offered)}"]).splitlines()
    assert sorted(again) == sorted(["main", *NAMES])
    assert left_behind(desk) == set()


def test_bash_completes_what_was_begun_as_typed_and_as_quoted(desk: Path) -> None:
    assert in_bash(desk, "ma") == ["main"]
    assert in_bash(desk, "$(to") == ["\\$\\(touch\\$\\{IFS\\}x\\)"]
    assert in_bash(desk, "\\$\\(to") == ["\\$\\(touch\\$\\{IFS\\}x\\)"]
    assert in_bash(desk, "*") == ["\\*"]
    assert left_behind(desk) == set()


def test_zsh_never_evaluates_the_name_of_a_branch(desk: Path) -> None:
    if not is_here("zsh", desk):
        return
    # compadd is what zsh quotes by; here it tells what it was given.
    asked = """
    compdef() { :; }
    compadd() {
      if [[ $1 == -a ]]; then print -rl -- "${(@P)2}"; else shift; print -rl -- "$@"; fi
    }
    source ./complete.zsh
    words=(omnigraph merge ''); CURRENT=3
    _omnigraph
    """
    offered = run_in(desk, ["zsh", "-f", "-c", asked]).splitlines()
    assert sorted(offered) == sorted(["main", *NAMES])
    assert left_behind(desk) == set()


def test_zsh_offers_commands_options_and_words_of_groups(desk: Path) -> None:
    if not is_here("zsh", desk):
        return

    def offered(words: str, current: int) -> list[str]:
        asked = f"""
        compdef() {{ :; }}
        compadd() {{ shift; print -rl -- "$@"; }}
        source ./complete.zsh
        words=({words}); CURRENT={current}
        _omnigraph
        """
        return run_in(desk, ["zsh", "-f", "-c", asked]).splitlines()

    assert "merge" in offered("omnigraph m", 2)
    assert "apply" in offered("omnigraph schema a", 3)
    assert "--dry-run" in offered("omnigraph schema apply --d", 4)
    assert "--first-parent" in offered("omnigraph log --f", 3)


def test_fish_never_evaluates_the_name_of_a_branch(desk: Path) -> None:
    if not is_here("fish", desk):
        return
    asked = "source complete.fish; complete -C 'omnigraph merge '"
    offered = {line.split("\t")[0] for line in run_in(desk, ["fish", "-c", asked]).splitlines()}
    # fish shows options where a word begins with a dash, so that name is not among them.
    assert {"main", *NAMES} - {"--help"} <= offered
    assert left_behind(desk) == set()
