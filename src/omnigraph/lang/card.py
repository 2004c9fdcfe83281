"""Owns the card: both languages on one page, for the context of a model. The grammar on it is made
from the grammar files, the functions from their table; the examples are about one small schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from omnigraph.lang.gq.check.functions import (
    AGGREGATES,
    COALESCE,
    FUNCTIONS,
    PATH_PARTS,
    TEXT_TESTS,
    Taken,
)
from omnigraph.lang.gq.check.searches import FUNCTIONS as SEARCHES
from omnigraph.lang.gq.grammar import grammar_text as gq_text
from omnigraph.lang.gq.reader import QUANTIFIERS
from omnigraph.model.types import Base

WIDTH: Final = 110
SCHEMA: Final = """\
interface Named { name: String @index }
node Person @description("somebody we know") implements Named {
    email: String @key                      // the id of a Person is its key
    age: I32?                               // ? is nullable
    role: enum(author, editor) @default("author")
    tags: [String]?
    @range(age, 0..150)
}
node Doc {
    slug: String @key
    title: String
    body: String
    meaning: Vector(3)?
    at: DateTime
    @check(slug, "^[a-z0-9-]+$")
}
edge Wrote: Person -> Doc @card(0..) { year: I32? @key(src, dst) }
edge Cites: Doc -> Doc
"""
_ASKING: Final = """\
one entity, by its key:
    match { $p: Person { email: "ada@x.org" } } return { $p.name, $p.age as years }
along an edge: its type with a small letter, no arrows; the order of the two says which way:
    match { $p: Person $p wrote $d $d.title contains "graph" } return { $p.name, $d.title }
the edge itself has a name, and properties:
    match { $p: Person $p $w:wrote $d $w.year >= 1990 } return { $d.slug, $w.year }
    order { $w.year desc, $d.slug } limit 10 offset 20
one to three steps; either way; any of several; $_ is anything:
    match { $d: Doc $d cites{1,3} $e $e <cites> $f $p (wrote|cites) $f $f cites $_ }
    return distinct { $p.@type, $f.slug }
ways:
    match { $d: Doc { slug: "a" } $p = all shortest $d cites{1,} $e }
    return { nodes($p) as way }
what is not there, and what may be:
    match { $d: Doc not { $d cites $_ } optional { $p wrote $d } }
    return { $d.slug, $p.name } order { $d.slug }
several patterns as one result, each row once (`union all`: every row):
    match { $p: Person } return { $p.name as n } union match { $d: Doc } return { $d.title as n }
groups: what is no aggregate forms them:
    match { $p: Person $p wrote $d }
    return { $p.role, count(distinct $d) as docs, max($d.at) as last, collect($d.slug) }
    order { docs desc }
conditions:
    match { $p: Person ($p.age > 30 and not $p.age in [40, 50]) or $p.name is not null
    exists { $p wrote $d } count { $p wrote $_ } < 5 }
    return { case when $p.age >= 65 then "old" else "young" end as kind, -$p.age % 2 + 1 as odd }
time, with parameters, one with a default:
    query recent($days: I64 = 30, $named: [String]?) { match { $d: Doc $d.at > now() - days($days) }
    return { $d.slug, year($d.at) as year } order { $d.slug } }
search by words, and by meaning:
    match { $d: Doc search($d.body, "merge branch") }
    return { $d.slug, highlight($d.body, "merge branch") as passage }
    order { rrf(bm25($d.body, "merge branch"), nearest($d.meaning, [1.0, 0.0, 0.5])) } limit 5
"""
_CHANGING: Final = """\
one commit, in order; an insert with a key that is there sets what is given:
    insert Person { email: "zoe@x.org", name: "Zoe", tags: ["new"] }
    insert Doc { slug: "a", title: "A", body: "", at: now() }
    insert Wrote { from: "zoe@x.org", to: "a", year: 2026 }
    update Person set { age: coalesce(age, 0) + 1, role: "editor" } where name = "Zoe"
    delete Doc where title = "A" and at < datetime("2020-01-31T12:00:00Z")
typed and named, to be stored or called with parameters:
    query rename($email: String, $name: String)
    { update Person set { name: $name } where email = $email }
"""
_RULES: Final = """\
- `=` compares, texts have "double quotes", nothing stands between the parts of a match, comments are // and /* */.
- Null is as in SQL: write `is null`. Edges have no arrows, and no `:Type` but that of nodes.
- An aggregate without `as` is called by its name: `count($d)` is the column `count`.
- Rows come in any order without `order`; with it the order is total, and answers have cursors.
- `from` and `to` of an edge are the ids of its ends: the key, or the id that was given.
"""  # noqa: E501
_NAMED: Final = frozenset({"NAME", "TYPE", "VAR", "STRING", "INTEGER", "FLOAT", "VALUE"})
_DECLARED: Final = {
    "LEAD": "VAR", "PATH": "VAR", "NEG": '"-"', "CALL": "NAME", "ARG": "NAME", "REF": "NAME",
    "CONSTRAINT": '"@"', "QUANTIFIER": "NAME",
    "LT": '"<"', "GT": '">"', "SLASH": '"/"', "MINUS": '"-"', "RESERVED": "NAME",
}  # fmt: skip
_SAID_ELSEWHERE: Final = frozenset({"wreck", "branch"})
"""What never comes from text, and what only the shell knows."""


def examples(told: str) -> list[tuple[str, str]]:
    """What each example is for, and its text."""
    parts = re.split(r"^(?! )(.+):\n", told, flags=re.MULTILINE)[1:]
    texts = ("\n".join(line.strip() for line in part.splitlines()) for part in parts[1::2])
    return list(zip(parts[::2], texts, strict=True))


READS: Final = tuple(examples(_ASKING))
WRITES: Final = tuple(examples(_CHANGING))
_FILES: Final = {"omnigraph.lang.gq": "gq.lark", "omnigraph.lang.pg": "pg.lark"}


@cache
def language_card() -> str:
    """The page, as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# The languages, on one page"
    yield ""
    yield "A graph has a schema (`.pg`). It is asked and changed by queries (`.gq`)."
    yield ""
    yield "```pg"
    yield from SCHEMA.splitlines()
    yield "```"
    yield ""
    for title, told in (("Asking", _ASKING), ("Changing", _CHANGING)):
        yield f"## {title}"
        yield ""
        yield "```text"
        yield from told.splitlines()
        yield "```"
        yield ""
    yield from _RULES.splitlines()
    yield ""
    yield "## Functions"
    yield ""
    yield from _wrapped([*(_call(name) for name in FUNCTIONS), f"{COALESCE}(value, …)"])
    yield f"Of lists: {' '.join(QUANTIFIERS)}, as any($t in $d.tags where $t = 1)."
    yield f"Tests, also as operators: {' '.join(TEXT_TESTS)}. Aggregates: {' '.join(AGGREGATES)}."
    yield f"Searches: {' '.join(SEARCHES)}. Of paths: {' '.join(PATH_PARTS)}."
    yield f"Types: {' '.join(Base)}, [Base], enum(a, b), Vector(n)."
    yield ""
    for title, package in (("queries", "omnigraph.lang.gq"), ("schemas", "omnigraph.lang.pg")):
        yield f"## The grammar of {title}"
        yield ""
        yield "```text"
        for name, alternatives in grammar_rules(package).items():
            yield from _wrapped(_rule(name, alternatives), indent="    ")
        yield "```"
        yield ""
    yield "NAME begins with a small letter, TYPE with a capital one, VAR is `$name`."


def _rule(name: str, alternatives: list[str]) -> list[str]:
    return [f"{name} = {alternatives[0]}", *(f"| {one}" for one in alternatives[1:])]


def _call(name: str) -> str:
    function = FUNCTIONS[name]
    needed = len(function.takes) - function.optional
    parts = [_short(one, number >= needed) for number, one in enumerate(function.takes)]
    return f"{name}({', '.join(parts)})"


def _short(taken: Taken, optional: bool) -> str:
    """What an argument may be, in as few words as do."""
    words = taken.words.removeprefix("a ").removeprefix("an ").replace(" or a ", "|")
    return words.replace("single ", "").replace(" or ", "|") + ("?" if optional else "")


def _wrapped(parts: list[str], indent: str = "") -> Iterator[str]:
    line = ""
    for part in parts:
        if line and len(line) + 1 + len(part) > WIDTH:
            yield line
            line = indent + part
        else:
            line = f"{line} {part}" if line else part
    yield line


@cache
def grammar_rules(package: str) -> Mapping[str, list[str]]:
    """The rules of a grammar file and their alternatives, without what only mistakes need."""
    text = gq_text() if package.endswith("gq") else _text(package)
    named = dict(re.findall(r'^([A-Z_]+): "([^"]+)"', text, re.MULTILINE))
    rules: dict[str, list[str]] = {}
    current = ""
    for line in text.splitlines():
        if begun := re.match(r"^([a-z_]+): (.*)", line):
            current, line = begun[1], begun[2]
        elif not line.lstrip().startswith("|"):
            current = ""
        if current and current not in _SAID_ELSEWHERE:
            whole = line.strip().removeprefix("|").strip()
            for one in _split(whole) if begun else [whole]:
                if shown := _shown(one, named):
                    found = rules.setdefault(current, [])
                    if shown not in found:
                        found.append(shown)
    return rules


def _split(text: str) -> list[str]:
    """The alternatives of a line: those outside of brackets."""
    parts, depth, last = [], 0, 0
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "|" and not depth:
            parts.append(text[last:place])
            last = place + 1
    return [*(part.strip() for part in parts), text[last:].strip()]


def _shown(alternative: str, named: Mapping[str, str]) -> str:
    text = alternative.split("->")[0].strip()
    if re.search(r"\bERROR\b|\bBROKEN (?!\?)", f"{text} ") and "BROKEN?" not in text:
        return ""
    text = text.replace(" BROKEN?", "")
    for word in ("wreck", *_SAID_ELSEWHERE):
        text = re.sub(rf" \| {word}\b", "", text)
    text = re.sub(r"\(([a-z_]+)\)", r"\1", text)

    def terminal(match: re.Match[str]) -> str:
        name = match[0]
        if name in _NAMED:
            return name
        return _DECLARED.get(name) or f'"{named[name]}"'

    return re.sub(r"\b[A-Z_]{2,}\b", terminal, text)


def _text(package: str) -> str:
    return (files(package) / _FILES[package]).read_text(encoding="utf-8")
