"""Texts made from the grammars of both languages, and broken ones, by seed.

A text is derived from the rules of the `.lark` file itself, so that a rule that is added is tried
without a word here; only terminals have examples."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from omnigraph.lang.gq.grammar import grammar_text as gq_text
from omnigraph.lang.pg.grammar import grammar_text as pg_text

NEVER = frozenset({"ERROR", "BROKEN"})
"""Terminals that never come from text."""
_NAMES = ("name", "age", "born", "seen", "tags", "score", "happy", "since", "knows", "worksAt", "x")
_KEYWORDS = (
    "query",
    "match",
    "count",
    "limit",
    "distinct",
    "contains",
    "set",
    "from",
    "node",
    "as",
)
_TYPES = ("Person", "Company", "City", "Knows", "WorksAt", "Named", "String", "I32", "F64", "Date")
_VARIABLES = ("$p", "$q", "$c", "$k", "$_", "$n")
_INTEGERS = ("0", "1", "2", "3", "007", "9223372036854775807", "9223372036854775808", "9" * 40)
_FLOATS = ("0.0", "1.5", "1.0e9", "1.0e999", "1.0e-999", "00.10", "9.9E+20")
_STRINGS: tuple[str, ...] = (
    '""',
    '"a"',
    r'"\n\t\"\\"',
    r'"\u0041"',
    '"é\U0001f600"',
    '"// no"',
    '"/* no"',
    r'"\q"',
)
_STRINGS += (r'"\ud800"', '"2024-05-31"', '"%"')
_REFS = ("main", "a/b", "a-b.c", '"x y"', "7")
_CALLS: tuple[str, ...] = (
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "collect",
    "lower",
    "upper",
    "length",
    "coalesce",
)
_CALLS += ("now", "abs", "date", "year", "nearest", "bm25", "nosuch", "distance", "concat")
_COMMON: dict[str, tuple[str, ...]] = {
    "NAME": (*_NAMES, *_NAMES, *_KEYWORDS),
    "TYPE": _TYPES,
    "STRING": _STRINGS,
    "INTEGER": _INTEGERS,
    "FLOAT": _FLOATS,
}
_GQ = _COMMON | {
    "VAR": _VARIABLES,
    "LEAD": _VARIABLES,
    "PATH": _VARIABLES,
    "QUANTIFIER": ("any", "all", "none"),
    "CALL": _CALLS,
    "ARG": ("k", "limit"),
    "REF": _REFS,
    "NEG": ("-",),
    "LT": ("<",),
    "GT": (">",),
    "SLASH": ("/",),
}
_PG = _COMMON | {
    "NAME": (*_NAMES, *_KEYWORDS, "key", "unique", "index", "range", "check", "card", "default"),
    "VALUE": ("open", "closed", "a-b", "1", "-", "true", "OPEN"),
    "CONSTRAINT": ("@",),
    "RESERVED": ("and", "or", "not", "is", "in"),
    "MINUS": ("-",),
}
_ODD = (
    "\0",
    "\ufeff",
    "\ud800",
    "\u2028",
    "\u202e",
    "\r",
    "\f",
    "\x1b[31m",
    "é",
    "'",
    "`",
    ";",
    "$",
)
_SPACES: tuple[str, ...] = (" ",) * 12 + (
    "\n",
    "\n\n\n",
    "\t",
    "\r\n",
    "\r",
    " /* c */ ",
    " // c\n",
    "\n// c\n",
)
_SPACES += (
    "\n/* c */\n",
    " /* c\n  more */ ",
    "\n/*\n * c\n */ ",
    " /**//**/ ",
    "//\n",
    " /* c */\n",
)


@dataclass(frozen=True)
class Grammar:
    """`rules` by name, each with its ways to go on; `costs` is how deep a way must at least go."""

    start: str
    rules: Mapping[str, Sequence[tuple[str, ...]]]
    words: Mapping[str, tuple[str, ...]]
    costs: Mapping[str, int]

    def derive(self, rng: random.Random, *, depth: int) -> list[str]:
        """The tokens of a text. Deep down only the shortest ways are gone."""
        tokens: list[str] = []
        todo = [(self.start, depth)]
        while todo:
            symbol, left = todo.pop()
            if symbol not in self.rules:
                tokens.append(rng.choice(self.words[symbol]))
                continue
            ways = self.rules[symbol]
            if left <= 0 or len(tokens) > 300:
                least = min(map(self._cost, ways))
                ways = [way for way in ways if self._cost(way) == least]
            way = rng.choice(ways)
            # Repetitions are rules of their own, which are no deeper than what they repeat.
            below = left if symbol.startswith("__") else left - 1
            todo += [(part, below) for part in reversed(way)]
        return tokens

    def _cost(self, way: tuple[str, ...]) -> int:
        return max((self.costs.get(part, 0) for part in way), default=0)

    def text(self, seed: int) -> str:
        """Of ten texts, seven are just what the grammar makes, with any white space."""
        rng = random.Random(seed)
        tokens = self.derive(rng, depth=rng.choice((6, 10, 14, 18)))
        damaged = seed % 10 >= 7
        if damaged and tokens:
            for _ in range(rng.randint(1, 3)):
                self._damage(tokens, rng)
        spaces = (" ",) if rng.random() < 0.3 else _SPACES
        glued = 0.2 if rng.random() < 0.2 else 0.0
        text = "".join(
            token + ("" if rng.random() < glued else rng.choice(spaces)) for token in tokens
        )
        if damaged and rng.random() < 0.4:
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(_ODD) + text[at + rng.choice((0, 0, 1, 5)) :]
        return text

    def _damage(self, tokens: list[str], rng: random.Random) -> None:
        at = rng.randrange(len(tokens))
        other = rng.choice(self.words[rng.choice(sorted(self.words))])
        match rng.randrange(5):
            case 0 if len(tokens) > 1:
                del tokens[at]
            case 1:
                tokens.insert(at, other)
            case 2:
                tokens[at] = other
            case 3:
                tokens.insert(at, tokens[at])
            case _:
                to = rng.randrange(len(tokens))
                tokens[at], tokens[to] = tokens[to], tokens[at]


@cache
def gq() -> Grammar:
    return _load(gq_text(), "file", _GQ)


@cache
def pg() -> Grammar:
    return _load(pg_text(), "schema", _PG)


def _load(text: str, start: str, examples: Mapping[str, tuple[str, ...]]) -> Grammar:
    from lark import Lark

    # Terminals that our own lexers tell apart have no pattern, so lark gets one for each.
    for name in (*NEVER, "LEAD", "PATH", "QUANTIFIER", "NEG", "CALL", "ARG", "REF", "CONSTRAINT"):
        text += f'\n{name}: "\x01{name}"\n' if f" {name}" in text else ""
    text = "\n".join(line for line in text.splitlines() if not line.startswith("%declare"))
    lark = Lark(text, start=start, parser="lalr", lexer="basic", maybe_placeholders=False)
    rules: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for rule in lark.rules:
        way = tuple(str(symbol.name) for symbol in rule.expansion)
        if not NEVER & set(way):
            rules[str(rule.origin.name)].append(way)
    _drop_impossible(rules)
    words = dict(examples)
    for terminal in lark.terminals:
        if terminal.name not in words and terminal.name not in NEVER:
            words[terminal.name] = (_plain(terminal),)
    return Grammar(start, dict(rules), words, _costs(rules))


def _drop_impossible(rules: dict[str, list[tuple[str, ...]]]) -> None:
    """Rules that only wrecks can follow, and ways through them."""
    known = set(rules)
    while True:
        names = {name for name, ways in rules.items() if ways}
        for name in rules:
            rules[name] = [
                way for way in rules[name] if all(p in names or p.isupper() for p in way)
            ]
        if known == (now := {name for name, ways in rules.items() if ways}):
            return
        known = now


def _plain(terminal: Any) -> str:
    return str(terminal.pattern.value) if terminal.pattern.type == "str" else " "


def _costs(rules: Mapping[str, list[tuple[str, ...]]]) -> dict[str, int]:
    costs = dict.fromkeys(rules, 10**6)
    changed = True
    while changed:
        changed = False
        for name, ways in rules.items():
            least = min(
                (1 + max((costs.get(p, 0) for p in w), default=0) for w in ways), default=10**6
            )
            if least < costs[name]:
                costs[name], changed = least, True
    return costs
