"""Owns grammars at run time: the LALR tables that lark makes of a grammar file, in the form that
the parsers use.

Only this module imports lark, when a text is first parsed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from omnigraph.lang.tokens import END, Token

_ERRORS: Final = frozenset({"ERROR", "BROKEN"})


class Reduction(NamedTuple):
    """Takes `size` values off the stack, pushes the value that `build` makes of them, and goes
    where `rule` says."""

    size: int
    rule: str
    build: Callable[[list[Any]], Any]


Actions = dict[int, dict[str, int | Reduction]]
Moves = dict[int, dict[str, int]]


class Terminals(NamedTuple):
    """`patterns` are the terminals that text can match by itself. `words` are the keywords with
    their terminals; whether a word is a keyword is decided by the lexer or the parser."""

    patterns: dict[str, str]
    words: dict[str, str]


class GrammarTables(NamedTuple):
    """`actions[state][terminal]` is a state to shift to, or a reduction. `moves[state][rule]` is
    the state after a reduction."""

    actions: Actions
    moves: Moves
    start: int
    terminals: Terminals


def expects(actions: Actions, moves: Moves, states: list[int], terminal: str, root: str) -> bool:
    """Whether the terminal would be accepted with these states on the stack."""
    action = actions[states[-1]].get(terminal)
    if action is None or isinstance(action, int):
        return action is not None
    stack = list(states)
    while True:
        if action.size:
            del stack[-action.size :]
        if terminal == END and action.rule == root:
            return True
        stack.append(moves[stack[-1]][action.rule])
        action = actions[stack[-1]].get(terminal)
        if action is None or isinstance(action, int):
            return action is not None


def after(actions: Actions, moves: Moves, states: list[int], terminal: str) -> list[int]:
    """The states after an expected terminal has been shifted."""
    stack = list(states)
    while not isinstance(action := actions[stack[-1]][terminal], int):
        if action.size:
            del stack[-action.size :]
        stack.append(moves[stack[-1]][action.rule])
    stack.append(action)
    return stack


def take(
    actions: Actions, moves: Moves, states: list[int], values: list[Any], token: Token
) -> None:
    """Takes an expected token, which changes the stacks of states and values."""
    while not isinstance(action := actions[states[-1]][token.type], int):
        size, rule, build = action
        children = values[len(values) - size :]
        del values[len(values) - size :], states[len(states) - size :]
        values.append(build(children))
        states.append(moves[states[-1]][rule])
    states.append(action)
    values.append(token)


class Expecting(Protocol):
    """A grammar that knows which terminals it expects."""

    @property
    def actions(self) -> Actions: ...
    def expects(self, states: list[int], terminal: str) -> bool: ...


def expected_terminals(grammar: Expecting, states: list[int]) -> frozenset[str]:
    """The terminals that may follow, without those that only stand for errors."""
    row = grammar.actions[states[-1]]
    return frozenset(t for t in row if t not in _ERRORS and grammar.expects(states, t))


def load_tables(grammar: str, root: str, builder: object) -> GrammarTables:
    """The methods of the builder are named after the rules or their aliases."""
    from lark import Lark
    from lark.lexer import Lexer as LarkLexer
    from lark.parsers.lalr_analysis import Shift

    class NoLexer(LarkLexer):
        """Keeps lark from building a lexer: ours reads the text."""

        def __init__(self, _conf: object) -> None: ...

        def lex(self, lexer_state: object, parser_state: object) -> Any:
            raise AssertionError((lexer_state, parser_state))

    lark = Lark(grammar, start=root, parser="lalr", lexer=NoLexer, maybe_placeholders=False)
    conf = lark.parse_interactive().parser_state.parse_conf
    actions: Actions = {}
    moves: Moves = {}
    for state, row in conf.states.items():
        actions[state], moves[state] = {}, {}
        for symbol_token, (kind, target) in row.items():
            # lark's own strings compare slowly.
            symbol = sys.intern(str(symbol_token))
            if kind is not Shift:
                actions[state][symbol] = _reduction(target, builder)
            elif symbol.isupper() or symbol == END:
                actions[state][symbol] = target
            else:
                moves[state][symbol] = target
    return GrammarTables(actions, moves, conf.start_state, _terminals(lark.terminals))


def _reduction(rule: Any, builder: object) -> Reduction:
    """Rules that lark made for `*` and `?` have names with two underscores. They gather a list,
    which the rule that uses them takes apart again."""
    name = sys.intern(str(rule.origin.name))
    build: Callable[[list[Any]], Any]
    if name.startswith("__"):
        build = _gather
    else:
        build = getattr(builder, rule.alias or name)
        if any(symbol.name.startswith("__") for symbol in rule.expansion):
            build = partial(_build_flat, build)
    return Reduction(len(rule.expansion), name, build)


def _gather(children: list[Any]) -> list[Any]:
    """Appends to the list of the same repetition in place; it is always the first child."""
    if type(children[0]) is not list:
        return children
    gathered: list[Any] = children[0]
    gathered += children[1:]
    return gathered


def _build_flat(build: Callable[[list[Any]], Any], children: list[Any]) -> Any:
    flat: list[Any] = []
    for child in children:
        if type(child) is list:
            flat += child
        else:
            flat.append(child)
    return build(flat)


def _terminals(terminals: Iterable[Any]) -> Terminals:
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
    return Terminals(patterns, words)
