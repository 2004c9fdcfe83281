"""Owns the table of commands: which there are, in what order help shows them, and which module has
each.

A command's module is imported only when the command is called, so help is instant.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.cli.options import NAMES
from omnigraph.errors import InvalidArgument
from omnigraph.lang.suggestions import near


@dataclass(frozen=True)
class Command:
    """`module` is below `omnigraph.cli.commands`; the function is named by the last word of the
    command."""

    words: tuple[str, ...]
    summary: str
    module: str
    function: str

    @property
    def name(self) -> str:
        return " ".join(self.words)


def _command(name: str, summary: str, module: str, function: str | None = None) -> Command:
    words = tuple(name.split())
    return Command(words, summary, module, function or words[-1])


SECTIONS: tuple[tuple[str, tuple[Command, ...]], ...] = (
    (
        "Begin",
        (
            _command("init", "Create a graph from a schema", "init"),
            _command("stats", "Show what is in the graph", "stats"),
            _command("shell", "Talk to the graph", "shell"),
            _command("web", "Look at the graph in the browser", "web"),
            _command("serve", "Serve graphs over HTTP", "serve"),
            _command("login", "Keep your token for a server", "login"),
            _command("logout", "Forget your token for a server", "login"),
            _command("whoami", "Show who a server takes you for", "login"),
            _command("mcp", "Give a model tools for the graph", "mcp"),
            _command("version", "Print the version of the program", "init"),
            _command("completion", "Print a completion script for your shell", "completion"),
        ),
    ),
    (
        "Schema and files",
        (
            _command("schema show", "Print the schema, or one type of it", "schema"),
            _command("schema describe", "Print the schema in few characters", "schema"),
            _command("schema plan", "Show what applying a schema would do", "schema"),
            _command("schema apply", "Make a schema the accepted one", "schema", "apply_"),
            _command("schema fmt", "Bring .pg files into the one style", "fmt", "fmt_schema"),
            _command("schema lint", "Check .pg files", "fmt", "lint_schema"),
            _command("lint", "Check .gq and .pg files", "fmt"),
            _command("fmt", "Bring .gq and .pg files into the one style", "fmt"),
        ),
    ),
    (
        "Data",
        (
            _command("load", "Bring entities in from files", "load"),
            _command("export", "Write what is in the graph to files", "export"),
            _command("query", "Ask the graph a question", "query"),
            _command("search", "Find entities by words or meaning", "search"),
            _command("mutate", "Insert, update and delete, as one commit", "mutate"),
            _command("embed", "Give texts their vectors", "embed"),
            _command("check", "Show the mistakes in a query", "query"),
            _command("explain", "Show how a query is answered", "query"),
            _command("queries list", "List the stored queries", "queries", "list_"),
            _command("queries show", "Print the text of a stored query", "queries"),
            _command("queries set", "Store queries under their names", "queries", "set_"),
            _command("queries remove", "Remove stored queries", "queries"),
            _command("queries run", "Run a stored query by its name", "queries"),
            _command("algo", "Rank, group and measure the nodes", "algo"),
        ),
    ),
    (
        "Branches",
        (
            _command("branch create", "Start a branch", "branch", "create"),
            _command("branch list", "List branches", "branch", "list_"),
            _command("branch delete", "Delete a branch", "branch", "delete"),
            _command("merge", "Bring the changes of one branch into another", "merge"),
            _command("review", "Show what was done on a branch, and merge it", "review"),
            _command("diff", "Show what leads from one ref to another", "diff"),
            _command("tag create", "Give a commit a name that stays", "tag", "create"),
            _command("tag list", "List tags", "tag", "list_"),
            _command("tag delete", "Delete a tag", "tag", "delete"),
            _command("protect", "Close a branch to direct writes", "branch"),
            _command("unprotect", "Open a branch to direct writes again", "branch"),
        ),
    ),
    (
        "History",
        (
            _command("log", "Show commits, newest first", "log"),
            _command("show", "Show one commit and what it changed", "log"),
            _command("changes", "Tell what happened, commit by commit", "changes"),
            _command("snapshot", "Show the graph version that a ref names", "stats"),
            _command("entity", "Show one entity, now or at a ref", "entity"),
            _command("history", "Show the commits that changed one entity", "entity"),
            _command("blame", "Show which commit last set each property", "entity"),
            _command("restore", "Make a branch what it was at a ref", "restore"),
            _command("revert", "Undo what one commit did", "restore"),
        ),
    ),
    (
        "Operate",
        (
            _command("optimize", "Rewrite small fragments, build indexes", "optimize"),
            _command("cleanup", "Delete what is old and what nothing needs", "upkeep"),
            _command("verify", "Look for damage", "upkeep"),
            _command("copy", "Copy the graph to another place", "copy"),
            _command("delete", "Delete a graph for good", "copy"),
            _command("top", "Show what happens now", "top"),
            _command("jobs list", "List jobs, wherever they run", "jobs", "list_"),
            _command("jobs show", "Show one job", "jobs"),
            _command("jobs cancel", "Ask a job to stop", "jobs"),
            _command("recover list", "List long operations, also dead ones", "recover", "list_"),
            _command("recover resume", "Finish what an operation had staged", "recover"),
            _command("recover discard", "Give up what an operation had staged", "recover"),
            _command("upgrade", "Bring the graph to the newest format", "upkeep"),
            _command("token create", "Make a token for an actor", "token", "create"),
            _command("token list", "List tokens", "token", "list_"),
            _command("token revoke", "Take a token back", "token", "revoke"),
            _command("policy check", "Check policies against the graph", "policy"),
            _command("policy test", "Ask policies the questions of a file", "policy", "try_"),
            _command("policy explain", "Show what policies decide", "policy"),
        ),
    ),
)

COMMANDS: dict[tuple[str, ...], Command] = {
    command.words: command for _, commands in SECTIONS for command in commands
}

GROUPS: dict[tuple[str, ...], str] = {
    ("schema",): "Look at the schema and change it.",
    ("queries",): "Keep queries in the graph, and run them by name.",
    ("branch",): "Create, list and delete branches.",
    ("tag",): "Name commits for good.",
    ("jobs",): "Look at jobs of the graph, and stop them.",
    ("recover",): "Finish or give up operations that died.",
    ("token",): "Make tokens for actors, and take them back.",
    ("policy",): "Check, test and explain policies.",
}

_SAID_ELSEWHERE: dict[str, str] = {
    "add": "'omnigraph mutate' and 'omnigraph load' add entities.",
    "backup": "'omnigraph copy' makes a graph that is a backup.",
    "checkout": "There is none to check out: say --branch NAME to any command.",
    "clone": "'omnigraph copy' copies a graph.",
    "commit": "Every write is a commit: 'omnigraph mutate', 'omnigraph load'.",
    "compact": "'omnigraph optimize' folds small fragments.",
    "create": "'omnigraph init' creates a graph, 'omnigraph branch create' a branch.",
    "fsck": "'omnigraph verify' looks for damage.",
    "gc": "'omnigraph cleanup' deletes what is old.",
    "import": "'omnigraph load' brings files in.",
    "insert": "Write 'omnigraph mutate -e \"insert …\"'.",
    "ls": "'omnigraph stats' shows what is in the graph.",
    "match": "Write 'omnigraph query -e \"match …\"'.",
    "reset": "'omnigraph restore REF' makes a branch what it was.",
    "rollback": "'omnigraph restore REF' and 'omnigraph revert COMMIT' undo.",
    "switch": "There is none to switch to: say --branch NAME to any command.",
    "undo": "'omnigraph restore REF' and 'omnigraph revert COMMIT' undo.",
    "update": "Write 'omnigraph mutate -e \"update …\"'.",
    "vacuum": "'omnigraph cleanup' deletes what is old.",
}
"""Words that users of Git, SQL or other stores type first, and what they are called here."""


def find_command(words: list[str]) -> tuple[Command, list[str]]:
    """The command that the line begins with, and the rest of the line."""
    for size in (2, 1):
        command = COMMANDS.get(tuple(words[:size]))
        if command is not None:
            return command, words[size:]
    prefix = words[:1] if tuple(words[:1]) in GROUPS else []
    at = len(prefix)
    known = [path[at] for path in COMMANDS if list(path[:at]) == prefix and len(path) > at]
    said = " ".join(words[: at + 1])
    if words[at].startswith("-"):
        raise InvalidArgument(
            f"Unknown option: {words[at]}.", help=_meant_option(words[at], prefix)
        )
    raise InvalidArgument(f"There is no command {said!r}.", help=_meant(words[at], prefix, known))


def _meant(word: str, prefix: list[str], known: list[str]) -> str:
    """What the user probably meant."""
    if not prefix and word in _SAID_ELSEWHERE:
        return _SAID_ELSEWHERE[word]
    guess = near(word, known)
    if guess is not None:
        return f"Did you mean 'omnigraph {' '.join([*prefix, guess])}'?"
    if "create" in known:  # as in Git: `branch NAME`, `tag NAME`
        return f"Did you mean 'omnigraph {' '.join([*prefix, 'create', word])}'?"
    return f"'{' '.join(['omnigraph', *prefix])} --help' lists what there is."


def _meant_option(word: str, prefix: list[str]) -> str:
    guess = near(word, [*NAMES, "--version"])
    listed = f"'{' '.join(['omnigraph', *prefix])} --help' lists what there is."
    return f"Did you mean {guess}?" if guess else listed
