"""Owns what tests ask of search: drawn queries as text, and their answers by the oracle.

A question is a pattern, filters on its variables, ranks, an order key and a cut. Whatever it says
in `.gq` it also says over plain rows, so that the two can be compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any, Final

from tests.search import oracle
from tests.search.oracle import Corpus

SCHEMA: Final = """
interface Titled {{ title: String? }}
node Doc implements Titled {{
  slug: String @key  year: I32?  body: String? {body} {body_words}  v: Vector(5)? {v}  {title}
}}
node Note implements Titled {{ stars: I32? {title} }}
node Author {{ name: String @key  bio: String? {bio} {bio_words}  v: Vector(5)? }}
edge Wrote: Author -> Doc {{ @key(src, dst) note: String? {note} {note_words}  v: Vector(5)? }}
edge Cites: Doc -> Doc {{ @key(src, dst) why: String? }}
"""
INDEXES: Final = {
    "title": "@index(title)",
    "body": "@index",
    "v": "@index",
    "bio": "@index",
    "note": "@index",
    "body_words": '@analyzer("english")',
    "bio_words": '@analyzer("german")',
    "note_words": '@analyzer("standard")',
}
"""What a schema may say of texts and vectors; each makes an answer faster, or cuts words."""
TYPES: Final = ("Doc", "Note", "Author", "Wrote", "Cites")
VOCABULARY: Final = (
    "red", "red", "Red", "fox", "fox", "FOX's", "café", "CAFE", "the", "and", "blue", "red-fox",
    "日本語", "日本", "สวัสดีครับ", "שלום", "🦊", '"fox"', "AND", "(red", "fox)", "-blue", "*", "a:b",
    "naïve", "e\u0301", "\n", "x" * 10_000, "y" * 39,
)  # fmt: skip
MISSPELT: Final = ("rad", "fx", "foxx", "caffe", "bleu", "日本", "t", "רשלום", "CÁFÉ", "the fax")
_POOL: Final = Random(40)
VECTORS: Final = (
    *(tuple(round(_POOL.uniform(-1, 1), 2) for _ in range(5)) for _ in range(9)),
    (0.0, 0.0, 0.0, 0.0, 0.0),
)
Binding = dict[str, Any]


class Rows(dict[str, list[dict[str, Any]]]):
    """Plain rows by type, each with its `@type`: a graph at one moment."""

    def __init__(self, schema: str) -> None:
        super().__init__()
        found = re.findall(r'(\w+): String\? (?:@index )? *@analyzer\("(\w+)"\)', schema)
        self.analyses: dict[str, str] = dict(found)
        """Of properties that name one; what they are called is told apart by no type."""

    def analysis(self, name: str) -> str:
        return self.analyses.get(name, oracle.STANDARD)

    @cached_property
    def _corpora(self) -> dict[tuple[str, str], Corpus]:
        return {}

    def corpus(self, kind: str, name: str) -> Corpus:
        if (kind, name) not in self._corpora:
            self._corpora[kind, name] = Corpus.of(
                (row[name] for row in self[kind]), self.analysis(name)
            )
        return self._corpora[kind, name]


def schema_with(indexes: set[str]) -> str:
    return SCHEMA.format(**{name: text * (name in indexes) for name, text in INDEXES.items()})


def draw_text(chance: Random) -> str | None:
    if chance.random() < 0.12:
        return chance.choice((None, "", "..."))
    return " ".join(chance.choice(VOCABULARY) for _ in range(chance.randint(1, 6)))


def draw_vector(chance: Random) -> list[float] | None:
    if chance.random() < 0.15:
        return None
    scale = chance.choice((1.0, 1.0, 2.0, 0.25))
    return [scale * x for x in chance.choice(VECTORS)]


# Ranks and filters, as text and as functions of a binding.


@dataclass(frozen=True)
class Rank:
    """`of` gives the value in a row of the match; `descending`: more is better; `counts`: it
    depends on the statistics of words."""

    text: str
    descending: bool
    counts: bool
    of: Callable[[Rows, list[Binding], Binding], float | None]
    words: tuple[str, str, str | None] | None = None
    """Of a score: the variable, the property, and what is looked for."""


Filter = tuple[str, Callable[[Rows, Binding], bool | None]]
TEXTS: Final = {
    "d": ("title", "body"),
    "e": ("title", "body"),
    "t": ("title",),
    "n": ("title",),
    "a": ("bio",),
    "w": ("note",),
}
WITH_VECTORS: Final = ("d", "e", "a", "w")


def value(binding: Binding, variable: str, name: str) -> Any:
    row = binding[variable]
    return None if row is None else row[name]


def _negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


@dataclass
class Draw:
    """One question in the making: `chance` draws, `params` gathers what is given by name."""

    chance: Random
    params: dict[str, tuple[str, Any]] = field(default_factory=dict)

    def given(self, kind: str, what: Any, literal: str) -> str:
        """What is looked for, as a literal or as a parameter."""
        if what is not None and self.chance.random() < 0.5:
            return literal
        name = f"p{len(self.params)}"
        self.params[name] = (kind, what)
        return f"${name}"

    def words(self) -> tuple[str, str | None]:
        if self.chance.random() < 0.03:
            return self.given("String?", None, "null"), None
        drawn = [self.chance.choice(VOCABULARY) for _ in range(self.chance.randint(1, 3))]
        text = " ".join(drawn) if self.chance.random() < 0.95 else "..."
        return self.given("String", text, json.dumps(text)), text

    def filter(self, variable: str) -> Filter:
        name = self.chance.choice(TEXTS[variable])
        place = f"${variable}.{name}"
        kind = self.chance.choice(("search", "search", "match_text", "fuzzy"))
        if kind == "fuzzy":
            wrong, edits = self.chance.choice(MISSPELT), self.chance.randint(0, 2)
            said = self.given("String", wrong, json.dumps(wrong))
            plain: Filter = (
                f"fuzzy({place}, {said}, {edits})",
                lambda rows, row: oracle.has_similar_word(
                    value(row, variable, name), wrong, edits, rows.analysis(name)
                ),
            )
        else:
            said, wanted = self.words()
            test = oracle.has_word if kind == "search" else oracle.has_phrase
            plain = (
                f"{kind}({place}, {said})",
                lambda rows, row: test(value(row, variable, name), wanted, rows.analysis(name)),
            )
        shape = self.chance.random()
        text, holds = plain
        if shape < 0.15:
            return f"not {text}", lambda rows, row: _negated(holds(rows, row))
        if shape < 0.22:
            return f"{text} is null", lambda rows, row: holds(rows, row) is None
        return plain

    def alike(self, rank: Rank) -> Filter:
        """The filter that says the same as a score, as one mostly asks."""
        assert rank.words is not None
        variable, name, wanted = rank.words
        kind = self.chance.choice(("search", "search", "match_text"))
        test = oracle.has_word if kind == "search" else oracle.has_phrase
        return (
            rank.text.replace("bm25", kind, 1),
            lambda rows, row: test(value(row, variable, name), wanted, rows.analysis(name)),
        )

    def rank(self, variables: Sequence[str], *, fused: bool = True) -> Rank:
        near = [name for name in variables if name in WITH_VECTORS]
        draw = self.chance.random()
        if fused and draw < 0.3:
            return self._fused(variables)
        if near and draw < 0.65:
            return self._nearest(self.chance.choice(near), near if fused else [])
        return self._bm25(self.chance.choice(list(variables)))

    def _bm25(self, variable: str) -> Rank:
        name = self.chance.choice(TEXTS[variable])
        said, wanted = self.words()

        def score(rows: Rows, every: list[Binding], row: Binding) -> float | None:
            if row[variable] is None:
                return None
            corpus = rows.corpus(row[variable]["@type"], name)
            return corpus.score(row[variable][name], wanted)

        text = f"bm25(${variable}.{name}, {said})"
        return Rank(text, True, True, score, (variable, name, wanted))

    def _nearest(self, variable: str, others: Sequence[str]) -> Rank:
        if others and self.chance.random() < 0.3:
            other = self.chance.choice(list(others))
            return Rank(
                f"nearest(${variable}.v, ${other}.v)",
                False,
                False,
                lambda rows, every, row: oracle.cosine_distance(
                    value(row, variable, "v"), value(row, other, "v")
                ),
            )
        vector = list(self.chance.choice(VECTORS))
        said = self.given("Vector(5)", vector, json.dumps(vector))
        return Rank(
            f"nearest(${variable}.v, {said})",
            False,
            False,
            lambda rows, every, row: oracle.cosine_distance(value(row, variable, "v"), vector),
        )

    def _fused(self, variables: Sequence[str]) -> Rank:
        """Of one variable, or of several: each rank has the places of its own."""
        chosen = [self.chance.choice(list(variables)) for _ in range(self.chance.randint(2, 3))]
        legs = [(name, self.rank([name], fused=False)) for name in chosen]
        k = self.chance.choice((60, 60, 1, 7))
        form = self.chance.choice(("", f", k={k}", f", {k}"))
        k = k if form else 60

        known: list[tuple[list[Binding], list[dict[str, int]]]] = []

        def fuse(rows: Rows, every: list[Binding], row: Binding) -> float | None:
            if not known or known[0][0] is not every:
                places = [oracle.places(_leg(rows, every, name, leg)) for name, leg in legs]
                known[:] = [(every, places)]
            pairs = zip(legs, known[0][1], strict=True)
            return sum(
                oracle.fused([at], row[name]["id"], k)
                for (name, _), at in pairs
                if row[name] is not None
            )

        text = ", ".join(leg.text for _, leg in legs)
        return Rank(f"rrf({text}{form})", True, any(leg.counts for _, leg in legs), fuse)


def _leg(rows: Rows, every: list[Binding], name: str, leg: Rank) -> set[tuple[float | None, str]]:
    """What a rank within `rrf` is worth for each distinct entity, the smaller the better. Scores
    that single precision cannot tell apart are one."""
    found = set()
    for row in every:
        if row[name] is None:
            continue
        worth = leg.of(rows, every, row)
        if leg.descending:
            worth = -float(f"{worth:.6g}") if worth else None
        found.add((worth, row[name]["id"]))
    return found


# Patterns: how rows come to be.


@dataclass(frozen=True)
class Pattern:
    text: str
    variables: tuple[str, ...]
    rows: Callable[[Rows], list[Binding]]


def draw_pattern(draw: Draw) -> Pattern:
    chance = draw.chance
    kind = chance.choice(
        ("doc", "doc", "doc", "year", "note", "titled", "wrote", "edge", "cites", "far",
         "optional", "not", "exists")
    )  # fmt: skip
    match kind:
        case "doc":
            return Pattern("$d: Doc", ("d",), lambda r: [{"d": d} for d in r["Doc"]])
        case "year":
            return Pattern(
                "$d: Doc $d.year > 1", ("d",),
                lambda r: [{"d": d} for d in r["Doc"] if (d["year"] or 0) > 1],
            )  # fmt: skip
        case "note":
            return Pattern("$n: Note", ("n",), lambda r: [{"n": n} for n in r["Note"]])
        case "titled":
            return Pattern(
                "$t: Titled", ("t",), lambda r: [{"t": t} for t in (*r["Doc"], *r["Note"])]
            )
        case "wrote":
            return Pattern("$a: Author $a wrote $d", ("a", "d"), lambda r: _wrote(r, edge=False))
        case "edge":
            return Pattern("$a: Author $a $w:wrote $d", ("a", "d", "w"), _wrote)
        case "cites":
            return Pattern("$d: Doc $d cites $e", ("d", "e"), lambda r: _cites(r, 1))
        case "far":
            return Pattern("$d: Doc $d cites{1,2} $e", ("d", "e"), lambda r: _cites(r, 2))
        case _:
            return _block(draw, kind)


def _block(draw: Draw, kind: str) -> Pattern:
    text, holds = draw.filter("d")
    inside = f"{{ $a wrote $d {text} }}"

    def solutions(rows: Rows, author: Mapping[str, Any]) -> list[Binding]:
        return [b for b in _wrote(rows, edge=False) if b["a"] is author and holds(rows, b)]

    if kind == "optional":
        return Pattern(
            f"$a: Author optional {inside}", ("a", "d"),
            lambda r: [b for a in r["Author"] for b in solutions(r, a) or [{"a": a, "d": None}]],
        )  # fmt: skip
    wanted = kind == "exists"
    return Pattern(
        f"$a: Author {kind} {inside}", ("a",),
        lambda r: [{"a": a} for a in r["Author"] if bool(solutions(r, a)) is wanted],
    )  # fmt: skip


def _wrote(rows: Rows, *, edge: bool = True) -> list[Binding]:
    authors = {row["id"]: row for row in rows["Author"]}
    docs = {row["id"]: row for row in rows["Doc"]}
    return [
        {"a": authors[w["src"]], "d": docs[w["dst"]]} | ({"w": w} if edge else {})
        for w in rows["Wrote"]
    ]


def _cites(rows: Rows, most: int) -> list[Binding]:
    """By shortest distance, from 1 to `most`."""
    docs = {row["id"]: row for row in rows["Doc"]}
    along: dict[str, set[str]] = {name: set() for name in docs}
    for row in rows["Cites"]:
        along[row["src"]].add(row["dst"])
    found = []
    for start in docs:
        reached = set(along[start])
        if most == 2:
            reached |= {end for one in along[start] if one != start for end in along[one]} - {start}
        found += [{"d": docs[start], "e": docs[end]} for end in reached]
    return found


# Questions.


@dataclass(frozen=True)
class Question:
    text: str
    params: Mapping[str, Any]
    pattern: Pattern
    filters: tuple[Filter, ...]
    ranks: tuple[Rank, ...]
    order: Rank | None
    descending: bool
    limit: int | None
    offset: int

    def answer(self, rows: Rows) -> list[tuple[Any, ...]]:
        """All rows of the match, in order: the rank that orders, ids, values of the ranks."""
        every = [
            row
            for row in self.pattern.rows(rows)
            if all(holds(rows, row) for _, holds in self.filters)
        ]
        found = []
        for row in every:
            ids = tuple(value(row, name, "id") for name in sorted(self.pattern.variables))
            values = tuple(rank.of(rows, every, row) for rank in self.ranks)
            key = None if self.order is None else self.order.of(rows, every, row)
            found.append((key, ids, values))
        return found


def draw_question(chance: Random) -> Question:
    draw = Draw(chance)
    pattern = draw_pattern(draw)
    open_to = [name for name in pattern.variables if pattern.text.count("optional") == 0]
    filters = tuple(
        draw.filter(chance.choice(open_to))
        for _ in range(chance.choice((0, 1, 1, 2)) if open_to else 0)
    )
    ranks = [draw.rank(pattern.variables) for _ in range(chance.choice((0, 1, 1, 2)))]
    order = None
    if chance.random() < 0.85:
        order = chance.choice(ranks) if ranks and chance.random() < 0.6 else None
        order = order or draw.rank(pattern.variables)
    if order is not None and order.words is not None and open_to and chance.random() < 0.5:
        filters = (*filters[:1], draw.alike(order))
    direction = chance.choice(("", "", "", " asc", " desc"))
    descending = {"": order is not None and order.descending, " asc": False, " desc": True}
    near = any("nearest" in rank.text for rank in (*ranks, *([order] if order else [])))
    limit = chance.choice((0, 1, 2, 3, 5, 1000)) if near or chance.random() < 0.6 else None
    offset = chance.choice((0, 0, 1, 3)) if order is not None else 0
    columns = [f"${name}.@id as {name}" for name in sorted(pattern.variables)]
    columns += [f"{rank.text} as s{n}" for n, rank in enumerate(ranks)]
    text = f"match {{ {pattern.text} {' '.join(text for text, _ in filters)} }}"
    text += f" return {{ {', '.join(columns)} }}"
    if order is not None:
        text += f" order {{ {order.text}{direction} }}"
    text += "" if limit is None else f" limit {limit}"
    text += f" offset {offset}" if offset else ""
    declared = ", ".join(f"${name}: {kind}" for name, (kind, _) in draw.params.items())
    return Question(
        f"query q({declared}) {{ {text} }}",
        {name: given for name, (_, given) in draw.params.items()},
        pattern,
        filters,
        tuple(ranks),
        order,
        descending[direction],
        limit,
        offset,
    )
