"""Owns the making of grammar tables: lark turns a grammar file into the LALR tables that lie beside
it. Only this module imports lark. When a grammar changed:

    python -m omnigraph.lang.grammar_making
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from lark import Lark
from lark.lexer import Lexer as LarkLexer
from lark.parsers.lalr_analysis import Shift

from omnigraph.lang.grammar_tables import TABLES, StoredRule, StoredTables

GRAMMARS: Mapping[str, tuple[str, str]] = {
    "omnigraph.lang.gq": ("gq.lark", "file"),
    "omnigraph.lang.pg": ("pg.lark", "schema"),
}
"""For each package the file of its grammar, and the rule of a whole text."""


class _NoLexer(LarkLexer):
    """Keeps lark from building a lexer: ours reads the text."""

    def __init__(self, _conf: object) -> None: ...

    def lex(self, lexer_state: object, parser_state: object) -> Any:
        raise AssertionError((lexer_state, parser_state))


def make_tables(grammar: str, root: str) -> bytes:
    """The content of the file, the same for the same grammar: states are numbered in the order in
    which they are reached from the start."""
    lark = Lark(grammar, start=root, parser="lalr", lexer=_NoLexer, maybe_placeholders=False)
    conf = lark.parse_interactive().parser_state.parse_conf
    numbers = _numbers(conf)
    rules: dict[StoredRule, int] = {}
    actions: dict[tuple[tuple[str, int], ...], int] = {}
    moves: dict[tuple[tuple[str, int], ...], int] = {}
    states = []
    for state in numbers:
        acts: list[tuple[str, int]] = []
        goes: list[tuple[str, int]] = []
        for symbol, (kind, target) in sorted(conf.states[state].items()):
            if kind is not Shift:
                rule = rules.setdefault(_rule(target), len(rules))
                acts.append((str(symbol), -1 - rule))
            else:
                # The end of the text is called $END, and rules have small letters.
                kept = goes if symbol.islower() else acts
                kept.append((str(symbol), numbers[target]))
        states.append(
            (
                actions.setdefault(tuple(acts), len(actions)),
                moves.setdefault(tuple(goes), len(moves)),
            )
        )
    patterns, words = _terminals(lark.terminals)
    stored = StoredTables(
        start=numbers[conf.start_state],
        patterns=patterns,
        words=words,
        rules=list(rules),
        actions=[dict(row) for row in actions],
        moves=[dict(row) for row in moves],
        states=states,
    )
    return msgspec.json.encode(stored) + b"\n"


def _numbers(conf: Any) -> dict[int, int]:
    numbers = {conf.start_state: 0}
    waiting = deque(numbers)
    while waiting:
        for _, (kind, target) in sorted(conf.states[waiting.popleft()].items()):
            if kind is Shift and target not in numbers:
                numbers[target] = len(numbers)
                waiting.append(target)
    return numbers


def _rule(rule: Any) -> StoredRule:
    """Rules that lark made for `*` and `?` have names with two underscores. They gather a list,
    which the rule that uses them takes apart again."""
    name = str(rule.origin.name)
    size = len(rule.expansion)
    if name.startswith("__"):
        return StoredRule(size, name, None, False)
    flat = any(symbol.name.startswith("__") for symbol in rule.expansion)
    return StoredRule(size, name, str(rule.alias or name), flat)


def _terminals(terminals: Iterable[Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Terminals that are plain words are keywords."""
    patterns: dict[str, str] = {}
    words: dict[str, str] = {}
    for terminal in terminals:
        if terminal.pattern is None:
            continue
        pattern = terminal.pattern.to_regexp()
        if re.fullmatch(r"[A-Za-z_|]+", pattern):
            words.update(dict.fromkeys(pattern.split("|"), str(terminal.name)))
        else:
            patterns[str(terminal.name)] = pattern
    return patterns, words


def main() -> None:
    for package, (grammar, root) in GRAMMARS.items():
        place = files(package)
        text = (place / grammar).read_text(encoding="utf-8")
        Path(str(place / TABLES)).write_bytes(make_tables(text, root))


if __name__ == "__main__":
    main()
