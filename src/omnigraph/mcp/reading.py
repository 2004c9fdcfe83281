"""Owns the tools that read."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from omnigraph.engine.protocols import GraphLike
from omnigraph.errors import EntityNotFound
from omnigraph.lang.card import language_card
from omnigraph.mcp.desk import SECONDS, Seat
from omnigraph.mcp.failures import told_diagnostics
from omnigraph.mcp.paging import Listed, RowPage, check_limit, list_of, rows_of
from omnigraph.mcp.tool import Arguments, Ref, Tool
from omnigraph.plan.digest import digest_values
from omnigraph.wire.cursors import read_cursor
from omnigraph.wire.rows import change_row, commit_row, merge_row, origin_row
from omnigraph.wire.values import plain

Limit = Annotated[int | None, msgspec.Meta(description="how many; 100 if left out, at most 1,000")]
Cursor = Annotated[
    str | None, msgspec.Meta(description="goes on after an answer that gave this cursor")
]
Text = Annotated[str, msgspec.Meta(description="a text of the query language .gq")]
Params = Annotated[dict[str, Any] | None, msgspec.Meta(description="values of its parameters")]


class SchemaArguments(Arguments, frozen=True, kw_only=True):
    types: Annotated[
        list[str] | None, msgspec.Meta(description="only these types, with all that is known")
    ] = None
    ref: Ref = "main"


class SchemaText(msgspec.Struct, frozen=True):
    text: str
    ref: str
    commit: str


def schema(g: GraphLike, asked: SchemaArguments, seat: Seat) -> SchemaText:
    at = g.at(asked.ref)
    return SchemaText(at.describe(types=asked.types, characters=16_000), asked.ref, at.commit.id)


class LanguageArguments(Arguments, frozen=True, kw_only=True):
    pass


class LanguageText(msgspec.Struct, frozen=True):
    text: str


def language(g: GraphLike, asked: LanguageArguments, seat: Seat) -> LanguageText:
    return LanguageText(language_card())


class QueryArguments(Arguments, frozen=True, kw_only=True):
    query: Text
    name: Annotated[
        str | None, msgspec.Meta(description="which query, if the text has several")
    ] = None
    params: Params = None
    ref: Ref = "main"
    limit: Limit = None
    cursor: Cursor = None


def query(g: GraphLike, asked: QueryArguments, seat: Seat) -> RowPage:
    of = digest_values(["mcp", seat.graph, asked.query, asked.name, asked.params])
    ref, offset = place_of(asked.ref, asked.cursor, of)
    found = g.at(ref).query(
        asked.query, asked.name, asked.params, timeout=SECONDS, memory_limit=seat.memory
    )
    return rows_of(found, asked.ref, of, offset, asked.limit)


def place_of(ref: str, cursor: str | None, of: str) -> tuple[str, int]:
    """A cursor goes on at the commit that its first page was of."""
    if cursor is None:
        return ref, 0
    found = read_cursor(cursor, of)
    return found.commit, found.offset


class ExplainArguments(Arguments, frozen=True, kw_only=True):
    query: Text
    name: str | None = None
    params: Params = None
    ref: Ref = "main"


class Explained(msgspec.Struct, frozen=True):
    plan: str


def explain(g: GraphLike, asked: ExplainArguments, seat: Seat) -> Explained:
    return Explained(g.at(asked.ref).explain(asked.query, asked.name, asked.params))


class CheckArguments(Arguments, frozen=True, kw_only=True):
    text: Text
    ref: Ref = "main"


class CheckAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`corrected` is what was probably meant, where that can be known."""

    ok: bool
    diagnostics: list[dict[str, Any]]
    corrected: str | None
    queries: list[dict[str, Any]]


def check(g: GraphLike, asked: CheckArguments, seat: Seat) -> CheckAnswer:
    found = g.at(asked.ref).check(asked.text)
    return CheckAnswer(
        ok=found.ok,
        diagnostics=told_diagnostics(found.diagnostics),
        corrected=found.corrected,
        queries=plain(found.queries),
    )


class EntityArguments(Arguments, frozen=True, kw_only=True):
    type: str
    id: Annotated[str, msgspec.Meta(description="its id: the key, or the id it was given")]
    ref: Ref = "main"
    blame: Annotated[
        bool, msgspec.Meta(description="also which commit last set each property, and why")
    ] = False


class EntityAnswer(msgspec.Struct, frozen=True, kw_only=True):
    entity: dict[str, Any]
    origins: list[dict[str, Any]] | None = None
    commit: str


def entity(g: GraphLike, asked: EntityArguments, seat: Seat) -> EntityAnswer:
    at = g.at(asked.ref)
    found = at.entity(asked.type, asked.id)
    if found is None:
        raise EntityNotFound(f"There is no {asked.type} {asked.id!r} at {asked.ref}.")
    origins = None
    if asked.blame:
        origins = [plain(origin_row(one)) for one in at.blame(asked.type, asked.id)]
    shown = list_of([found], at.commit.id, "", 0, 1).items[0]
    return EntityAnswer(entity=shown, origins=origins, commit=at.commit.id)


class LogArguments(Arguments, frozen=True, kw_only=True):
    ref: Ref = "main"
    limit: Limit = 20
    actor: str | None = None
    cursor: Cursor = None


def log(g: GraphLike, asked: LogArguments, seat: Seat) -> Listed:
    of = digest_values(["log", seat.graph, asked.ref, asked.actor])
    ref, offset = place_of(asked.ref, asked.cursor, of)
    at = g.at(ref)
    most = check_limit(asked.limit)
    commits = at.log(actor=asked.actor, limit=offset + most + 1)
    return list_of((commit_row(one) for one in commits), at.commit.id, of, offset, most)


class DiffArguments(Arguments, frozen=True, kw_only=True):
    old: Annotated[str, msgspec.Meta(description="the ref to compare with")] = "main"
    new: Annotated[str, msgspec.Meta(description="the ref whose changes are told")]
    types: list[str] | None = None
    limit: Limit = None
    cursor: Cursor = None


def diff(g: GraphLike, asked: DiffArguments, seat: Seat) -> Listed:
    of = digest_values(["diff", seat.graph, asked.old, asked.new, asked.types])
    pinned, offset = place_of("", asked.cursor, of)
    old, new = pinned.split("..") if pinned else (g.at(asked.old).commit.id, asked.new)
    at = g.at(new)
    found = at.diff(old, types=asked.types)
    pin = f"{old}..{at.commit.id}"
    return list_of((change_row(one) for one in found), pin, of, offset, asked.limit)


class BranchesArguments(Arguments, frozen=True, kw_only=True):
    pass


class Branches(msgspec.Struct, frozen=True):
    branches: list[str]
    yours: str


def branches(g: GraphLike, asked: BranchesArguments, seat: Seat) -> Branches:
    return Branches(g.branches(), seat.own)


class PreviewArguments(Arguments, frozen=True, kw_only=True):
    source: Annotated[str | None, msgspec.Meta(description="left out: your own branch")] = None
    into: str = "main"


class Preview(msgspec.Struct, frozen=True):
    """What a merge would do: `outcome`, changes by type, and every conflict."""

    merge: dict[str, Any]


def merge_preview(g: GraphLike, asked: PreviewArguments, seat: Seat) -> Preview:
    source = asked.source or seat.own
    done = g.branch(asked.into).merge(source, dry_run=True)
    row = merge_row(done, source, asked.into, dry_run=True)
    if done.outcome == "fast_forward":  # which compares nothing by itself
        row["changes"] = g.at(source).diff(asked.into).summary()
    return Preview(plain(row))


class SearchArguments(Arguments, frozen=True, kw_only=True):
    text: Annotated[str, msgspec.Meta(description="the words, or the meaning, to look for")]
    types: list[str] | None = None
    by: Annotated[
        Literal["words", "meaning", "both"],
        msgspec.Meta(description="meaning needs vectors with @embed in the schema"),
    ] = "words"
    limit: Annotated[int, msgspec.Meta(description="how many, best first")] = 10
    ref: Ref = "main"


def search(g: GraphLike, asked: SearchArguments, seat: Seat) -> RowPage:
    found = g.at(asked.ref).search(
        asked.text, types=asked.types, limit=check_limit(asked.limit), by=asked.by
    )
    return rows_of(found, asked.ref, "", 0, asked.limit)


TOOLS = (
    Tool("schema", "Show types with their properties, descriptions, counts and some values. "
         "Call it before you write a query.", SchemaArguments, SchemaText, schema),
    Tool("language", "Show the query language on one page, with examples. Call it before you write "
         "your first query.", LanguageArguments, LanguageText, language),
    Tool("query", "Ask a query in .gq, such as: match { $p: Person { name: \"Ada\" } $p knows $f } "
         "return { $f.name } order { $f.name } limit 10. Nothing is changed.",
         QueryArguments, RowPage, query, done="ask", needs="query"),
    Tool("search", "Find entities by words, or by meaning, in all texts: the best ones, with the "
         "passage that answers.", SearchArguments, RowPage, search, done="ask", needs="query"),
    Tool("explain", "Show how a query is answered, step by step, without running it.",
         ExplainArguments, Explained, explain, needs="query"),
    Tool("check", "Show every mistake in a query, and what was probably meant. Nothing runs.",
         CheckArguments, CheckAnswer, check),
    Tool("entity", "Show one entity with all its properties, and where they come from.",
         EntityArguments, EntityAnswer, entity),
    Tool("log", "List commits, newest first: who, when, why, how much.",
         LogArguments, Listed, log),
    Tool("diff", "List what changed from one ref to another, entity by entity.",
         DiffArguments, Listed, diff),
    Tool("branches", "List the branches, and tell which one is yours.",
         BranchesArguments, Branches, branches),
    Tool("merge_preview", "Show what merging a branch would do, and its conflicts. Nothing is "
         "changed.", PreviewArguments, Preview, merge_preview),
)  # fmt: skip
