"""Golden stories: each file under tests/golden/cli is a session with the program, command by
command, with the output and exit code that it must give. `UPDATE_GOLDEN=1` writes them anew.

`$ …` runs a command, `< …` after it is its stdin; `! …` is stderr; `[exit 3]` an exit code that is
not 0. `@file NAME` … `@end` writes a file, `@python` … `@end` runs code with the graph open as `g`,
`@terminal 80` makes stdout a terminal, `@set NAME VALUE` sets a variable. Ids are replaced by
stand-ins.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.cli.commands import COMMANDS
from tests.cli.world import Names, Program, Ran, ToldClock

GOLDEN = Path(__file__).parents[1] / "golden" / "cli"
STORIES = sorted(GOLDEN.glob("*.story"))
ELSEWHERE = {"completion", "explain", "login", "logout", "mcp", "serve", "version", "web", "whoami"}
"""Their output is long, tells of this machine, or is worded elsewhere: see `test_program.py`. A
server does not end: see `tests/server`, `tests/mcp`, `tests/client` and `tests/web`."""
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))


class Teller:
    """Tells a story again, with what the program says now."""

    def __init__(self, text: str, directory: Path) -> None:
        self.lines = text.splitlines()
        self.at = 0
        self.clock = ToldClock()
        self.program = Program(clock=self.clock)
        self.names = Names()
        self.directory = directory

    def tell(self) -> Iterator[str]:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            if line.startswith("$ "):
                yield from self._command(line)
            elif line.startswith("@"):
                yield from self._directive(line)
            elif not line or line.startswith("#"):
                yield line

    def _command(self, line: str) -> Iterator[str]:
        yield line
        given = []
        while self.at < len(self.lines) and self.lines[self.at].startswith("<"):
            given.append(self.lines[self.at])
            yield self.lines[self.at]
            self.at += 1
        self._skip_output()
        words = shlex.split(self.names.reveal(line[2:]))
        assert words[0] == "omnigraph"
        stdin = "".join(f"{each[2:]}\n" for each in given)
        ran = self.program(words[1:], self.names.reveal(stdin))
        yield from self._shown(ran)

    def _skip_output(self) -> None:
        """What the story said before; the program says it again. A blank line ends nothing, so
        that output may hold some."""
        while self.at < len(self.lines) and not self.lines[self.at].startswith(("$ ", "@", "# ")):
            self.at += 1

    def _shown(self, ran: Ran) -> Iterator[str]:
        here = str(self.directory)
        out = self.names.hide(ran.out.replace(here, "/here"))
        err = self.names.hide(ran.err.replace(here, "/here"))
        yield from out.splitlines()
        yield from (f"! {line}".rstrip() for line in err.splitlines())
        if ran.code:
            yield f"[exit {ran.code}]"
        yield ""

    def _directive(self, line: str) -> Iterator[str]:
        yield line
        name, *arguments = line[1:].split()
        match name:
            case "file" | "python":
                body = list(self._body())
                yield from body
                if name == "file":
                    Path(arguments[0]).parent.mkdir(exist_ok=True)
                    Path(arguments[0]).write_text("\n".join(body[:-1]) + "\n", encoding="utf-8")
                else:
                    self._python("\n".join(body[:-1]))
            case "terminal":
                self.program.width = int(arguments[0]) if arguments else None
            case "set":
                self.program.environment[arguments[0]] = " ".join(arguments[1:])
            case _:
                raise AssertionError(line)

    def _body(self) -> Iterator[str]:
        while True:
            line = self.lines[self.at]
            self.at += 1
            yield line
            if line == "@end":
                return

    def _python(self, code: str) -> None:
        self.clock.next_minute()
        root = self.program.environment["OMNIGRAPH_ROOT"]
        with omnigraph.open(root, runtime=self.clock) as g:
            exec(code, {"g": g})


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_a_story_goes_as_it_is_told(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = path.read_text(encoding="utf-8")
    told = "\n".join(Teller(expected, tmp_path).tell()).rstrip("\n") + "\n"
    if UPDATE:
        path.write_text(told, encoding="utf-8")
    assert told == path.read_text(encoding="utf-8")


def test_every_command_is_in_a_story_done_right_and_done_wrong() -> None:
    right: set[str] = set()
    wrong: set[str] = set()
    for path in STORIES:
        current: list[str] = []
        code = 0

        def note(words: list[str], failed: int) -> None:
            for size in (2, 1):
                if tuple(words[:size]) in COMMANDS:
                    (wrong if failed else right).add(" ".join(words[:size]))
                    return

        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("$ "):
                note(current, code)
                current = [word for word in line.split()[2:] if word]
                code = 0
            elif line.startswith("[exit "):
                code = int(line[6:-1])
        note(current, code)
    names = {command.name for command in COMMANDS.values()}
    assert names - right == ELSEWHERE
    assert names - wrong == set()
