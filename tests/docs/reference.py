"""Pages that are made from the program: errors, the command line, the Python interface."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any, ForwardRef

import omnigraph
from omnigraph import errors
from omnigraph.cli.colours import Paint
from omnigraph.cli.commands import SECTIONS
from omnigraph.cli.help import command_help, overview
from omnigraph.engine.branch import Branch
from omnigraph.engine.graph import Graph
from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.history.log import LogWords
from omnigraph.engine.opening import init, open
from omnigraph.engine.query.result import Result
from omnigraph.engine.reads import Reads
from omnigraph.engine.snapshot import Snapshot
from omnigraph.engine.upkeep.copying import copy
from omnigraph.engine.upkeep.graph_deletion import delete
from omnigraph.engine.write.transaction import Savepoint, Transaction
from omnigraph.lang.card import language_card
from omnigraph.lang.gq.codes import TITLES as GQ_TITLES
from omnigraph.lang.pg.codes import TITLES as PG_TITLES
from omnigraph.model.options import CommitWords
from omnigraph.runtime import SystemRuntime
from tests.docs.examples import example_graph

SOURCE = Path(omnigraph.__file__).parent
GUIDE = Path(__file__).parents[2] / "docs" / "user"
EXIT_CODES = {
    0: "it worked",
    1: "it failed, for a reason without a code of its own",
    2: "usage: an argument or option is wrong",
    3: "not found: a graph, branch, commit, tag, type, entity or file",
    4: "conflict: somebody else was there, or a precondition does not hold",
    5: "denied: read-only, protected, or no permission",
    6: "invalid: a schema, a query or data",
    7: "unavailable: the store does not answer; most of these may be tried again",
    8: "unknown: the answer to a write was lost; the error names the commit to look for",
    130: "interrupted by Ctrl-C",
}
SCHEMA_CODES = {
    "OG-SC-101": "add a type",
    "OG-SC-102": "rename a type",
    "OG-SC-103": "change what describes a type",
    "OG-SC-104": "add a property",
    "OG-SC-105": "rename a property",
    "OG-SC-106": "widen a number",
    "OG-SC-107": "change the values of an enum",
    "OG-SC-108": "change whether a property is required",
    "OG-SC-109": "change what describes a property",
    "OG-SC-110": "reorder properties",
    "OG-SC-111": "change a cardinality",
    "OG-SC-112": "add a constraint",
    "OG-SC-113": "drop a constraint",
    "OG-SC-114": "add or change an interface",
    "OG-SC-115": "drop an interface",
    "OG-DS-101": "drop a type; history keeps it",
    "OG-DS-102": "drop a property; history keeps it",
    "OG-MF-101": "add @unique: entities that share a value break it",
    "OG-MF-102": "add @range: values outside break it",
    "OG-MF-103": "add @check: values without a match break it",
    "OG-MF-104": "narrow a cardinality: sources with too few or too many edges break it",
    "OG-MF-105": "make a property required: entities without a value break it",
    "OG-MF-106": "narrow an enum: entities with a removed value break it",
    "OG-MF-107": "add a required property without a default: only while the type is empty",
    "OG-MF-108": "change a key: only while the type is empty",
    "OG-MF-109": "change the type of a key property: only while the type is empty",
    "OG-UN-101": "change a property to a type that its values do not fit",
    "OG-UN-102": "change the ends of an edge type",
    "OG-UN-103": "change a key of a type that has entities",
    "OG-UN-104": "add a required property without a default to a type that has entities",
    "OG-UN-105": "rename to a name that exists already",
    "OG-UN-106": "rename from something that is not there",
    "OG-UN-107": "rename two things from one",
    "OG-UN-108": "rename something and declare it as well",
}


def all_errors() -> list[type[errors.OmnigraphError]]:
    found = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.OmnigraphError)
    ]
    return sorted(found, key=lambda kind: (kind.exit_code, kind.code))


def schema_codes_in_source() -> set[str]:
    texts = (path.read_text(encoding="utf-8") for path in (SOURCE / "plan").rglob("*.py"))
    return {code for text in texts for code in re.findall(r"OG-[A-Z]{2}-\d{3}", text)}


def errors_page() -> Iterator[str]:
    yield "# Errors"
    yield ""
    yield "Made from the program; change `errors.py` and the tables of codes, not this page."
    yield ""
    yield "An error says what happened, to what, and what to do next. In Python it is an exception"
    yield "below `omnigraph.errors.OmnigraphError` with `code`, `retryable` and `hint`; on the"
    yield "command line a sentence on stderr and an exit code, or with `--json` one line of JSON."
    yield "Unless an error says otherwise, nothing was changed."
    yield ""
    yield "## Exit codes"
    yield ""
    yield from _table(("code", "meaning"), EXIT_CODES.items())
    yield ""
    yield "## All errors"
    yield ""
    rows = [
        (f"`{e.code}`", e.exit_code, e.http_status, "yes" if e.retryable else "", _meaning(e))
        for e in all_errors()
    ]
    yield from _table(("code", "exit", "HTTP", "retry", "meaning, and what to do"), rows)
    for title, about, titles in (
        ("Schemas (`.pg`)", "Every mistake of a text is reported at once.", PG_TITLES),
        ("Queries (`.gq`)", "`Q` is syntax, `T` is meaning, `L` is advice.", GQ_TITLES),
        (
            "Schema changes",
            "`SC` is safe, `MF` may fail on existing data, `DS` hides data, `UN` cannot be done.",
            SCHEMA_CODES,
        ),
    ):
        yield ""
        yield f"## {title}"
        yield ""
        yield about
        yield ""
        yield from _table(("code", "meaning"), sorted(titles.items(), key=_code_order))


def cli_page() -> Iterator[str]:
    yield "# The command line"
    yield ""
    yield "Made from the program; change the commands, not this page."
    yield ""
    yield "```text"
    yield from overview(Paint())
    yield "```"
    for title, commands in SECTIONS:
        yield ""
        yield f"## {title}"
        for command in commands:
            yield ""
            yield f"### omnigraph {command.name}"
            yield ""
            yield "```text"
            yield from _without_common(list(command_help(command, Paint())))
            yield "```"


FUNCTIONS = (init, open, copy, delete)
KINDS: dict[str, type] = {
    "Snapshot": Snapshot,
    "Branch": Branch,
    "Graph": Graph,
    "Transaction": Transaction,
    "Savepoint": Savepoint,
    "Result": Result,
}
_HOLDERS: dict[type, tuple[type, ...]] = {Snapshot: (Reads, GraphView)}
"""Where the members of a class are written down, if not in itself."""
_OF_THE_ENGINE = {GraphView.type, GraphView.view}
"""What a snapshot has for the engine alone."""
WORDS: dict[str, type] = {"commit": CommitWords, "shown": LogWords}
"""Keywords that several methods take alike."""


@dataclass(frozen=True)
class Member:
    name: str
    value: Any


def documented(kind: type) -> list[Member]:
    """The public methods and properties that a class brings, each once."""
    found: dict[str, Member] = {}
    for holder in _HOLDERS.get(kind, (kind,)):
        for name, value in vars(holder).items():
            is_one = inspect.isfunction(value) or _is_property(value)
            if is_one and not name.startswith("_") and value not in _OF_THE_ENGINE:
                found.setdefault(name, Member(name, value))
    return list(found.values())


def python_page() -> Iterator[str]:
    yield "# The Python interface"
    yield ""
    yield "Made from the docstrings; change them, not this page."
    yield "The tests run the examples, each with a fresh graph `g` of this schema and these rows:"
    yield ""
    yield from example_graph()
    for function in FUNCTIONS:
        yield ""
        yield f"## omnigraph.{function.__name__}"
        yield from _described(function, f"omnigraph.{function.__name__}")
    for name, kind in KINDS.items():
        yield ""
        yield f"## {name}"
        yield ""
        yield from _text(kind)
        if kind is Snapshot:
            yield ""
            yield "A branch and a graph have all of these reads too."
        if kind is Branch:
            yield ""
            yield "A graph has all of these for its branch `main`."
        for member in documented(kind):
            yield ""
            yield f"### {name}.{member.name}"
            if inspect.isfunction(member.value):
                yield from _described(member.value, member.name)
            else:
                yield ""
                yield from _text(member.value)


def language_page() -> Iterator[str]:
    yield from language_card().splitlines()


def llms_page() -> Iterator[str]:
    """What a model reads first that is asked about this program: what it is, and where all else
    is."""
    first = (GUIDE / "README.md").read_text(encoding="utf-8")
    intro, _, listed = first.partition("\n1. ")
    yield "# OmniGraph"
    yield ""
    about = " ".join(intro.splitlines()[1:]).strip()
    yield from (f"> {line}" for line in wrap(about, 96))
    yield ""
    yield from _FOR_MODELS.splitlines()
    listed_pages = re.findall(r"\[([^\]]+)\]\(([\w-]+\.md)\)(?:: ([^\n]+))?", f"1. {listed}")
    for title, page, words in listed_pages:
        if page not in PAGES:
            yield f"- [{title}](user/{page})" + (f": {words}" if words else "")
    yield ""
    yield from _REFERENCE.splitlines()


_FOR_MODELS = """\
Read the [language card](user/language.md) before you write a query: `.gq` is neither Cypher nor SQL.

- `pip install omnigraph`; `[mcp]`, `[server]`, `[spark]` and `[embed]` are extras.
- `import omnigraph; g = omnigraph.init("people.graph", schema="people.pg")`, then `g.load`,
  `g.query`, `g.mutate`, `g.branch`, `g.merge`, `g.at`; the command line has the same words.
- `g.check(text)` tells every mistake of a query and the corrected text; `g.describe()` tells the
  schema in few characters. Both are tools of `omnigraph mcp`.
- Agents write to `agent/NAME`; `omnigraph review agent/NAME` shows, merges or discards it.

## Guide

"""  # noqa: E501
_REFERENCE = """\
## Reference

- [The languages on one page](user/language.md)
- [The command line](user/cli.md)
- [The Python interface](user/python.md)
- [All errors](user/errors.md)
- [The interface over HTTP](user/openapi.json)

## For who changes the program

- [Architecture](dev/architecture.md)
- [Invariants](dev/invariants.md)
- [Testing](dev/testing.md)
"""


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "language.md": language_page,
    "../llms.txt": llms_page,
    "errors.md": errors_page,
    "cli.md": cli_page,
    "python.md": python_page,
}


def render(page: Callable[[], Iterator[str]]) -> str:
    return "\n".join(line.rstrip() for line in page()) + "\n"


def _is_property(member: Any) -> bool:
    return isinstance(member, property) or type(member).__name__ == "cached_property"


def _described(function: Callable[..., Any], name: str) -> Iterator[str]:
    signature = inspect.signature(function)
    parts = list(_parameters(signature))
    shown = f"({', '.join(parts)}) -> {signature.return_annotation}"
    if len(name) + len(shown) > 90:
        inside = "".join(f"    {part},\n" for part in parts)
        shown = f"(\n{inside}) -> {signature.return_annotation}"
    yield ""
    yield "```text"
    yield f"{name}{shown}"
    yield "```"
    yield ""
    yield from _text(function)


def _text(documented: Any) -> Iterator[str]:
    """A docstring, with its examples as code."""
    inside = False
    for line in (inspect.getdoc(documented) or "").splitlines():
        begins = line.startswith(">>> ") or (line.startswith("    ") and not inside)
        if begins and not inside:
            yield "```python"
            inside = True
        if inside and not line:
            yield "```"
            inside = False
        yield line.removeprefix("    ") if inside and not line.startswith((">>>", "...")) else line
    if inside:
        yield "```"


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    starred = False
    for p in signature.parameters.values():
        if p.name == "self":
            continue
        if p.kind is p.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        if p.kind is p.VAR_KEYWORD and p.name in WORDS:
            if not starred:
                yield "*"
            starred = True
            for name, kind in WORDS[p.name].__annotations__.items():
                told = kind.__forward_arg__ if isinstance(kind, ForwardRef) else kind
                yield f"{name}: {told} = {'False' if told == 'bool' else 'None'}"
            continue
        stars = "**" if p.kind is p.VAR_KEYWORD else ""
        default = "SYSTEM" if isinstance(p.default, SystemRuntime) else repr(p.default)
        given = "" if p.default is p.empty else f" = {default}"
        yield f"{stars}{p.name}: {p.annotation}{given}"


def _meaning(error: type[errors.OmnigraphError]) -> str:
    first = inspect.cleandoc(error.__doc__ or "").split("\n\n")[0].replace("\n", " ")
    return f"{first} {error.help}".strip()


def _without_common(lines: list[str]) -> Iterator[str]:
    """Without the options of every command, which the overview tells once."""
    skipping = False
    for line in lines:
        skipping = line == "Options of every command" or (skipping and line.startswith("  "))
        if not skipping:
            yield line


def _code_order(row: tuple[str, str]) -> tuple[str, int]:
    code = row[0]
    digits = re.search(r"\d+$", code)
    assert digits is not None
    return code[: digits.start()], int(digits[0])


def _table(heads: tuple[str, ...], rows: Any) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        cells = [str(cell).replace("|", "\\|") for cell in row]
        yield f"| {' | '.join(cells)} |"
