"""Owns the options that every command takes, wherever they stand on the line.

They are read before the command is known, so this module must be cheap to import.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from omnigraph.errors import InvalidArgument
from omnigraph.lang.suggestions import near

Format = Literal["table", "json", "jsonl", "csv", "arrow", "parquet"]
Color = Literal["auto", "always", "never"]

DESCRIBED: tuple[tuple[str, str], ...] = (
    ("--root ROOT", "the graph: a path, file://, s3://; else OMNIGRAPH_ROOT, omnigraph.toml"),
    ("--format FORMAT", "table, json, jsonl, csv or arrow"),
    ("--json", "results and errors as JSON"),
    ("--io", "print the storage requests that the command took"),
    ("--quiet, -q", "print results and errors, nothing else"),
    ("--color WHEN", "auto, always or never; NO_COLOR is obeyed"),
    ("--debug", "print the stack when something fails"),
    ("--help, -h", "print this"),
)
_WITH_VALUE = ("--root", "--format", "--color")
_FLAGS = {
    "--json": "json",
    "--io": "io",
    "--quiet": "quiet",
    "-q": "quiet",
    "--debug": "debug",
    "--help": "help",
    "-h": "help",
}
NAMES = (*_WITH_VALUE, *_FLAGS)


@dataclass(frozen=True)
class Options:
    root: str | None = None
    format: Format | None = None
    json: bool = False
    io: bool = False
    quiet: bool = False
    color: Color = "auto"
    debug: bool = False
    help: bool = False

    @property
    def shape(self) -> Format:
        """The format of the results."""
        return self.format or ("json" if self.json else "table")


def split_options(arguments: Sequence[str]) -> tuple[Options, list[str]]:
    """The options of all commands, and the remaining words for one command. Nothing after `--` is
    an option."""
    options = Options()
    rest: list[str] = []
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        name, given, value = word.partition("=")
        if word == "--":
            return options, [*rest, word, *waiting]
        if name in _WITH_VALUE:
            if not given:
                if not waiting:
                    raise InvalidArgument(f"{name} needs a value.")
                value = waiting.pop(0)
            options = _with_value(options, name, value)
        elif word in _FLAGS:
            options = replace(options, **{_FLAGS[word]: True})  # type: ignore[arg-type]
        else:
            rest.append(word)
    return options, rest


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether errors should be JSON, even when the arguments cannot be read."""
    return "--json" in arguments


def _with_value(options: Options, name: str, value: str) -> Options:
    if name == "--root":
        return replace(options, root=value)
    known = get_args(Format) if name == "--format" else get_args(Color)
    if value not in known:
        guess = near(value, known)
        hint = f"Did you mean {guess!r}?" if guess else f"There are {', '.join(known)}."
        raise InvalidArgument(f"{name} cannot be {value!r}.", help=hint)
    key = name.removeprefix("--")
    return replace(options, **{key: value})  # type: ignore[arg-type]
