"""Owns the shell at a terminal: prompt, history, completion, Ctrl-C and Ctrl-D."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType

from omnigraph.cli.shell.complete import Completer
from omnigraph.cli.shell.loop import Shell
from omnigraph.errors import OmnigraphError

_REMEMBERED = 2000
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def history_path(environment: Mapping[str, str]) -> Path:
    given = environment.get("OMNIGRAPH_HISTORY")
    if given:
        return Path(given)
    state = environment.get("XDG_STATE_HOME")
    try:
        place = Path(state) if state else Path.home() / ".local" / "state"
    except RuntimeError:  # a user without a home remembers nothing
        return Path("/dev/null")
    return place / "omnigraph" / "history"


_AGAIN = 0.02


class _Interrupts:
    """Ctrl-C at the terminal. It is raised while a line is read or a statement runs, once; at any
    other moment there is nothing to drop, and the shell would end. While a module is imported it
    waits: a library such as numpy that is interrupted then can never be imported again."""

    def __init__(self) -> None:
        self.wanted = False

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if not self.wanted:
            return
        if _is_importing(frame):
            again = threading.Timer(_AGAIN, os.kill, (os.getpid(), number))
            again.daemon = True
            again.start()
            return
        self.wanted = False
        raise KeyboardInterrupt

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        before = signal.signal(signal.SIGINT, self._receive)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def run_terminal(shell: Shell) -> int:
    """Runs until the end of the input or \\quit. Ctrl-C drops the statement, not the shell."""
    history = history_path(shell.cli.environment)
    interrupts = _Interrupts()
    with interrupts.handled():
        _prepare(shell, history)
        shell.out.note("\\help tells what can be done here, Ctrl-D leaves.")
        try:
            _converse(shell, interrupts)
        finally:
            _save(history)
    return 0


def _converse(shell: Shell, interrupts: _Interrupts) -> None:
    while not shell.finished:
        try:
            interrupts.wanted = True
            line = input(_prompt(shell))
            interrupts.wanted = False
        except EOFError:
            interrupts.wanted = False
            shell.out.warn("")
            break
        except KeyboardInterrupt:
            shell.out.warn("")
            shell.forget()
            continue
        try:
            interrupts.wanted = True
            shell.feed(line)
            interrupts.wanted = False
        except KeyboardInterrupt:
            shell.out.warn("Interrupted.")


def run_script(shell: Shell) -> int:
    """Runs statements from a file or a pipe, until one fails."""
    return shell.feed_all(shell.out.streams.stdin)


def _prompt(shell: Shell) -> str:
    """Colour codes are marked as having no width, so long lines wrap correctly."""
    return _COLOURS.sub("\x01\\g<0>\x02", shell.prompt(shell.out.paint))


def _prepare(shell: Shell, history: Path) -> None:
    try:
        import readline
    except ImportError:  # without readline the shell still works, with plain lines
        return
    with contextlib.suppress(OSError):
        readline.read_history_file(history)
    readline.set_history_length(_REMEMBERED)
    completer = Completer(shell.catalog, shell.graph.branches, shell.command_names)

    def complete(word: str, state: int) -> str | None:
        line = readline.get_line_buffer()
        before = line[: readline.get_begidx()]
        try:
            found = completer.candidates(before, word, shell.text)
        except OmnigraphError:
            return None
        return found[state] if state < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n{}()[],:;=<>!+*/%|\"'")
    readline.parse_and_bind("tab: complete")


def _save(history: Path) -> None:
    with contextlib.suppress(ImportError, OSError):
        import readline

        history.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        readline.write_history_file(history)
        history.chmod(0o600)
