"""Owns the shell: it reads lines and runs statements, with the graph open all the time.

A line that begins with `\\` is a command of the shell or of the program; anything else is the
language. After an error the shell goes on, and a script stops.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from omnigraph.cli.colours import Paint
from omnigraph.cli.commands import COMMANDS, GROUPS, find_command
from omnigraph.cli.failures import failure_lines
from omnigraph.cli.invocation import Invocation
from omnigraph.cli.options import split_options
from omnigraph.cli.output import Output
from omnigraph.cli.shell.reading import Item, goes_on, read_statements
from omnigraph.errors import InvalidArgument, OmnigraphError
from omnigraph.lang.suggestions import near

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph
    from omnigraph.model.catalog import Catalog

HELP = (
    ("\\help", "print this"),
    ("\\use REF", "look at another branch or ref, and write to it if it is a branch"),
    ("\\types", "list the types and how many entities each has"),
    ("\\set NAME VALUE", "give a parameter to the queries that declare it; no value: forget it"),
    ("\\format FORMAT", "table, json, jsonl or csv"),
    ("\\timing", "tell how long each statement takes, or no longer"),
    ("\\io", "tell the storage requests of each statement, or no longer"),
    ("\\read FILE", "run the statements of a file"),
    ("\\quit", "leave; so does Ctrl-D"),
)
_OWN = tuple(name.split()[0].removeprefix("\\") for name, _ in HELP)
_ALIASES = {"q": "quit", "exit": "quit", "?": "help", "h": "help", "i": "read", "dt": "types"}
_NOT_INSIDE = {"shell", "init", "completion"}


class Shell:
    def __init__(self, cli: Invocation, graph: Graph, ref: str, actor: str | None) -> None:
        self.cli = cli
        self.graph = graph
        self.ref = ref
        self.actor = actor
        self.parameters: dict[str, Any] = {}
        self.timing = False
        self.io = cli.options.io
        self.text = ""
        self.finished = False

    @property
    def out(self) -> Output:
        return self.cli.out

    @property
    def command_names(self) -> list[str]:
        ours = [" ".join(words) for words in COMMANDS if words[0] not in _NOT_INSIDE]
        return [*_OWN, *ours]

    def catalog(self) -> Catalog:
        return self.graph.at(self.ref).catalog

    def prompt(self, paint: Paint) -> str:
        if self.text:
            return f"{' ' * (len(self.ref) - 1)}… "
        return f"{paint('green', self.ref)}> "

    # Lines

    def feed_all(self, lines: Iterable[str]) -> int:
        """Runs the lines of a script until one fails. An `order` or `limit` on the next line
        belongs to the statement above it."""
        code = 0
        for line, after in pairwise(chain(lines, [None])):
            assert line is not None
            code = self.feed(line.rstrip("\n"), ends=after is None or not goes_on(after))
            if code or self.finished:
                return code
        return self.finish()

    def feed(self, line: str, *, ends: bool = True) -> int:
        """Takes one more line and returns the exit code of the statement that it completes, 0 if
        none. Without `ends`, a complete statement waits for the next line."""
        if not self.text and line.strip().startswith("\\"):
            return self._guarded(lambda: self._command(line.strip()[1:]))
        self.text += f"{line}\n"
        read = read_statements(self.text)
        if read.state == "open" or (read.state == "complete" and not ends):
            return 0
        self.text = ""
        if read.state == "wrong":
            return self._guarded(lambda: self._refuse(read.text, read.diagnostics))
        codes = [self._guarded(lambda item=item: self._run(item, read.text)) for item in read.items]  # type: ignore[misc]
        return next((code for code in codes if code), 0)

    def finish(self) -> int:
        """Runs what remains when the input ends."""
        return self.feed("\n") if self.text.strip() else 0

    def forget(self) -> None:
        """Drops the lines typed so far."""
        self.text = ""

    def _guarded(self, action: Callable[[], int]) -> int:
        try:
            return action()
        except OmnigraphError as error:
            for told in failure_lines(error, self.out):
                self.out.warn(told)
            return error.exit_code
        finally:
            self.out.flush()

    # Statements

    def _run(self, item: Item, text: str) -> int:
        from omnigraph.cli.ledger import ledger_lines
        from omnigraph.cli.shell.statements import ShellState, run_item
        from omnigraph.telemetry import watch_requests

        state = ShellState(
            self.cli, self.graph, self.ref, self.actor, self.parameters, self.run_program
        )
        began = time.monotonic()
        with watch_requests() as watched:
            code = run_item(state, item, text)
        if self.timing:
            self.out.warn(self.out.note_paint("dim", f"{time.monotonic() - began:.3f} s"))
        if self.io:
            for told in ledger_lines(watched.total()):
                self.out.warn(self.out.note_paint("dim", told))
        return code

    def _refuse(self, text: str, diagnostics: Any) -> int:
        from omnigraph.cli.commands.fmt import report_diagnostics

        report_diagnostics(diagnostics, text, "input", self.cli)
        if goes_on(text):
            self.out.warn("help: The statement above ran with its line: write this behind it.")
        return 6

    # Commands

    def _command(self, line: str) -> int:
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise InvalidArgument(f"The line cannot be read: {error}.") from None
        if not words:
            raise InvalidArgument("A command is missing after the backslash.", help="Try \\help.")
        name = _ALIASES.get(words[0], words[0])
        if name in _OWN:
            own: Callable[[list[str]], int] = getattr(self, f"_do_{name}")
            return own(words[1:])
        if (words[0],) in COMMANDS or (words[0],) in GROUPS:
            return self.run_program(words)
        guess = near(words[0], [*_OWN, *(name.split()[0] for name in self.command_names)])
        hint = f"Did you mean \\{guess}?" if guess else "\\help lists what there is."
        raise InvalidArgument(f"There is no command \\{words[0]}.", help=hint)

    def run_program(self, words: list[str]) -> int:
        """A command of the program, on the open graph and the current branch."""
        from omnigraph.cli.parse import parse_words

        options, rest = split_options(words)
        options = replace(options, root=options.root or self.cli.root)
        if options.format is None and not options.json:
            options = replace(options, format=self.cli.options.format, json=self.cli.options.json)
        if rest[0] in _NOT_INSIDE:
            raise InvalidArgument(f"\\{rest[0]} is for outside of the shell.")
        if options.help or tuple(rest) in GROUPS:
            return self._program_help(rest)
        command, arguments = find_command(rest)
        bound = parse_words(command, arguments, {"branch": self.ref, "ref": self.ref})
        out = Output(self.out.streams, options, self.cli.environment)
        inner = Invocation(options, out, self.cli.environment, self.cli.runtime)
        return bound(inner) or 0

    def _program_help(self, words: list[str]) -> int:
        from omnigraph.cli.help import command_help, group_help

        if tuple(words) in GROUPS:
            self.out.lines(group_help(tuple(words), self.out.paint))
        else:
            self.out.lines(command_help(find_command(words)[0], self.out.paint))
        return 0

    def _do_help(self, _: list[str]) -> int:
        self.out.lines(_help_lines(self.out.paint))
        return 0

    def _do_quit(self, _: list[str]) -> int:
        self.finished = True
        return 0

    def _do_use(self, words: list[str]) -> int:
        if len(words) != 1:
            raise InvalidArgument("Which ref?", help="Write \\use main.")
        self.graph.at(words[0])
        self.ref = words[0]
        return 0

    def _do_types(self, _: list[str]) -> int:
        snapshot = self.graph.at(self.ref)
        rows = [
            {
                "type": kind.name,
                "kind": kind.table_key.split(":", 1)[0],
                "entities": snapshot.count(kind.table_key),
                "properties": ", ".join(p.name for p in kind.properties),
            }
            for kind in snapshot.catalog.types
        ]
        self.out.rows(rows)
        return 0

    def _do_set(self, words: list[str]) -> int:
        from omnigraph.cli.parameters import read_value

        if not words:
            self.out.rows([{"parameter": k, "value": v} for k, v in self.parameters.items()])
        elif len(words) == 1:
            self.parameters.pop(words[0].lstrip("$"), None)
        else:
            self.parameters[words[0].lstrip("$")] = read_value(" ".join(words[1:]))
        return 0

    def _do_format(self, words: list[str]) -> int:
        options, _ = split_options(["--format", *words])
        self.cli.options = replace(self.cli.options, format=options.format, json=False)
        self.cli.out = Output(self.out.streams, self.cli.options, self.cli.environment)
        return 0

    def _do_timing(self, _: list[str]) -> int:
        self.timing = not self.timing
        self.out.note(f"Times are {'shown' if self.timing else 'no longer shown'}.")
        return 0

    def _do_io(self, _: list[str]) -> int:
        self.io = not self.io
        self.out.note(f"Requests are {'shown' if self.io else 'no longer shown'}.")
        return 0

    def _do_read(self, words: list[str]) -> int:
        if len(words) != 1:
            raise InvalidArgument("Which file?", help="Write \\read queries.gq.")
        return self.feed_all(self.cli.read_text(words[0]).splitlines())


def _help_lines(paint: Paint) -> Iterator[str]:
    yield "Write a statement of the language; it runs as soon as it is complete:"
    yield paint("cyan", "  match { $p: Person } return { $p.name } limit 5")
    yield paint("cyan", '  insert Person { name: "Ada" }')
    yield paint("cyan", "  branch create review from main")
    yield "A blank line ends an incomplete statement and shows what is wrong with it."
    yield ""
    for name, about in HELP:
        yield f"  {paint('cyan', name.ljust(17))}  {about}"
    yield ""
    yield "Any command of the program works after a backslash: \\log --graph, \\diff main~1."
