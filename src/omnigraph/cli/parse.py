"""Owns the step from words to a call: cyclopts binds the words to the parameters of a function."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import cyclopts

from omnigraph.cli.arguments import is_shown
from omnigraph.cli.commands import Command
from omnigraph.cli.options import NAMES
from omnigraph.cli.paths import STDIN
from omnigraph.errors import InvalidArgument
from omnigraph.lang.suggestions import near

if TYPE_CHECKING:
    from omnigraph.cli.invocation import Invocation

Bound = Callable[["Invocation"], int | None]


def load_function(command: Command) -> Callable[..., int | None]:
    module = importlib.import_module(f"omnigraph.cli.commands.{command.module}")
    function: Callable[..., int | None] = getattr(module, command.function)
    return function


def make_app(command: Command) -> cyclopts.App:
    """A parser for one command alone."""
    app = cyclopts.App(name=f"omnigraph {command.name}", help_flags=(), version_flags=())
    app.default(load_function(command))
    return app


def parse_words(
    command: Command, words: list[str], defaults: Mapping[str, Any] | None = None
) -> Bound:
    """The command with its arguments, ready to be called with the invocation. `defaults` fills
    parameters of these names that the words leave out."""
    words = [STDIN if word == "-" else word for word in words]
    try:
        function, bound, _ = make_app(command).parse_args(
            words, exit_on_error=False, print_error=False
        )
    except cyclopts.CycloptsError as error:
        raise InvalidArgument(
            _message(error, words), help=f"See 'omnigraph {command.name} --help'."
        ) from None

    except RecursionError:  # cyclopts takes a word that begins with [ for JSON
        raise InvalidArgument("An argument is nested too deeply.") from None

    for name, value in (defaults or {}).items():
        if name in bound.signature.parameters:
            bound.arguments.setdefault(name, value)

    def call(invocation: Invocation) -> int | None:
        given: dict[str, Any] = {**bound.kwargs, "cli": invocation}
        code: int | None = function(*bound.args, **given)
        return code

    return call


def _unknown(option: str, error: cyclopts.UnknownOptionError) -> str:
    """Compares the word with the options of the command and with those of all commands."""
    option = option.split("=", 1)[0]
    own = [name for known in error.argument_collection if is_shown(known) for name in known.names]
    guess = near(option, [*own, *NAMES])
    return f"Unknown option: {option}." + (f" Did you mean {guess}?" if guess else "")


def _message(error: cyclopts.CycloptsError, words: list[str]) -> str:
    """The mistake in one sentence."""
    match error:
        case cyclopts.UnusedCliTokensError(unused_tokens=tokens):
            return f"There are too many arguments: {' '.join(tokens or ())}."
        case cyclopts.MissingArgumentError(argument=argument) if argument is not None:
            given = any(name in words for name in argument.names)
            return f"{argument.name} needs a value." if given else f"{argument.name} is missing."
        case cyclopts.UnknownOptionError(token=token):
            return _unknown(token.keyword or token.value, error)
    said = " ".join(str(error).split())
    return said if said.endswith((".", "?")) else f"{said}."
