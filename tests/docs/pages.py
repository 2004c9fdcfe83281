"""Reads a page of the guide and does what it says: files, commands with their output, Python.

A fenced block after `<!-- file: NAME -->` is written to that file. `console` runs commands (`$ …`)
and compares what they print; `python` runs, and an `output` block after it is what it prints; `pg`
and `gq` must be right by themselves; `sh` may only set variables. Ids and times are compared as
such, not by their value.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.lang.gq import compile_file
from omnigraph.lang.pg import compile_schema
from omnigraph.runtime import SYSTEM
from tests.cli.world import Program

_FENCE = re.compile(r"^```(\w*)\s*$")
_FILE = re.compile(r"^<!-- file: (\S+) -->$")
_MASKS = (
    (re.compile(r"\b0[1-9A-HJ-NP-TV-Z][0-9A-HJKMNP-TV-Z]{24}\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?"), "TIME"),
    (re.compile(r"\b\d+\.\d+ (s|ms)\b"), "DURATION"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"\bogt_[a-z0-9]{12}_[\w-]{43}"), "TOKEN"),
    (re.compile(r"omnigraph-cursor-\d+\.[\w=+/-]+"), "CURSOR"),
    (re.compile(r"\b\d[\d,.]* (bytes|KB|MB)\b"), "SIZE"),
)


UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))


@dataclass
class Block:
    """`lines` of the page from `start` on are inside of the fence."""

    language: str
    lines: list[str]
    start: int
    file: str | None = None


def read_blocks(text: str) -> Iterator[Block]:
    block: Block | None = None
    file: str | None = None
    for number, line in enumerate(text.splitlines()):
        if block is None:
            if match := _FENCE.match(line):
                block, file = Block(match[1], [], number + 1, file), None
            elif match := _FILE.match(line):
                file = match[1]
            elif line.strip():
                file = None
        elif line == "```":
            yield block
            block = None
        else:
            block.lines.append(line)
    assert block is None, "a fence is open at the end"


def masked(text: str) -> str:
    for pattern, word in _MASKS:
        text = pattern.sub(word, text)
    return text


def work_through(path: Path, directory: Path) -> None:
    """Does what the page says, in an empty directory that is the current one."""
    reader = Reader(path.read_text(encoding="utf-8"), directory, {})
    reader.work_through()
    if UPDATE:
        path.write_text(reader.page, encoding="utf-8")
    says = masked(path.read_text(encoding="utf-8")).splitlines()
    does = masked(reader.page).splitlines()
    differs = "\n".join(unified_diff(says, does, "the page says", "it does", lineterm="", n=1))
    assert not differs, differs


class Reader:
    """Works through a page in one directory. `page` is the text, brought up to date."""

    def __init__(self, text: str, directory: Path, environment: dict[str, str]) -> None:
        self.page = text
        self._directory = directory
        self._program = Program(clock=SYSTEM, environment=environment, width=80)
        self._names: dict[str, Any] = {}
        self._printed = ""

    def work_through(self) -> None:
        done = [(block, self._do(block)) for block in read_blocks(self.page)]
        lines = self.page.splitlines()
        for block, new in reversed(done):
            if new is not None:
                lines[block.start : block.start + len(block.lines)] = new
        made = "\n".join(lines) + "\n"
        if masked(made) != masked(self.page):  # all of it or nothing, so that ids agree
            self.page = made

    def _do(self, block: Block) -> list[str] | None:
        text = "\n".join(block.lines) + "\n"
        if block.file is not None:
            Path(block.file).write_text(text, encoding="utf-8")
        match block.language:
            case "console":
                return list(self._console(block.lines))
            case "python":
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile(text, f"line {block.start}", "exec"), self._names)
                self._printed = printed.getvalue()
            case "output":
                return self._printed.splitlines()
            case "pg":
                assert compile_schema(text).diagnostics == (), text
            case "gq" if block.file is None:
                self._check_queries(text)
            case "sh":
                self._shell(block.lines)
            case "json" | "toml" | "csv" | "cedar" | "gq":
                pass
            case other:
                raise AssertionError(f"line {block.start}: nobody runs {other!r}")
        return None

    def _console(self, lines: list[str]) -> Iterator[str]:
        at = 0
        while at < len(lines):
            line = lines[at]
            at += 1
            if not line.startswith("$ "):
                continue
            yield line
            command = line[2:]
            while command.endswith("\\"):
                yield lines[at]
                command = command[:-1] + lines[at]
                at += 1
            yield from self._command(command)

    def _command(self, command: str) -> Iterator[str]:
        words = shlex.split(command, comments=True)
        if words[:1] == ["export"]:
            self._export(words[1])
            return
        source, target = "", None
        if "<" in words:
            words, (given,) = words[: words.index("<")], words[words.index("<") + 1 :]
            source = Path(given).read_text(encoding="utf-8")
        if ">" in words:
            words, (target,) = words[: words.index(">")], words[words.index(">") + 1 :]
        assert words[0] == "omnigraph", command
        width, self._program.width = self._program.width, None if target else 80
        ran = self._program(words[1:], source)
        self._program.width = width
        if target is not None:
            Path(target).write_text(ran.out, encoding="utf-8")
            ran.out = ""
        shown = (ran.out + ran.err).replace(str(self._directory), "/home/ada")
        yield from shown.splitlines()

    def _shell(self, lines: list[str]) -> None:
        for line in lines:
            if line.startswith("export "):
                self._export(shlex.split(line)[1])
            else:
                # `make` is for a fresh checkout, and is run there.
                assert not line.strip() or line.startswith(("#", "make ")), line

    def _export(self, pair: str) -> None:
        name, _, value = pair.partition("=")
        self._program.environment[name] = value

    def _check_queries(self, text: str) -> None:
        with omnigraph.open(self._program.environment["OMNIGRAPH_ROOT"], mode="r") as g:
            found = compile_file(text, g.snapshot().catalog).diagnostics
        assert found == (), text
