"""Owns the command `shell`."""

from __future__ import annotations

from omnigraph.cli.arguments import Actor, AtRef, Cli


def shell(*, ref: AtRef = "main", actor: Actor = None, cli: Cli) -> int:
    """Talk to the graph: statements of the language, and \\-commands.

    With history and completion of types, properties and branches. When stdin is not a terminal
    the statements are read from it, and the first that fails ends the shell with its exit code.

    Examples:
        omnigraph shell
        omnigraph shell --branch review --as ada
        omnigraph shell < statements.gq
    """
    from omnigraph.cli.shell.loop import Shell
    from omnigraph.cli.shell.terminal import run_script, run_terminal

    with cli.writing(ref) as g:
        g.at(ref)
        session = Shell(cli, g, ref, cli.actor(actor))
        if cli.out.streams.stdin.isatty():
            return run_terminal(session)
        return run_script(session)
