"""Owns the command `load`, which brings files and streams in as one commit."""

from __future__ import annotations

import glob
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from omnigraph.cli.arguments import NO_FLAGS, Cli, CommitFlags, Embed, OnBranch
from omnigraph.cli.colours import Paint
from omnigraph.cli.engines import Conf, Engine, Master, started
from omnigraph.cli.paths import STDIN, unwritable
from omnigraph.cli.progress import progress_bar
from omnigraph.cli.value_text import count_text
from omnigraph.cli.views.changes import count_lines
from omnigraph.errors import InvalidArgument, NotFound
from omnigraph.wire.values import json_text, plain

if TYPE_CHECKING:
    from omnigraph.cli.invocation import Invocation
    from omnigraph.engine.load.progress import LoadProgress
    from omnigraph.engine.load.result import LoadResult

_SHOWN = 5
_SMALL = 64 << 20
_LONGEST_LINE = 16 << 20
_REJECTED = {"source", "line", "reason", "row"}
"""How much of a rejected row one line shows."""


def load(
    *files: Annotated[
        str,
        Parameter(
            help="files, directories or patterns: .jsonl, .csv, .parquet, .arrow; - is stdin"
        ),
    ],
    type: Annotated[
        str | None,
        Parameter(name=["--type", "-t"], help="what the rows are; else the name of the file"),
    ] = None,
    mode: Annotated[
        Literal["append", "merge", "overwrite"],
        Parameter(help="refuse ids that exist, change them, or replace whole types"),
    ] = "append",
    branch: OnBranch = "main",
    from_: Annotated[
        str | None,
        Parameter(name=["--from", "-f"], help="create the branch from this ref first"),
    ] = None,
    mapping: Annotated[
        str | None, Parameter(help="a TOML file that names types, files and columns")
    ] = None,
    on_error: Annotated[
        Literal["abort", "quarantine"],
        Parameter(help="stop at rows that are wrong, or set them aside and load the rest"),
    ] = "abort",
    rejected: Annotated[
        str | None, Parameter(help="write the rejected rows to this .jsonl file")
    ] = None,
    job: Annotated[
        str | None,
        Parameter(help="a name of your own: run again, a load that died goes on, once"),
    ] = None,
    embed: Embed = False,
    engine: Engine = "auto",
    master: Master = None,
    conf: Conf = (),
    flags: CommitFlags = NO_FLAGS,
    cli: Cli,
) -> None:
    """Bring entities in from files, as one commit or not at all.

    A line of a .jsonl file is {"type": "Person", "data": {…}} or {"edge": "Knows", "from": "a",
    "to": "b", "data": {…}}. CSV and Parquet files hold one type each, named like the file.

    Examples:
        omnigraph load people.jsonl --as ada -m "first people"
        omnigraph load Person.csv Knows.csv --mode merge
        omnigraph load data/ --branch import --from main
        omnigraph load rows.jsonl --on-error quarantine --rejected bad.jsonl
        omnigraph load s3-dump/ --master spark://host:7077 --conf spark.executor.memory=8g
    """
    source = _source(files, mapping, cli)
    if rejected is not None:
        _refuse_input(rejected, files, mapping)
        _refuse_loss(rejected, cli)
        _try_to_write(rejected)
    with progress_bar(cli.out) as report:

        def tell(progress: LoadProgress) -> None:
            doing = _doing(progress)
            if progress.tasks:
                report(progress.tasks_done, progress.tasks, doing)
            else:
                report(progress.bytes, progress.total_bytes, doing)

        brief = _is_small(files, mapping)
        with (
            cli.writing(branch) as g,
            started(cli.out, engine, master, conf, brief=brief) as chosen,
        ):
            done = (g if from_ is not None else g.branch(branch)).load(
                source,
                type=type,
                mode=mode,
                new_branch=None if from_ is None else branch,
                ref=from_,
                mapping=mapping,
                on_error=on_error,
                engine=chosen,
                job=job,
                progress=tell,
                embed=embed,
                **flags.words(cli),
            )
    if rejected is not None:
        _write_rejected(done, rejected)
    cli.out.value(_row(done), lambda paint: _lines(done, paint))
    if done.engine != "local":
        cli.out.note(f"It ran on {done.engine}: {done.reason}.")
    for advice in done.advice:
        cli.out.note(advice)
    _note_rejected(done, rejected, cli)


def _doing(progress: LoadProgress) -> str:
    """The stage, with the numbers of rows and the rate where they are known. On Spark they count
    finished tasks."""
    words = [progress.stage]
    if progress.total_rows:
        words.append(f"{progress.rows:,} of {count_text(progress.total_rows, 'row')}")
    elif progress.rows or not progress.tasks:
        words.append(count_text(progress.rows, "row"))
    if progress.rate is not None:
        words.append(f"{progress.rate:,.0f} rows/s")
    if progress.tasks:
        words.append(f"{progress.tasks_done} of {count_text(progress.tasks, 'task')}")
    return ", ".join(words)


def _source(files: tuple[str, ...], mapping: str | None, cli: Invocation) -> Any:
    if mapping is not None and len(files) > 1:
        raise InvalidArgument("With --mapping give one directory, that of its files.")
    for path in (*files, *((mapping,) if mapping else ())):
        if path != STDIN and not Path(path).exists() and not glob.has_magic(path):
            raise NotFound(f"There is no file {path}.")
    if mapping is not None:
        return files[0] if files else None
    if not files:
        raise InvalidArgument("What is to be loaded? No file was given.")
    if STDIN in files:
        if len(files) > 1:
            raise InvalidArgument("Stdin is loaded alone, not with files.")
        stdin = cli.out.streams.stdin
        return io.BytesIO(stdin.read().encode()) if isinstance(stdin, io.StringIO) else stdin
    return list(files)


def _is_small(files: tuple[str, ...], mapping: str | None) -> bool:
    """Whether reading the whole input takes less time than starting Spark."""
    total = 0
    for path in map(Path, files):
        held = [path] if path.is_file() else list(path.glob("*")) if path.is_dir() else None
        if held is None:
            return False  # a stream, or a pattern
        total += sum(file.stat().st_size for file in held if file.is_file())
    return mapping is None and total < _SMALL


def _row(done: LoadResult) -> dict[str, Any]:
    return {
        "branch": done.branch,
        "mode": done.mode,
        "commit": done.commit_id,
        "types": {name: plain(counts) for name, counts in done.counts.items()},
        "repeated": done.repeated,
        "rejected": len(done.rejected),
        "embedded": done.embedded,
        "engine": done.engine,
        "reason": done.reason,
        "advice": list(done.advice),
    }


def _lines(done: LoadResult, paint: Paint) -> Iterator[str]:
    if done.repeated:
        yield f"It was loaded before, in commit {paint('cyan', str(done.commit_id))}."
        return
    yield from count_lines(done.counts, paint)
    if done.commit_id is None:
        yield "There was nothing to load; no commit was made."
    else:
        yield f"Loaded into {done.branch} in commit {paint('cyan', done.commit_id)}."
    if done.embedded:
        yield f"{count_text(done.embedded, 'text')} embedded after it."


def _write_rejected(done: LoadResult, path: str) -> None:
    try:
        with Path(path).open("w", encoding="utf-8") as file:
            file.writelines(f"{json_text(reject)}\n" for reject in done.rejected)
    except OSError as error:
        told = unwritable(path, error)
        told.hint = f"The data is loaded, in commit {done.commit_id}."
        raise told from None


def _refuse_input(path: str, files: tuple[str, ...], mapping: str | None) -> None:
    """The file of rejected rows must not overwrite the input."""
    place = Path(path)
    if not place.exists():
        return
    read = [] if mapping is None else [Path(mapping), *Path(mapping).parent.glob("*")]
    for name in files:
        found = map(Path, glob.glob(name, recursive=True) if glob.has_magic(name) else [name])  # noqa: PTH207
        for one in found:
            read += [one, *one.glob("*")] if one.is_dir() else [one]
    if any(one.exists() and one.samefile(place) for one in read):
        raise InvalidArgument(
            f"--rejected {path} is one of the files to load.", help="Name another file."
        )


def _refuse_loss(path: str, cli: Invocation) -> None:
    """Overwrites only files of rejected rows: the user has agreed to no more."""
    from omnigraph.engine.export import refuse_address, refuse_place_in_graph
    from omnigraph.store.roots import parse_root

    refuse_address(path)
    place = Path(path)
    refuse_place_in_graph(parse_root(cli.root).directory, place)
    if not place.is_file():
        return
    try:
        with place.open("rb") as file:
            first = file.readline(_LONGEST_LINE)
        told = json.loads(first) if first.strip() else dict.fromkeys(_REJECTED)
    except (OSError, ValueError, RecursionError):
        told = None
    if not (isinstance(told, dict) and told.keys() >= _REJECTED):
        raise InvalidArgument(
            f"--rejected {path} exists already and does not contain rejected rows.",
            help="Nothing was changed; name another file.",
        )


def _try_to_write(path: str) -> None:
    """Finds out early whether rejected rows can be written, not after the load."""
    try:
        with Path(path).open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise unwritable(path, error) from None


def _note_rejected(done: LoadResult, path: str | None, cli: Invocation) -> None:
    if not done.rejected:
        return
    where = f", see {path}" if path else "; --rejected FILE keeps them"
    cli.out.note(f"{count_text(len(done.rejected), 'row')} rejected{where}:")
    for reject in done.rejected[:_SHOWN]:
        cli.out.note(f"  {reject.source}:{reject.line}  {reject.reason}")
    if len(done.rejected) > _SHOWN:
        cli.out.note(f"  … {len(done.rejected) - _SHOWN:,} more")
