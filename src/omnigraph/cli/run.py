"""Owns a run of the program from its arguments to its exit code."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

from omnigraph.cli.commands import GROUPS, Command, find_command
from omnigraph.cli.options import Options, split_options, wants_json
from omnigraph.cli.output import Output, Streams, close_stream
from omnigraph.cli.paths import FULL, shortened, unreadable, unwritable
from omnigraph.errors import InvalidArgument, OmnigraphError

if TYPE_CHECKING:
    from omnigraph.cli.invocation import Invocation
    from omnigraph.runtime import Runtime

INTERRUPTED = 130


def run(
    arguments: Sequence[str],
    *,
    streams: Streams | None = None,
    environment: Mapping[str, str] | None = None,
    runtime: Runtime | None = None,
) -> int:
    """Returns the exit code. Results go to stdout, everything else to stderr."""
    environment = os.environ if environment is None else environment
    streams = streams or Streams.of_process()
    out = Output(streams, Options(json=wants_json(arguments)), environment)
    try:
        _refuse_nul(arguments)
        options, words = split_options(arguments)
        out = Output(streams, options, environment)
        code = _obey(options, words, out, environment, runtime)
        out.flush()
    except OmnigraphError as error:
        code = _fail(error, out)
    except BrokenPipeError:
        close_stream(streams.stdout)
        code = 0
    except OSError as error:
        if not _is_output(error):
            raise
        code = _fail(unwritable("the output", error), out)
    except KeyboardInterrupt:
        out.warn("Interrupted. The graph is as it was.")
        code = INTERRUPTED
    return code


def _refuse_nul(arguments: Sequence[str]) -> None:
    """No operating system passes such a word on, but a Python caller might."""
    for word in arguments:
        if "\0" in word:
            raise InvalidArgument(f"The argument {shortened(word)!r} holds a NUL character.")


def _obey(
    options: Options,
    words: list[str],
    out: Output,
    environment: Mapping[str, str],
    runtime: Runtime | None,
) -> int:
    if words[:1] == ["help"]:
        words = [word for word in words[1:] if word != "help"]
        options = replace(options, help=True)
    if not words or words[0] == "--version":
        words, options = (["version"], options) if words else (words, Options(help=True))
    if options.help and not words:
        from omnigraph.cli.help import overview

        out.lines(overview(out.paint))
        return 0
    if tuple(words) in GROUPS:
        from omnigraph.cli.help import group_help

        out.lines(group_help(tuple(words), out.paint))
        return 0
    command, rest = find_command(words)
    if options.help:
        from omnigraph.cli.help import command_help

        out.lines(command_help(command, out.paint))
        return 0
    from omnigraph.cli.invocation import Invocation

    return _call(command, rest, Invocation(options, out, environment, runtime))


def _call(command: Command, words: list[str], invocation: Invocation) -> int:
    from omnigraph.cli.ledger import print_ledger
    from omnigraph.cli.parse import parse_words

    bound = parse_words(command, words)
    try:
        with print_ledger(invocation):
            code = bound(invocation)
            invocation.out.flush()
            return code or 0
    except KeyboardInterrupt:
        return _interrupted(invocation)
    except (OmnigraphError, BrokenPipeError):
        raise
    except BaseException as error:
        from omnigraph.store.resource_errors import find_scarcity

        if (scarce := find_scarcity(error)) is not None:
            raise scarce from error
        if invocation.options.debug or not isinstance(error, Exception):
            raise
        if _is_output(error):
            return _unwritten(invocation, error)
        if isinstance(error, OSError) and error.filename is not None:
            # Errors of the store are explained elsewhere; this is about a file named on the line.
            raise unreadable(shortened(os.fsdecode(error.filename)), error) from error
        if isinstance(error, RuntimeError) and "start new thread" in str(error):
            from omnigraph.store.lance_errors import no_threads

            raise no_threads() from error
        raise OmnigraphError(
            f"Something went wrong that should not: {type(error).__name__}: {error}.",
            help="This is a bug; --debug shows where.",
        ) from error


def _is_output(error: Exception) -> TypeGuard[OSError]:
    return isinstance(error, OSError) and error.filename is None and error.errno in FULL


def _unwritten(invocation: Invocation, error: OSError) -> int:
    """The output is lost, but what was done is done. The exit code must not make the caller try
    again."""
    done = invocation.done
    with contextlib.suppress(OmnigraphError):
        if done is None and (commit := invocation.find_interrupted()) is not None:
            done = f"It is done, in commit {commit}."
    told = unwritable("the output", error)
    if done is None:
        raise told from error
    close_stream(invocation.out.streams.stdout)
    invocation.out.warn(f"warning: {told.message} {done}")
    return 0


def _interrupted(invocation: Invocation) -> int:
    if invocation.half_done is not None:
        invocation.out.warn(f"Interrupted. {invocation.half_done}")
        return INTERRUPTED
    with contextlib.suppress(OmnigraphError, KeyboardInterrupt):
        commit = invocation.find_interrupted()
        if commit is not None:
            invocation.out.warn(f"Interrupted too late: it is done, in commit {commit}.")
            return INTERRUPTED
    if invocation.may_still_be_done:
        invocation.out.warn("Interrupted. The server may still do it: see 'omnigraph log'.")
    else:
        invocation.out.warn("Interrupted. The graph is as it was.")
    return INTERRUPTED


def _fail(error: OmnigraphError, out: Output) -> int:
    from omnigraph.cli.failures import failure_lines

    if out.options.debug:
        import traceback

        out.warn("".join(traceback.format_exception(error)))
    try:
        out.streams.stdout.flush()
    except OSError:
        close_stream(out.streams.stdout)
    for line in failure_lines(error, out):
        out.warn(line)
    return error.exit_code
