"""Owns what a model may read without a tool: resources of a graph, and prompts to begin with."""

from __future__ import annotations

from urllib.parse import quote, unquote

import mcp_types as types

from omnigraph.engine.protocols import GraphLike
from omnigraph.errors import InvalidArgument, NotFound
from omnigraph.lang.card import language_card
from omnigraph.mcp.desk import Seat
from omnigraph.mcp.paging import list_of
from omnigraph.wire.rows import change_row, commit_row
from omnigraph.wire.values import json_text

SCHEME = "omnigraph://"
_TEXT, _JSON, _MARKDOWN = "text/plain", "application/json", "text/markdown"


def resources(g: GraphLike, seat: Seat) -> list[types.Resource]:
    base = f"{SCHEME}{seat.graph}"
    found = [
        types.Resource(uri=f"{base}/schema", name="schema", mime_type=_TEXT,
                       description="all types, in few characters"),
        types.Resource(uri=f"{base}/queries", name="queries", mime_type=_TEXT,
                       description="the stored queries"),
        types.Resource(uri=f"{base}/language", name="language", mime_type=_MARKDOWN,
                       description="the query language on one page"),
    ]  # fmt: skip
    types_ = (
        types.Resource(uri=f"{base}/schema/{quote(name)}", name=name, mime_type=_TEXT)
        for name in g.types()
    )
    return [*found, *types_]


def templates(seat: Seat) -> list[types.ResourceTemplate]:
    base = f"{SCHEME}{seat.graph}"
    return [
        types.ResourceTemplate(uri_template=f"{base}/schema/{{type}}", name="type", mime_type=_TEXT,
                               description="one type with its properties"),
        types.ResourceTemplate(uri_template=f"{base}/commits/{{id}}", name="commit",
                               mime_type=_JSON, description="a commit and what it changed"),
    ]  # fmt: skip


def read(g: GraphLike, uri: str, seat: Seat) -> types.TextResourceContents:
    base = f"{SCHEME}{seat.graph}/"
    if not uri.startswith(base):
        raise NotFound(f"There is no resource {uri!r}.", help=f"Resources begin with {base}.")
    parts = [unquote(part) for part in uri.removeprefix(base).split("/")]
    match parts:
        case ["schema"]:
            return _text(uri, g.describe(characters=16_000))
        case ["schema", name]:
            return _text(uri, g.describe(types=[name], characters=16_000))
        case ["queries"]:
            texts = (f"// {name}\n{one.text}" for name, one in g.queries().items())
            return _text(uri, "\n".join(texts))
        case ["language"]:
            return types.TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=language_card())
        case ["commits", id]:
            return types.TextResourceContents(uri=uri, mime_type=_JSON, text=_commit(g, id))
    raise NotFound(f"There is no resource {uri!r}.", help=f"There is {base}schema.")


def _text(uri: str, text: str) -> types.TextResourceContents:
    return types.TextResourceContents(uri=uri, mime_type=_TEXT, text=text)


def _commit(g: GraphLike, id: str) -> str:
    at = g.at(id)
    parents = at.commit.parents
    changes = at.diff(parents[0]) if parents else ()
    listed = list_of((change_row(one) for one in changes), id, "", 0, None)
    told = commit_row(at.commit) | {"changes": listed.items, "truncated": listed.truncated}
    return json_text(told)


_EXPLORE = (
    "Look at the graph {graph}: call the tool schema, then ask one or two queries for each type "
    "that matters, and tell in a few sentences what is in it and how it hangs together."
)
_WRITE = (
    "Write a .gq query for the graph {graph} that answers: {question}\n"
    "Call the tools schema and language first, then query; a wrong query comes back with what was "
    "probably meant. A query is `match {{ … }} return {{ … }} order {{ … }} limit n`. Answer from "
    "the rows, and show the query."
)
_REVIEW = (
    "Review the branch {branch} of the graph {graph}: call log with its ref, diff with new = "
    "{branch}, and merge_preview with source = {branch}. Tell who did what and why, what looks "
    "wrong, and whether it should be merged."
)
PROMPTS: dict[str, tuple[str, tuple[tuple[str, str], ...], str]] = {
    "explore": ("Get to know this graph.", (), _EXPLORE),
    "write_query": (
        "Write a query that answers a question.",
        (("question", "what is to be answered"),),
        _WRITE,
    ),
    "review_branch": (
        "Review what an agent did on its branch.",
        (("branch", "such as agent/eve"),),
        _REVIEW,
    ),
}
"""By name: what it is for, its arguments, and the text."""


def prompts() -> list[types.Prompt]:
    return [
        types.Prompt(
            name=name,
            description=words,
            arguments=[
                types.PromptArgument(name=key, description=about, required=True)
                for key, about in arguments
            ],
        )
        for name, (words, arguments, _) in PROMPTS.items()
    ]


def prompt(name: str, given: dict[str, str], seat: Seat) -> types.GetPromptResult:
    if name not in PROMPTS:
        known = ", ".join(PROMPTS)
        raise InvalidArgument(f"There is no prompt {name!r}.", help=f"There are {known}.")
    words, arguments, text = PROMPTS[name]
    for key, about in arguments:
        if not given.get(key):
            raise InvalidArgument(f"The prompt {name} needs {key}: {about}.")
    filled = text.format(graph=seat.graph, **{key: given[key] for key, _ in arguments})
    message = types.PromptMessage(role="user", content=types.TextContent(text=filled))
    return types.GetPromptResult(description=words, messages=[message])
