"""Owns help: an overview of all commands and one page for each, 80 columns wide."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from omnigraph.cli.colours import Paint
from omnigraph.cli.commands import COMMANDS, GROUPS, SECTIONS, Command
from omnigraph.cli.options import DESCRIBED

if TYPE_CHECKING:
    from cyclopts.argument import Argument

_WIDTH = 80
_EXAMPLES = (
    "omnigraph init people.graph --schema people.pg",
    "export OMNIGRAPH_ROOT=people.graph",
    "omnigraph branch create review",
    "omnigraph log --graph --all",
)


def overview(paint: Paint) -> Iterator[str]:
    yield "OmniGraph: a typed graph database in plain files that branches like Git."
    yield ""
    yield f"{paint('bold', 'Usage:')} omnigraph COMMAND [ARGUMENTS] [OPTIONS]"
    for title, commands in SECTIONS:
        yield ""
        yield paint("bold", title)
        yield from _pairs([(c.name, c.summary) for c in commands], paint)
    yield ""
    yield paint("bold", "Options of every command")
    yield from _pairs(DESCRIBED, paint)
    yield ""
    yield paint("bold", "Examples")
    yield from (f"  {example}" for example in _EXAMPLES)
    yield ""
    yield "'omnigraph COMMAND --help' tells more about one command."


def group_help(words: tuple[str, ...], paint: Paint) -> Iterator[str]:
    yield GROUPS[words]
    yield ""
    yield f"{paint('bold', 'Usage:')} omnigraph {' '.join(words)} COMMAND [ARGUMENTS] [OPTIONS]"
    yield ""
    yield paint("bold", "Commands")
    inside = [c for path, c in COMMANDS.items() if path[: len(words)] == words]
    yield from _pairs([(c.name, c.summary) for c in inside], paint)


def command_help(command: Command, paint: Paint) -> Iterator[str]:
    from omnigraph.cli.arguments import is_shown
    from omnigraph.cli.parse import make_app

    app = make_app(command)
    described = [a for a in app.assemble_argument_collection() if is_shown(a)]
    positional = [a for a in described if a.field_info.kind is not inspect.Parameter.KEYWORD_ONLY]
    options = [a for a in described if a not in positional]
    about, _, examples = inspect.getdoc(app.default_command).partition("\n\nExamples:\n")  # type: ignore[union-attr]
    names = [_positional_name(argument) for argument in positional]
    usage = ["omnigraph", command.name, *names, "[OPTIONS]"]
    yield f"{paint('bold', 'Usage:')} {' '.join(usage)}"
    yield ""
    for paragraph in about.split("\n\n"):
        yield from wrap(paragraph, _WIDTH)
        yield ""
    if positional:
        yield paint("bold", "Arguments")
        yield from _pairs([(_positional_name(a), _about(a)) for a in positional], paint)
        yield ""
    if options:
        yield paint("bold", "Options")
        yield from _pairs([(_option_name(a), _about(a)) for a in options], paint)
        yield ""
    yield paint("bold", "Options of every command")
    yield from _pairs(DESCRIBED, paint)
    if examples:
        yield ""
        yield paint("bold", "Examples")
        yield from (f"  {line.strip()}" for line in examples.splitlines() if line.strip())


def _pairs(pairs: Any, paint: Paint) -> Iterator[str]:
    pairs = list(pairs)
    longest = min(24, max(len(name) for name, _ in pairs))
    for name, text in pairs:
        indent = " " * (longest + 4)
        first, *others = wrap(text, _WIDTH - len(indent)) or [""]
        if len(name) > longest:
            yield f"  {paint('cyan', name)}"
            yield f"{indent}{first}"
        else:
            yield f"  {paint('cyan', name)}{' ' * (longest - len(name))}  {first}"
        yield from (indent + line for line in others)


def _positional_name(argument: Argument) -> str:
    name = argument.names[0].removeprefix("--").upper()
    if argument.field_info.kind is inspect.Parameter.VAR_POSITIONAL:
        return f"{name}..."
    return name if argument.required else f"[{name}]"


def _option_name(argument: Argument) -> str:
    names = ", ".join(name for name in argument.names if not name.startswith("--no-"))
    if argument.hint is bool:
        return names
    metavar = argument.names[0].removeprefix("--").upper()
    choices = _choices(argument.hint)
    return f"{names} {'|'.join(choices) if 0 < len(choices) <= 3 else metavar}"


def _about(argument: Argument) -> str:
    text = argument.parameter.help or ""
    default = argument.field_info.default
    shown = default not in (None, False, inspect.Parameter.empty, ()) and default != []
    return f"{text} [{default}]" if shown else text


def _choices(hint: Any) -> tuple[str, ...]:
    if get_origin(hint) is Literal:
        return get_args(hint)
    for inner in get_args(hint):
        if found := _choices(inner):
            return found
    return ()
