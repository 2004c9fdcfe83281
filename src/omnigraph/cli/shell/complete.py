"""Owns completion in the shell: commands, keywords, types, properties and branches."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence

from omnigraph.cli.commands import COMMANDS
from omnigraph.model.catalog import Catalog, EdgeType

KEYWORDS = (
    "match", "return", "order", "limit", "offset", "optional", "not", "exists", "count", "distinct",
    "as", "asc", "desc", "and", "or", "is", "in", "null", "true", "false", "contains",
    "starts_with", "ends_with", "insert", "update", "set", "where", "delete", "query",
    "case", "when", "then", "else", "end", "union", "union all", "shortest", "all shortest",
    "any(", "all(", "none(",
    "branch create", "branch list", "branch delete", "branch merge", "explain",
)  # fmt: skip
_BEFORE_BRANCH = re.compile(r"(?:^|\s)(?:from|into|merge|delete|\\use|--branch|-b|--ref)\s+$")
_BEFORE_TYPE = re.compile(r"(?::|\binsert|\bupdate|\bdelete|\\schema show)\s+$")
_PROPERTY = re.compile(r"\$(\w+)\.$")


class Completer:
    """Candidates for the word under the cursor. `branches` is called only when it is needed."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        branches: Callable[[], Sequence[str]],
        commands: Sequence[str],
    ) -> None:
        self._catalog = catalog
        self._branches = branches
        self._commands = tuple(commands)

    def candidates(self, before: str, word: str, earlier: str = "") -> list[str]:
        """`before` is the line up to the word, `earlier` the lines above it."""
        if not before and word.startswith("\\"):
            return _starting(word, [f"\\{name}" for name in self._commands])
        if before.startswith("\\") and word.startswith("-"):
            return _starting(word, _options(before))
        if _BEFORE_BRANCH.search(before):
            return _starting(word, self._branches())
        catalog = self._catalog()
        variable, dot, rest = word.rpartition(".")
        if dot:
            names = self._properties(catalog, variable, earlier + before)
            return [f"{variable}.{name}" for name in _starting(rest, names)]
        types = [kind.name for kind in catalog.types]
        if _BEFORE_TYPE.search(before):
            return _starting(word, types)
        edges = [_traversed(kind.name) for kind in catalog.edges]
        return _starting(word, [*edges, *KEYWORDS, *types])

    def _properties(self, catalog: Catalog, variable: str, text: str) -> list[str]:
        """The properties of the variable's type if the text shows it, else all."""
        found = re.findall(rf"{re.escape(variable)}\s*:\s*(\w+)", text)
        known = catalog.find(found[-1]) if found else None
        kinds = [known] if known is not None else list(catalog.types)
        system = ["@id", *(("@src", "@dst") if isinstance(known, EdgeType) else ())]
        return [*dict.fromkeys(p.name for kind in kinds for p in kind.properties), *system]


def _traversed(name: str) -> str:
    """An edge type as queries write it: `WorksAt` becomes `worksAt`."""
    return name[:1].lower() + name[1:]


def _starting(word: str, names: Sequence[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name.startswith(word)]


def _options(line: str) -> list[str]:
    """The options of the command that a `\\` line begins with."""
    from omnigraph.cli.commands.completion import options_of

    try:
        words = shlex.split(line[1:])
    except ValueError:
        return []
    for size in (2, 1):
        if tuple(words[:size]) in COMMANDS:
            return options_of(tuple(words[:size]))
    return []
