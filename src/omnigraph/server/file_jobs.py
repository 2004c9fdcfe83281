"""Owns the work of jobs that need files: loads of a body that was sent, loads and exports of files
below the directories that the server allows."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from omnigraph.engine.graph import Graph
from omnigraph.engine.load.progress import LoadProgress
from omnigraph.engine.load.result import LoadResult
from omnigraph.engine.upkeep.jobs import GraphJob, JobContext, Work
from omnigraph.errors import Denied, InvalidArgument
from omnigraph.server.limits import ServerLimits
from omnigraph.server.routing import too_large
from omnigraph.wire.rows import lineage_of
from omnigraph.wire.values import plain

_PIECE = 1 << 20
_WEEK = 7 * 24 * 3600.0
_REJECT_BYTES = 400_000
"""A job is one small object; of more rejected rows only the number is told."""
_MEMBERS = 10_000
_WORD = re.compile(r"[A-Za-z0-9_]{0,255}")


class Spooled(os.PathLike[str]):
    """A file of a body. It is the same source as another one with the same content."""

    def __init__(self, path: Path, digest: str) -> None:
        self._path = path
        self.content_digest = digest

    def __str__(self) -> str:
        return str(self._path)

    def __fspath__(self) -> str:
        return str(self._path)


def load_row(done: LoadResult, rejects: int) -> dict[str, Any]:
    rejected = done.rejected_rows()
    return {
        "branch": done.branch,
        "mode": done.mode,
        "counts": {name: plain(counts) for name, counts in done.counts.items()},
        "commit": done.commit_id,
        "engine": done.engine,
        "rejected": rejected.num_rows,
        "rejects": plain(rejected.slice(0, rejects).to_pylist()),
        "repeated": done.repeated,
        "reason": done.reason,
        "advice": list(done.advice),
        "lineage": lineage_of(done.commit),
    }


# Bodies


def unpack(source: Path, target: Path, coding: str, limits: ServerLimits) -> None:
    """Unpacks a body, if what comes out is no larger than a body may be."""
    size = 0
    try:
        with (
            pa.OSFile(str(source)) as packed,
            pa.CompressedInputStream(packed, coding) as stream,
            target.open("wb") as file,
        ):
            while part := stream.read(_PIECE):
                size += len(part)
                if size > limits.load_bytes:
                    raise too_large("load_bytes", limits.load_bytes, size)
                file.write(part)
    except (pa.ArrowException, OSError) as error:
        raise InvalidArgument(f"The body cannot be unpacked by {coding}: {error}.") from None


@dataclass(frozen=True)
class BodyFiles:
    """The files that a body holds, and the type of their rows if all have one."""

    files: list[Spooled]
    type: str | None = None

    @property
    def source(self) -> Any:
        return self.files if len(self.files) != 1 else self.files[0]


def files_of(body: Path, digest: str, coding: str | None, limits: ServerLimits) -> BodyFiles:
    """A body itself, unpacked, or the files of an archive in their order."""
    path = body
    if coding is not None:
        path = body.with_name(f"unpacked{body.suffix}")
        unpack(body, path, coding, limits)
    if path.suffix != ".tar":
        return BodyFiles([Spooled(path, digest)])
    return _members(path, digest)


def _members(archive: Path, digest: str) -> BodyFiles:
    """The files of an archive are called `0001.Type.form`, as the client calls them. Nothing of
    their names is used but the type and the form."""
    found: list[Spooled] = []
    types: set[str] = set()
    try:
        with tarfile.open(archive, "r:") as held:
            for number, member in enumerate(held):
                parts = member.name.split(".")
                file = held.extractfile(member) if member.isreg() else None
                if file is None or len(parts) < 3 or number >= _MEMBERS:
                    raise InvalidArgument(
                        f"An archive holds at most {_MEMBERS:,} files, called 0001.Type.form."
                    )
                plain_name = "/" not in member.name and parts[0].isdecimal()
                if not plain_name or not all(_WORD.fullmatch(part) for part in parts[1:]):
                    raise InvalidArgument(f"{member.name[:60]!r} is no name of a file to load.")
                folder = archive.parent / f"{number:05}"
                folder.mkdir()
                path = folder / ".".join([parts[1] or "rows", *parts[2:]])
                with path.open("wb") as target:
                    shutil.copyfileobj(file, target, _PIECE)
                found.append(Spooled(path, f"{digest}:{number}"))
                types.add(parts[1])
    except tarfile.TarError as error:
        raise InvalidArgument(f"The archive cannot be read: {error}.") from None
    return BodyFiles(found, next(iter(types)) or None if len(types) == 1 else None)


# Where the bodies of jobs are


def spool_of(id: str) -> Path:
    """The folder of the body of a job on this machine: another process of this user finds it,
    should this one die."""
    place = Path(tempfile.gettempdir()) / f"omnigraph-jobs-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    told = place.lstat()
    if not stat.S_ISDIR(told.st_mode) or told.st_uid != os.getuid() or told.st_mode & 0o077:
        raise Denied(f"{place} is not a directory of this user alone.")
    return place / id


def body_of(job: GraphJob) -> Path:
    """The body of one call: another one with the key of this has a body of its own."""
    told = msgspec.json.encode(job.arguments, order="sorted")
    name = hashlib.sha256(told).hexdigest()[:32]
    return spool_of(job.id) / f"{name}{job.arguments['upload']['suffix']}"


def keep_body(body: Path, job: GraphJob) -> None:
    """Moves a body to the place of its job."""
    kept = body_of(job)
    kept.parent.mkdir(exist_ok=True)
    shutil.move(body, kept)


def drop_body(job: GraphJob) -> None:
    if "upload" in job.arguments:
        body = body_of(job)
        body.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # another call has a body there
            body.parent.rmdir()


def drop_old_bodies() -> None:
    """What processes left that were never followed by another one."""
    for folder in spool_of("x").parent.iterdir():
        with contextlib.suppress(FileNotFoundError):  # its job has just ended
            if folder.stat().st_mtime < time.time() - _WEEK:
                shutil.rmtree(folder, ignore_errors=True)


# The work


def load_work(
    graph: Graph, job: GraphJob, sources: tuple[str, ...], limits: ServerLimits
) -> Work | None:
    """None if the body was sent to another machine."""
    given = dict(job.arguments)
    upload = given.pop("upload", None)
    if upload is None:
        files = allowed_files(given.pop("uri", None), sources)
        return lambda context: _load(graph, context, files, given)
    body = body_of(job)
    if not body.is_file() or digest_of(body) != upload["digest"]:
        return None

    def work(context: JobContext) -> Mapping[str, Any]:
        with tempfile.TemporaryDirectory(prefix="omnigraph-load-") as held:
            link = Path(held) / f"body{body.suffix}"
            link.symlink_to(body)
            found = files_of(link, upload["digest"], upload["coding"], limits)
            typed = given if given.get("type") else given | {"type": found.type}
            return _load(graph, context, found.files, typed)

    return work


def _load(
    graph: Graph, context: JobContext, files: Sequence[Any], given: Mapping[str, Any]
) -> Mapping[str, Any]:
    def tell(one: LoadProgress) -> None:
        context.progress(one.rows, one.total_rows, one.stage)

    begins, name = given.get("from"), given.get("branch") or "main"
    done = graph.branch("main" if begins is not None else name).load(
        list(files) if len(files) > 1 else files[0],
        type=given.get("type"),
        mode=given.get("mode") or "append",
        new_branch=None if begins is None else name,
        ref=begins,
        on_error=given.get("on_error") or "abort",
        engine=given.get("engine") or "auto",
        job=context.job.id,
        progress=tell,
        message=given.get("message"),
        if_commit=given.get("if_commit"),
    )
    told = load_row(done, 10_000)
    told["rejects"] = _bounded(told["rejects"])
    return told


def _bounded(rows: list[Any]) -> list[Any]:
    left, kept = _REJECT_BYTES, []
    for row in rows:
        left -= len(str(row))
        if left < 0:
            break
        kept.append(row)
    return kept


def export_work(graph: Graph, job: GraphJob, sources: tuple[str, ...]) -> Work:
    given = dict(job.arguments)
    target = _allowed(given.get("uri"), sources)

    def work(context: JobContext) -> Mapping[str, Any]:
        context.progress(0, None, "exporting")
        done = graph.at(given.get("ref") or "main").export(
            types=given.get("types"),
            format=given.get("format") or "jsonl",
            to=target,
            overwrite=bool(given.get("overwrite")) or context.job.run > 0,  # what a lost run left
        )
        files = [str(one) for one in done.files]
        return {"commit": done.commit, "counts": dict(done.counts), "files": files}

    return work


def allowed_files(given: Any, sources: tuple[str, ...]) -> list[Path]:
    """The files below the sources that are named: a file, a directory, or several."""
    named = given if isinstance(given, list) else [given]
    if not named:
        raise InvalidArgument("The job does not say which files: uri.")
    found: list[Path] = []
    for one in named:
        path = _allowed(one, sources)
        inside = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
        found += [_allowed(str(file), sources) for file in inside]
    for file in found:
        if file.suffix == ".toml":
            raise InvalidArgument("A server loads no mapping.")
        if not file.is_file():
            raise InvalidArgument("There is no such file below the sources of the server.")
    return found


def _allowed(given: Any, sources: tuple[str, ...]) -> Path:
    """A path below a source, whatever links lead there."""
    if not isinstance(given, str) or not given or "\0" in given:
        raise InvalidArgument("uri names a file below the sources of the server.")
    path = Path(os.path.realpath(given.removeprefix("file://")))
    for source in sources:
        if path.is_relative_to(os.path.realpath(source)):
            return path
    raise Denied(
        "The server reads and writes files only below its sources, and this is none of them.",
        help="Send the file as the body of a load, or let an operator add it to `sources`.",
    )


def digest_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(_PIECE):
            digest.update(part)
    return digest.hexdigest()
