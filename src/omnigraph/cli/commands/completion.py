"""Owns completion: scripts for shells, generated from the table of commands.

The names of branches come from the graph, which may be a stranger's. The scripts never let the
shell interpret these names: they are compared as text and quoted on the line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from cyclopts import Parameter

from omnigraph.cli.arguments import Cli
from omnigraph.cli.commands import COMMANDS, GROUPS
from omnigraph.cli.options import DESCRIBED

_MENTIONS_BRANCH = "merge diff log show protect unprotect branch"
_BRANCHES = "omnigraph completion branches 2>/dev/null"


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish", "branches"],
        Parameter(help="which shell; or branches, the names that the scripts ask for"),
    ],
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
    if shell == "branches":
        with cli.reading() as g:
            cli.out.lines(name for name in g.branches() if name.isprintable())
        return
    makers = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    cli.out.lines(makers[shell]())


def _bash() -> Iterator[str]:
    yield "_omnigraph() {"
    yield '  local word="${COMP_WORDS[COMP_CWORD]}" first="${COMP_WORDS[1]}"'
    yield '  local second="${COMP_WORDS[2]}" name quoted'
    yield '  if [ "$COMP_CWORD" -eq 1 ]; then'
    yield f'    COMPREPLY=($(compgen -W "{_first_words()}" -- "$word")); return'
    yield "  fi"
    yield '  case "$first" in'
    for group, inside in _group_words():
        yield f"    {group})"
        reply = f'COMPREPLY=($(compgen -W "{inside}" -- "$word"))'
        yield f'      [ "$COMP_CWORD" -eq 2 ] && {reply} && return;;'
    yield "  esac"
    yield '  case "$word" in'
    yield "    -*)"
    yield '      case "$first $second" in'
    for pattern, options in _option_words():
        yield f'        {pattern}) COMPREPLY=($(compgen -W "{options}" -- "$word")); return;;'
    yield "      esac;;"
    yield "    *)"
    yield '      case "$first" in'
    yield f"        {_MENTIONS_BRANCH.replace(' ', '|')})"
    yield "          COMPREPLY=()"
    yield "          while IFS= read -r name; do"
    yield '            printf -v quoted %q "$name"'
    yield '            if [[ "$name" == "$word"* || "$quoted" == "$word"* ]]; then'
    yield '              COMPREPLY+=("$quoted")'
    yield "            fi"
    yield f"          done < <({_BRANCHES})"
    yield "          return;;"
    yield "      esac;;"
    yield "  esac"
    yield "}"
    yield "complete -o default -F _omnigraph omnigraph"


def _zsh() -> Iterator[str]:
    yield "#compdef omnigraph"
    yield "_omnigraph() {"
    yield '  local first="${words[2]}" second="${words[3]}"'
    yield "  local -a names"
    yield "  if (( CURRENT == 2 )); then"
    yield f"    compadd -- {_first_words()}; return"
    yield "  fi"
    yield '  case "$first" in'
    for group, inside in _group_words():
        yield f"    {group}) if (( CURRENT == 3 )); then compadd -- {inside}; return; fi;;"
    yield "  esac"
    yield '  case "${words[CURRENT]}" in'
    yield "    -*)"
    yield '      case "$first $second" in'
    for pattern, options in _option_words():
        yield f"        {pattern}) compadd -- {options}; return;;"
    yield "      esac;;"
    yield "    *)"
    yield '      case "$first" in'
    yield f"        {_MENTIONS_BRANCH.replace(' ', '|')})"
    yield f'          names=("${{(@f)$({_BRANCHES})}}")'
    yield "          compadd -a names; return;;"
    yield "      esac"
    yield "      _files;;"
    yield "  esac"
    yield "}"
    yield 'if [[ "${funcstack[1]}" == _omnigraph ]]; then'
    yield '  _omnigraph "$@"'
    yield "else"
    yield "  compdef _omnigraph omnigraph"
    yield "fi"


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
    mentions = f"__fish_seen_subcommand_from {_MENTIONS_BRANCH}"
    yield f"complete -c omnigraph -n '{mentions}' -a '({_BRANCHES})'"


def _first_words() -> str:
    return " ".join([*sorted({words[0] for words in COMMANDS}), "--help", "--version"])


def _group_words() -> Iterator[tuple[str, str]]:
    for (group,) in GROUPS:
        inside = (words[1] for words in COMMANDS if words[0] == group and len(words) > 1)
        yield group, " ".join(inside)


def _option_words() -> Iterator[tuple[str, str]]:
    """A pattern for the first two words, and the options of the command that they name."""
    for command in COMMANDS.values():
        pattern = f'"{command.name}"' if len(command.words) > 1 else f'"{command.name} "*'
        yield pattern, " ".join(options_of(command.words))


def options_of(words: tuple[str, ...]) -> list[str]:
    """All option names of a command, including those that every command takes."""
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
