"""Owns the command `embed`, which gives vectors to texts that lack them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import NO_FLAGS, Cli, CommitFlags, DryRun, Limit, OnBranch, Yes
from omnigraph.cli.colours import Paint
from omnigraph.cli.engines import Conf, Engine, Master, here_or_spark, started
from omnigraph.cli.progress import progress_bar
from omnigraph.cli.value_text import count_text
from omnigraph.errors import InvalidArgument
from omnigraph.wire.values import plain

if TYPE_CHECKING:
    from omnigraph.cli.invocation import Invocation
    from omnigraph.engine.vectors.result import Embedded, EmbeddedProperty, EmbedProgress

_SHOWN = 5
_SOME_REFUSED = 1


def embed(
    what: Annotated[
        str | None,
        Parameter(help="a type, or one property as TYPE.PROPERTY; all that have @embed without it"),
    ] = None,
    /,
    *,
    branch: OnBranch = "main",
    limit: Limit = None,
    batch: Annotated[
        int | None, Parameter(help="how many texts to send to the provider at once")
    ] = None,
    commit_every: Annotated[int, Parameter(help="commit after this many texts")] = 10_000,
    one_commit: Annotated[bool, Parameter(negative=(), help="one commit in all")] = False,
    engine: Engine = "auto",
    master: Master = None,
    conf: Conf = (),
    yes: Yes = False,
    dry_run: DryRun = False,
    flags: CommitFlags = NO_FLAGS,
    cli: Cli,
) -> int:
    """Embed the texts whose vector is missing, or was made null because the text changed.

    The schema says which property a vector comes from, and by which model: @embed("text") in this
    process, @embed("text", model="openai:NAME") by an endpoint (OMNIGRAPH_EMBED_URL) with a key
    (OMNIGRAPH_EMBED_KEY, or OPENAI_API_KEY). Before it asks an endpoint it shows how much it is.
    A run that died goes on when it is started again. The exit code is 1 if a text was refused.

    Examples:
        omnigraph embed --dry-run
        omnigraph embed Paper.abstract_vector --yes
        omnigraph embed Paper --limit 1000 --one-commit -m "the first thousand"
    """
    kind, dot, vector = (what or "").partition(".")
    if what is not None and not (kind and bool(vector) == bool(dot)):
        raise InvalidArgument(
            f"{what!r} is neither a type nor a property.", help="Write Paper, or Paper.v."
        )
    named = (kind or None, vector or None)
    if dry_run:
        with cli.reading() as g:
            show(g.branch(branch).embed(*named, dry_run=True), cli, dry_run=True)
        return 0
    with cli.writing(branch) as g:
        if not _agreed(g.branch(branch).embed(*named, dry_run=True), limit, yes, cli):
            cli.out.warn("Nothing was changed.")
            return 1
        cli.half_done = "What is committed stays; run it again to go on."
        with progress_bar(cli.out) as report, started(cli.out, engine, master, conf) as chosen:

            def tell(progress: EmbedProgress) -> None:
                doing = f"embedding {progress.type}.{progress.property}"
                report(progress.done, progress.texts, doing)

            done = g.branch(branch).embed(
                *named,
                limit=limit,
                batch=batch,
                commit_every=None if one_commit else commit_every,
                engine=here_or_spark(chosen),
                progress=tell,
                **flags.words(cli),
            )
        cli.half_done = None
    show(done, cli, dry_run=False)
    return _SOME_REFUSED if done.refusals else 0


def _agreed(planned: Embedded, limit: int | None, yes: bool, cli: Invocation) -> bool:
    """Asks the user first if the run may cost money."""
    if not planned.paid:
        return True
    paid = [one for one in planned.properties if one.paid and one.texts]
    texts, tokens = sum(one.texts for one in paid), sum(one.tokens for one in paid)
    models = ", ".join(dict.fromkeys(one.model for one in paid))
    at_most = "" if limit is None else f", at most {limit:,} of them now"
    told = f"{count_text(texts, 'text')} (about {count_text(tokens, 'token')}{at_most})"
    return cli.out.confirm(f"{told} will be sent to {models}.", yes=yes)


def show(done: Embedded, cli: Invocation, *, dry_run: bool) -> None:
    row = {
        "branch": done.branch,
        "dry_run": dry_run,
        "texts": done.texts,
        "tokens": done.tokens,
        "embedded": done.embedded,
        "refused": done.refusals,
        "properties": [plain(one) for one in done.properties],
        "commits": [commit.id for commit in done.commits],
        "repeated": done.repeated,
    }
    cli.out.value(row, lambda paint: _lines(done, dry_run, paint))
    for one in done.properties:
        _note_refused(one, cli)


def _lines(done: Embedded, dry_run: bool, paint: Paint) -> Iterator[str]:
    if done.repeated:
        yield f"It was done before, in commit {paint('cyan', done.commits[0].id)}."
        return
    if not done.properties:
        yield "The schema has no vector with @embed."
        return
    for one in done.properties:
        yield _line(one, dry_run, paint)
    if done.commits:
        listed = ", ".join(paint("cyan", commit.id) for commit in done.commits[-_SHOWN:])
        more = len(done.commits) - _SHOWN
        before = f"{count_text(more, 'commit')} and " if more > 0 else ""
        noun = "commit" if len(done.commits) == 1 else "commits"
        yield f"Embedded into {done.branch} in {before}{noun} {listed}."
    elif not dry_run:
        yield "No commit was made."


def _line(one: EmbeddedProperty, dry_run: bool, paint: Paint) -> str:
    name = paint("bold", f"{one.type}.{one.property}")
    if not one.texts:
        return f"{name}: nothing waits ({one.model})"
    told = f"{count_text(one.texts, 'text')}, about {count_text(one.tokens, 'token')}"
    if dry_run:
        return f"{name}: {told} wait for {one.model}"
    return f"{name}: {one.embedded:,} of {told}, by {one.model}"


def _note_refused(one: EmbeddedProperty, cli: Invocation) -> None:
    if not one.refusals:
        return
    cli.out.note(f"{count_text(one.refusals, 'text')} of {one.type}.{one.property} refused:")
    for text in one.refused[:_SHOWN]:
        cli.out.note(f"  {text.id}  {text.reason}")
    if one.refusals > _SHOWN:
        cli.out.note(f"  … {one.refusals - _SHOWN:,} more")
