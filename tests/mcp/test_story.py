"""A golden story: everything that an agent says and is told, word by word, from the first look to
the merge by a person. `UPDATE_GOLDEN=1` writes the answers anew.

`> TOOL {…}` calls a tool over the standard streams, as eve; `$ …` is a person at a terminal. Ids
and times are replaced by stand-ins.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from pathlib import Path

import pytest
from mcp.client import Client

import omnigraph
from omnigraph.lang.card import language_card
from omnigraph.runtime import SYSTEM
from tests.cli.world import Names, Program
from tests.mcp.clients import over_stdio

STORY = Path(__file__).parents[1] / "golden" / "mcp" / "agent.story"
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))
SCHEMA = """node Person @description("somebody we know") {
    name: String @key
    age: I32? @description("in years")
}
edge Knows: Person -> Person
"""
_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z?")
_CURSOR = re.compile(r'"p1\.[\w=+/-]+"')
_SIZE = re.compile(r'("bytes": )\d+')


def tell(root: str, lines: list[str]) -> Iterator[str]:
    names = Names()
    program = Program(clock=SYSTEM, environment={"OMNIGRAPH_ROOT": root})
    for begins, group in groupby(lines, lambda line: line[:1]):
        said = list(group)
        if begins == ">":
            answers = over_stdio(root, partial(_asked, said=said))
        elif begins == "$":
            answers = [_typed(program, line) for line in said]
        else:
            yield from said
            continue
        for line, answer in zip(said, answers, strict=True):
            yield line
            yield from (f"  {one}".rstrip() for one in _masked(names, answer).splitlines())
            yield ""


async def _asked(client: Client, said: list[str]) -> list[str]:
    answers = []
    for line in said:
        _, tool, given = line.split(" ", 2)
        found = await client.call_tool(tool, json.loads(given))
        told = dict(found.structured_content)
        text = told.pop("text", None)
        shown = "" if text is None else "(the card)\n" if text == language_card() else f"{text}\n"
        failed = "[error]\n" if found.is_error else ""
        answers.append(failed + shown + json.dumps(told, indent=1, ensure_ascii=False))
    return answers


def _typed(program: Program, line: str) -> str:
    ran = program(shlex.split(line)[2:])
    return ran.out + ran.err + (f"[exit {ran.code}]\n" if ran.code else "")


def _masked(names: Names, text: str) -> str:
    text = _CURSOR.sub('"CURSOR"', names.hide(text))
    return _SIZE.sub(r"\1…", _TIME.sub("TIME", text))


def test_an_agents_session_goes_as_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with omnigraph.init(tmp_path / "people", schema=SCHEMA) as g:
        g.mutate(
            'insert Person { name: "Ada", age: 35 } insert Person { name: "Bob" } '
            'insert Knows { from: "Ada", to: "Bob" }',
            actor="ada",
            message="first people",
        )
    expected = STORY.read_text(encoding="utf-8")
    lines = [line for line in expected.splitlines() if line.startswith((">", "$", "#"))]
    told = "\n".join(tell(str(tmp_path / "people"), lines)).rstrip("\n") + "\n"
    if UPDATE:
        STORY.write_text(told, encoding="utf-8")
    assert told == STORY.read_text(encoding="utf-8")
