"""Owns grammars at run time: the LALR tables of a grammar file, in the form that the parsers use.
They are made beforehand, because to make them takes longer than most queries."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from omnigraph.lang.tokens import END, Token

TABLES: Final = "tables.json"
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


class StoredRule(msgspec.Struct, frozen=True, array_like=True):
    """A reduction: `flat` if the rule has parts that repeat."""

    size: int
    rule: str
    build: str | None
    flat: bool


class StoredTables(msgspec.Struct, frozen=True):
    """The tables as the file beside the grammar has them: each different row once, and for each
    state the number of its rows. Below zero an action is a reduction, -1 by the first rule."""

    start: int
    patterns: dict[str, str]
    words: dict[str, str]
    rules: list[StoredRule]
    actions: list[dict[str, int]]
    moves: list[dict[str, int]]
    states: list[tuple[int, int]]


def load_tables(package: str, builder: object) -> GrammarTables:
    """The tables of the grammar in a package, made by `omnigraph.lang.grammar_making`. The methods
    of the builder are named after the rules or their aliases."""
    stored = msgspec.json.decode(
        (files(package) / TABLES).read_bytes(), type=StoredTables, strict=True
    )
    rules = [_reduction(rule, builder) for rule in stored.rules]
    names = sys.intern
    actions = [
        {names(terminal): act if act >= 0 else rules[-1 - act] for terminal, act in row.items()}
        for row in stored.actions
    ]
    moves = [{names(rule): state for rule, state in row.items()} for row in stored.moves]
    return GrammarTables(
        {state: actions[one] for state, (one, _) in enumerate(stored.states)},
        {state: moves[one] for state, (_, one) in enumerate(stored.states)},
        stored.start,
        Terminals(stored.patterns, stored.words),
    )


def _reduction(rule: StoredRule, builder: object) -> Reduction:
    build: Callable[[list[Any]], Any]
    build = _gather if rule.build is None else getattr(builder, rule.build)
    if rule.flat:
        build = partial(_build_flat, build)
    return Reduction(rule.size, sys.intern(rule.rule), build)


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
