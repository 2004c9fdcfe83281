"""Owns completion: scripts for shells, made from the table of commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from cyclopts import Parameter

from omnigraph.cli.arguments import Cli
from omnigraph.cli.commands import COMMANDS, GROUPS
from omnigraph.cli.options import DESCRIBED

_MENTIONS_BRANCH = "merge diff log show protect unprotect"


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="which shell")],
    /,
    *,
    cli: Cli,
) -> None:
    """Print a completion script for your shell.

    Commands, options and the branches of the graph are completed.

    Examples:
        omnigraph completion bash > ~/.local/share/bash-completion/completions/omnigraph
        omnigraph completion zsh > ~/.zfunc/_omnigraph
        omnigraph completion fish > ~/.config/fish/completions/omnigraph.fish
    """
    makers = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    cli.out.lines(makers[shell]())


def _bash() -> Iterator[str]:
    first = sorted({words[0] for words in COMMANDS})
    yield "_omnigraph() {"
    yield '  local word="${COMP_WORDS[COMP_CWORD]}" first="${COMP_WORDS[1]}"'
    yield '  local second="${COMP_WORDS[2]}"'
    yield '  if [ "$COMP_CWORD" -eq 1 ]; then'
    yield f'    COMPREPLY=($(compgen -W "{" ".join(first)} --help --version" -- "$word")); return'
    yield "  fi"
    yield '  case "$first" in'
    for (group,) in GROUPS:
        inside = " ".join(words[1] for words in COMMANDS if words[0] == group and len(words) > 1)
        yield f"    {group})"
        reply = f'COMPREPLY=($(compgen -W "{inside}" -- "$word"))'
        yield f'      [ "$COMP_CWORD" -eq 2 ] && {reply} && return;;'
    yield "  esac"
    yield '  case "$word" in'
    yield "    -*)"
    yield '      case "$first $second" in'
    for command in COMMANDS.values():
        pattern = f'"{command.name}"' if len(command.words) > 1 else f'"{command.name} "*'
        options = " ".join(options_of(command.words))
        yield f'        {pattern}) COMPREPLY=($(compgen -W "{options}" -- "$word")); return;;'
    yield "      esac;;"
    yield "    *)"
    yield f'      case " {_MENTIONS_BRANCH} branch " in *" $first "*)'
    yield (
        '        COMPREPLY=($(compgen -W "$(omnigraph branch list --format csv 2>/dev/null '
        '| tail -n +2 | cut -d, -f1)" -- "$word")); return;;'
    )
    yield "      esac;;"
    yield "  esac"
    yield "}"
    yield "complete -o default -F _omnigraph omnigraph"


def _zsh() -> Iterator[str]:
    yield "#compdef omnigraph"
    yield "autoload -U +X bashcompinit && bashcompinit"
    yield from _bash()


def _fish() -> Iterator[str]:
    for words, command in COMMANDS.items():
        before = " ".join(words[:-1])
        condition = f"__fish_seen_subcommand_from {before}" if before else "__fish_use_subcommand"
        yield (f"complete -c omnigraph -f -n '{condition}' -a {words[-1]} -d '{command.summary}'")
        for option in options_of(words):
            if option.startswith("--"):
                seen = f"__fish_seen_subcommand_from {words[-1]}"
                yield f"complete -c omnigraph -n '{seen}' -l {option.removeprefix('--')}"
    for (group,), about in GROUPS.items():
        yield f"complete -c omnigraph -f -n '__fish_use_subcommand' -a {group} -d '{about}'"


def options_of(words: tuple[str, ...]) -> list[str]:
    """All option names of a command, those of every command included."""
    from omnigraph.cli.parse import make_app

    app = make_app(COMMANDS[words])
    own = [
        name
        for argument in app.assemble_argument_collection()
        if argument.parameter.parse is not False
        for name in argument.names
        if name.startswith("-")
    ]
    common = [name.split()[0].rstrip(",") for name, _ in DESCRIBED]
    return list(dict.fromkeys([*own, *common]))
