"""Owns the handle on a graph on a server: its branch `main`, and what concerns the whole graph."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NoReturn, Self, Unpack

import msgspec

from omnigraph.arguments import checked_methods
from omnigraph.client.past import RemoteLog
from omnigraph.client.remote_branch import RemoteBranch
from omnigraph.client.remote_jobs import RemoteJobs
from omnigraph.client.remote_reads import read_log_words
from omnigraph.client.remote_snapshot import RemoteSnapshot
from omnigraph.client.served_graph import ServedGraph
from omnigraph.client.told import commit_of
from omnigraph.client.understanding import understanding
from omnigraph.client.upkeep import (
    RemoteRecovery,
    cleaned_of,
    run_job,
    verification_of,
)
from omnigraph.client.writing import RemoteWrite, landed, send, send_json
from omnigraph.engine.history.log import LogWords
from omnigraph.engine.upkeep.cleanup_report import Cleaned
from omnigraph.engine.upkeep.upgrade import FormatReport
from omnigraph.engine.upkeep.verify_report import Verification
from omnigraph.errors import BranchNotFound, Denied, NotRemote
from omnigraph.model.options import CommitWords
from omnigraph.model.permission import AskedAction
from omnigraph.model.version import Commit
from omnigraph.plan.retention import read_duration
from omnigraph.tracing import traced_methods

MAIN = "main"


@traced_methods(
    "create_branch",
    "delete_branch",
    "create_tag",
    "delete_tag",
    "protect",
    "unprotect",
    "cleanup",
    "verify",
)
@checked_methods
class RemoteGraph(RemoteBranch):
    """A graph on a server that is open: everything that a `RemoteBranch` can do, for the branch
    `main`, and what concerns the whole graph. It may be used from any number of threads."""

    @property
    def root(self) -> str:
        """The address of the graph."""
        return self._served.connection.address.uri

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the handle and those that came from it. Snapshots can still be read."""
        self._served.close()

    def __repr__(self) -> str:
        return f"RemoteGraph({self.root!r})"

    # Handles

    def at(self, ref: str) -> RemoteSnapshot:
        """The graph as it is at a ref, pinned for ever."""
        self._require_open()
        return RemoteSnapshot(self._served, self._served.schema_at(ref))

    @understanding()
    def branch(self, name: str) -> RemoteBranch:
        """The handle on a branch, which has to exist."""
        self._require_open()
        for one in self._served.items("/branches", page=1000):
            if one["name"] == name:
                return RemoteBranch(name, self._served.of_branch(name, one["incarnation"]))
        raise BranchNotFound(f"There is no branch {name!r}.")

    # Branches and tags

    @understanding()
    def may(self, action: AskedAction, branch: str = "main") -> bool:
        """Whether whoever has the token may do that to a branch."""
        told = self._served.get("/may", {"action": action, "branch": branch})
        return bool(told["allowed"])

    @understanding()
    def branches(self) -> list[str]:
        """The names of all branches."""
        self._require_open()
        return [one["name"] for one in self._served.items("/branches", page=1000)]

    def create_branch(self, name: str, ref: str = MAIN, **commit: Unpack[CommitWords]) -> Commit:
        """Starts a branch at a ref. Gives the commit that it starts at."""
        body = {"name": name, "from": ref}
        return self._named("/branches", ref, body, commit)

    def _named(self, path: str, ref: str, body: dict[str, Any], commit: CommitWords) -> Commit:
        options = self._signed(commit)
        sent = send_json(self._served, "POST", path, ref, body, options)
        with landed(sent):
            return commit_of(sent.told)

    def delete_branch(self, branch: Any, **commit: Unpack[CommitWords]) -> None:
        """Ends a branch, given by name or by its handle."""
        self._delete("/branches", self._of(branch), _name_of(branch), commit)

    def _of(self, branch: Any) -> ServedGraph:
        """A handle means its branch, and no other of the name."""
        return branch._served if isinstance(branch, RemoteBranch) else self._served  # noqa: SLF001

    def _delete(self, path: str, served: ServedGraph, name: str, commit: CommitWords) -> None:
        options = self._signed(commit)
        query = {"name": name, "message": options.message}
        send(
            served, RemoteWrite("DELETE", path, name, None, None, query, gone_is_done=True), options
        )

    @understanding()
    def protected_branches(self) -> list[str]:
        """The names of the branches that are closed to direct writes."""
        self._require_open()
        items = self._served.items("/branches", page=1000)
        return [one["name"] for one in items if one["protected"]]

    def protect(self, branch: Any, **commit: Unpack[CommitWords]) -> None:
        """Closes a branch to direct writes and to deletion; merges into it go on."""
        self._set_protection(branch, True, commit)

    def unprotect(self, branch: Any, **commit: Unpack[CommitWords]) -> None:
        """Opens a branch to direct writes again."""
        self._set_protection(branch, False, commit)

    def _set_protection(self, branch: Any, protected: bool, commit: CommitWords) -> None:
        options, body = self._signed(commit), {"protected": protected}
        served, name = self._of(branch), _name_of(branch)
        send_json(served, "PATCH", "/branches", name, body, options, {"name": name})

    @understanding()
    def tags(self) -> dict[str, Commit]:
        """The commits of all tags, by name."""
        self._require_open()
        items = self._served.items("/tags", page=1000)
        return {one["name"]: commit_of(one) for one in items}

    def create_tag(self, name: str, ref: str = MAIN, **commit: Unpack[CommitWords]) -> Commit:
        """Gives a commit a permanent name."""
        body = {"name": name, "from": ref}
        return self._named("/tags", ref, body, commit)

    def delete_tag(self, name: str, **commit: Unpack[CommitWords]) -> None:
        """Takes the name away. The commit stays."""
        self._delete("/tags", self._served, name, commit)

    def log(self, *, all: bool = False, **shown: Unpack[LogWords]) -> RemoteLog:
        """As `log` of a snapshot; with `all` the commits of every branch, not of `main` alone."""
        return RemoteLog(self._served, self._ref(), all=all, shown=read_log_words(shown))

    # Upkeep

    def cleanup(
        self,
        *,
        keep: int = 10,
        older_than: str | float | timedelta = "7d",
        grace: str | float | timedelta | None = None,
        dry_run: bool = False,
    ) -> Cleaned:
        """Deletes old versions, as a job of the server that is waited for."""
        self._require_open()
        given = {
            "keep": keep,
            "older_than": read_duration(older_than, "older_than") / 1e6,
            "grace": None if grace is None else read_duration(grace, "grace") / 1e6,
            "dry_run": dry_run or None,
        }
        return cleaned_of(run_job(self._served, "cleanup", given))

    def verify(self, *, deep: bool = False) -> Verification:
        """Looks at every version and file, as a job of the server that is waited for."""
        self._require_open()
        return verification_of(run_job(self._served, "verify", {"deep": deep}))

    @understanding()
    def format(self) -> FormatReport:
        """The format of the graph and that of the server."""
        told = self._served.get("", {"ref": self._ref()})["format"]
        if told is None:
            raise Denied("This token may not maintain the graph.", action="maintain")
        branches = msgspec.convert(told["branches"], tuple[str, ...])
        told = {name: told[name] for name in ("stamp", "program", "oldest")}
        return FormatReport(**msgspec.convert(told, dict[str, int]), branches=branches)

    @property
    def jobs(self) -> RemoteJobs:
        """Long work that was asked for, in whatever process it runs."""
        self._require_open()
        return RemoteJobs(self._served)

    @property
    def recovery(self) -> RemoteRecovery:
        """What is left of operations that died: list, resume, discard."""
        self._require_open()
        return RemoteRecovery(self._served)

    # What needs the files

    def copy(self, root: str | os.PathLike[str], *, names: Sequence[str] | None = None) -> NoReturn:
        """Not on a server: a copy is made of the files."""
        raise _not_remote("copied")

    @property
    def spark(self) -> NoReturn:
        """Not on a server: Spark reads the files."""
        raise _not_remote("read by Spark")

    @property
    def maintenance(self) -> NoReturn:
        """Not on a server: this is about the files."""
        raise _not_remote("maintained file by file")

    def acting(self, caller: Any, policy: Any = None) -> NoReturn:
        """Not on a server: the token says who acts."""
        raise NotRemote("A graph on a server acts for the one whose token it has.", help="")


def _not_remote(what: str) -> NotRemote:
    return NotRemote(
        f"A graph on a server cannot be {what}: it gives no files.",
        help="Open the storage behind the server: a path or s3://bucket/prefix.",
    )


def _name_of(branch: Any) -> str:
    return branch.name if isinstance(branch, RemoteBranch) else str(branch)


class _BranchRow(msgspec.Struct):
    name: str
    version: int
    protected: bool


@understanding()
def branch_rows(graph: Any) -> list[dict[str, Any]]:
    """Every branch with its head, by one request."""
    rows = [*graph._served.items("/branches", page=1000)]  # noqa: SLF001
    msgspec.convert(rows, list[_BranchRow])
    return rows
