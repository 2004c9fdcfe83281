"""Owns what each statement of the language does in the shell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from omnigraph.cli.commands.query import show_result
from omnigraph.cli.invocation import Invocation
from omnigraph.cli.output import Output
from omnigraph.cli.value_text import count_text, shown_text
from omnigraph.lang.gq.tree import (
    BranchCreate,
    BranchDelete,
    BranchList,
    BranchMerge,
    Explain,
    Query,
    Read,
)

if TYPE_CHECKING:
    from omnigraph.cli.shell.reading import Item
    from omnigraph.engine.graph import Graph


@dataclass(frozen=True)
class ShellState:
    """What a statement needs to know about the shell that runs it."""

    cli: Invocation
    graph: Graph
    ref: str
    actor: str | None
    parameters: Mapping[str, Any]
    run_program: Callable[[list[str]], int]

    @property
    def out(self) -> Output:
        return self.cli.out


def run_item(shell: ShellState, item: Item, text: str) -> int:
    """Runs one statement and returns its exit code."""
    match item:
        case Query(body=Read()):
            return _ask(shell, item, text)
        case Query():
            return _change(shell, item, text)
        case Explain(query=query, is_analyzed=analyzed):
            found = shell.graph.at(shell.ref).query(_slice(query, text), None, _given(shell, query))
            shell.out.lines(shown_text(found.explain(analyze=analyzed)))
        case BranchCreate(name=name, source=source):
            _program(shell, "branch", "create", name.text, "--from", _name(source, shell))
        case BranchDelete(name=name):
            return _program(shell, "branch", "delete", name.text, *_by(shell))
        case BranchList():
            _program(shell, "branch", "list")
        case BranchMerge(source=source, target=target):
            into = _name(target, shell)
            return _program(shell, "merge", source.text, "--into", into, *_by(shell))
        case _:
            assert_never(item)
    return 0


def _ask(shell: ShellState, item: Query, text: str) -> int:
    found = shell.graph.at(shell.ref).query(_slice(item, text), None, _given(shell, item))
    count = show_result(found, shell.cli)
    if count is not None:
        shell.out.note(shell.out.note_paint("dim", count_text(count, "row")))
    return 0


def _change(shell: ShellState, item: Query, text: str) -> int:
    from omnigraph.cli.commands.mutate import show_mutation

    done = shell.graph.branch(shell.ref).mutate(
        _slice(item, text), None, _given(shell, item), actor=shell.actor
    )
    show_mutation(done, shell.cli)
    return 0


def _program(shell: ShellState, *words: str) -> int:
    return shell.run_program(list(words))


def _by(shell: ShellState) -> list[str]:
    """The actor of the shell, for a command that writes."""
    return [] if shell.actor is None else ["--as", shell.actor]


def _name(given: Any, shell: ShellState) -> str:
    return shell.ref if given is None else given.text


def _slice(query: Query, text: str) -> str:
    return text[query.span.start : query.span.end]


def _given(shell: ShellState, query: Query) -> dict[str, Any]:
    """The parameters that were set and that the query declares."""
    names = {parameter.variable.name for parameter in query.parameters}
    return {name: value for name, value in shell.parameters.items() if name in names}
