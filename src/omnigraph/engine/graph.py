"""Owns the handle on a graph: its branch `main`, and everything that concerns the whole graph."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Self, Unpack

from omnigraph.arguments import checked_methods
from omnigraph.engine import branches_and_tags
from omnigraph.engine.access import Access
from omnigraph.engine.asking import ask_branch, ask_new_branch, ask_tag, may
from omnigraph.engine.branch import Branch
from omnigraph.engine.graph_view import view_of
from omnigraph.engine.permissions import (
    Authorizer,
    Permissions,
    graph_name,
    hidden_branch,
    require_authorizer,
    require_caller,
)
from omnigraph.engine.session import Session
from omnigraph.engine.snapshot import Snapshot, snapshot_of
from omnigraph.errors import InvalidArgument
from omnigraph.model.caller import Caller
from omnigraph.model.options import CommitOptions, CommitWords, read_options
from omnigraph.model.permission import AskedAction, AuditEvent, BranchAction
from omnigraph.model.version import Commit
from omnigraph.telemetry import Ledger
from omnigraph.tracing import traced_methods

if TYPE_CHECKING:
    from omnigraph.engine.executor_protocol import Executor, SparkHandle
    from omnigraph.engine.history.log import Log, LogWords
    from omnigraph.engine.upkeep.cleanup_report import Cleaned
    from omnigraph.engine.upkeep.copying import Copied, OnCopied
    from omnigraph.engine.upkeep.folding import Folding
    from omnigraph.engine.upkeep.jobs import GraphJobs
    from omnigraph.engine.upkeep.recovery import Recovery
    from omnigraph.engine.upkeep.upgrade import FormatReport
    from omnigraph.engine.upkeep.verify_report import Verification
    from omnigraph.store.tables import Table


@traced_methods(
    "create_branch",
    "delete_branch",
    "create_tag",
    "delete_tag",
    "protect",
    "unprotect",
    "cleanup",
    "verify",
    "copy",
)
@checked_methods
class Graph(Branch):
    """A graph that is open: everything that a `Branch` can do, for the branch `main`, and what
    concerns the whole graph. Use it as a context manager, from any number of threads. `io` is
    what opening or creating it took.

    >>> (g.count("Person"), g.branch("main").count("Person"), g.at("main").count("Person"))
    (3, 3, 3)
    """

    def __init__(self, session: Session, access: Access, io: Ledger) -> None:
        super().__init__(branches_and_tags.MAIN, session, access)
        self.io = io
        if access.mode == "rw" and session.settings.folding != "off":
            session.on_write = self._fold

    def _fold(self, branch: str, tables: Mapping[str, tuple[Table, Table]]) -> None:
        if not self._access.is_closed():
            self._session.shared(_folding).after(branch, tables)

    @property
    def root(self) -> str:
        """Where the graph is.

        >>> omnigraph.open(g.root).count("Person")
        3
        """
        return self._session.root.uri

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the handle and those that came from it; leaving a `with` block does this.
        Snapshots can still be read.

        >>> other = omnigraph.open(g.root)
        >>> other.close()
        """
        if not self._session.is_own:
            return  # it came here by a fork, so its parent must close it
        self._access.close()
        if self._access.owns and (folding := self._session.made(_folding)) is not None:
            folding.close()

    def __repr__(self) -> str:
        return f"Graph({self.root!r})"

    # Handles

    def acting(
        self,
        caller: Caller,
        policy: Authorizer | None = None,
        *,
        name: str | None = None,
        audit: Callable[[AuditEvent], None] | None = None,
    ) -> Graph:
        """This graph for somebody: `policy` is asked before everything that the handle, and those
        that come from it, read and write, and commits carry the caller's name. What may not be
        seen is not there. Without a policy all is allowed. `name` is what the policy calls the
        graph, by default the end of its root; `audit` hears of each commit and each denial.
        Closing the new handle leaves this one open.

        >>> from omnigraph.model.caller import Caller
        >>> from omnigraph.policy.roles import Roles
        >>> reader = g.acting(Caller("eve", roles={"reader"}), Roles())
        >>> reader.count("Person")
        3
        >>> reader.mutate("delete Person where true")
        Traceback (most recent call last):
        omnigraph.errors.Denied: 'eve' may not mutate: branch 'main'.
        """
        self._require_open()
        if self._session.permissions.restricted:
            raise InvalidArgument("This handle acts for somebody already.")
        named = graph_name(self.root) if name is None else name
        permissions = Permissions(require_caller(caller), require_authorizer(policy), named, audit)
        return Graph(self._session.acting(permissions), self._access.beside(), self.io)

    def at(self, ref: str) -> Snapshot:
        """The graph as it is at a ref, pinned for ever. A ref is a branch, a tag, a commit, or a
        way back from one: `main~2`, `main@<commit>`, `main*2026-01-31`.

        >>> g.at("main~1").count("Person")
        0
        """

        from omnigraph.engine.history.refs import History

        self._require_open()
        ledger = Ledger()
        history = History(self._session, ledger)
        version = history.resolve(ref)
        return snapshot_of(view_of(self._session, version, ledger), history.asked)

    def branch(self, name: str) -> Branch:
        """The handle on a branch, which has to exist.

        >>> made = g.create_branch("review")
        >>> g.branch("review").mutate('insert Person { name: "Dan" }').branch
        'review'
        """
        self._require_open()
        head = self._session.live_head(name, Ledger())
        permissions = self._session.permissions
        if permissions.restricted and not permissions.shows_branch(permissions.branch(head)):
            raise hidden_branch(name)
        session = self._session.holding(head.branch, head.incarnation)
        return Branch(head.branch, session, self._access)

    def may(self, action: AskedAction, branch: str = branches_and_tags.MAIN) -> bool:
        """Whether the one for whom this handle acts may do that to a branch: "read", "query",
        "mutate", "merge" and so on. A branch that does not exist is asked for as a new one.
        "maintain" and "cleanup" are asked of the graph.

        >>> from omnigraph.model.caller import Caller
        >>> from omnigraph.policy.roles import Roles
        >>> agent = g.acting(Caller("eve", roles={"agent"}), Roles())
        >>> (agent.may("mutate"), agent.may("mutate", "agent/eve"))
        (False, True)
        """
        self._require_open()
        return may(self._session, action, branch)

    # Branches and tags

    def branches(self) -> list[str]:
        """The names of all branches.

        >>> g.branches()
        ['main']
        """
        self._require_open()
        return branches_and_tags.list_branches(self._session, Ledger())

    def create_branch(
        self, name: str, ref: str = branches_and_tags.MAIN, **commit: Unpack[CommitWords]
    ) -> Commit:
        """Starts a branch at a ref, by one request, whatever the size of the graph. Gives the
        commit that it starts at. With `if_commit` the ref must show that commit.

        >>> g.create_branch("review", "main", actor="bob").id == g.commit.id
        True
        """
        self._require_open(writing=True)
        options = read_options(commit)
        ask_new_branch(self._session, name)
        options = self._session.permissions.sign(options)
        return branches_and_tags.create_branch(self._session, name, ref, options, Ledger()).commit

    def delete_branch(self, branch: str | Branch, **commit: Unpack[CommitWords]) -> None:
        """Ends a branch, given by name, or by its handle if no other of that name is meant. Open
        snapshots of it can still be read; what was merged stays.

        >>> made = g.create_branch("review")
        >>> g.delete_branch("review", actor="bob")
        >>> g.branches()
        ['main']
        """
        session, name = self._meant(branch)
        options = self._changing(commit, session, name, "branch_delete")
        branches_and_tags.delete_branch(session, name, options, Ledger())

    def protected_branches(self) -> list[str]:
        """The names of the branches that are closed to direct writes.

        >>> g.protect("main")
        >>> g.protected_branches()
        ['main']
        """
        self._require_open()
        return branches_and_tags.list_protected(self._session, Ledger())

    def protect(self, branch: str | Branch, **commit: Unpack[CommitWords]) -> None:
        """Closes a branch, given by name or by its handle, to direct writes and to deletion;
        merges into it go on.

        >>> g.protect("main", actor="ada", message="only by review")
        >>> g.mutate("delete Person where true")
        Traceback (most recent call last):
        omnigraph.errors.ProtectedBranch: The branch 'main' is protected against direct writes...
        """
        session, name = self._meant(branch)
        options = self._changing(commit, session, name, "protect")
        branches_and_tags.set_protection(session, name, True, options, Ledger())

    def unprotect(self, branch: str | Branch, **commit: Unpack[CommitWords]) -> None:
        """Opens a branch to direct writes again.

        >>> g.protect("main")
        >>> g.unprotect("main")
        >>> g.protected_branches()
        []
        """
        session, name = self._meant(branch)
        options = self._changing(commit, session, name, "protect")
        branches_and_tags.set_protection(session, name, False, options, Ledger())

    def _changing(
        self, given: CommitWords, session: Session, name: str, action: BranchAction
    ) -> CommitOptions:
        self._require_open(writing=True)
        options = read_options(given)
        ask_branch(session, name, action)
        return session.permissions.sign(options)

    def _tagging(self, given: CommitWords, ref: str) -> CommitOptions:
        self._require_open(writing=True)
        options = read_options(given)
        ask_tag(self._session, ref)
        return self._session.permissions.sign(options)

    def _meant(self, branch: str | Branch) -> tuple[Session, str]:
        """A handle belongs to the branch that it was made for, and to no other of the name."""
        if isinstance(branch, Branch):
            return branch._session, branch.name  # noqa: SLF001
        return self._session, branch

    def tags(self) -> dict[str, Commit]:
        """The commits of all tags, by name.

        >>> made = g.create_tag("v1")
        >>> {name: commit.message for name, commit in g.tags().items()}
        {'v1': 'three people'}
        """
        self._require_open()
        return branches_and_tags.list_tags(self._session, Ledger())

    def create_tag(
        self, name: str, ref: str = branches_and_tags.MAIN, **commit: Unpack[CommitWords]
    ) -> Commit:
        """Gives a commit a permanent name. A tag is a ref like any other, and nothing is written to
        it.

        >>> made = g.create_tag("v1", "main", actor="ada")
        >>> done = g.mutate("delete Person where true")
        >>> g.at("v1").count("Person")
        3
        """
        options = self._tagging(commit, ref)
        return branches_and_tags.create_tag(self._session, name, ref, options, Ledger())

    def delete_tag(self, name: str, **commit: Unpack[CommitWords]) -> None:
        """Takes the name away. The commit stays.

        >>> made = g.create_tag("v1")
        >>> g.delete_tag("v1", actor="ada")
        >>> g.tags()
        {}
        """
        options = self._tagging(commit, name)
        branches_and_tags.delete_tag(self._session, name, options, Ledger())

    def log(self, *, all: bool = False, **shown: Unpack[LogWords]) -> Log:
        """As `log` of a snapshot; with `all` the commits of every branch and not of `main` alone.

        >>> made = g.create_branch("review")
        >>> done = g.branch("review").mutate("delete Knows where true", message="on review")
        >>> [commit.message for commit in g.log(all=True, limit=2)]
        ['on review', 'three people']
        """

        from omnigraph.engine.history.log import all_ends, make_log

        if not all:
            return super().log(**shown)
        self._require_open()
        ledger = Ledger()
        return make_log(self._session, all_ends(self._session, ledger), ledger=ledger, **shown)

    # Upkeep

    def cleanup(
        self,
        *,
        keep: int = 10,
        older_than: str | float | timedelta = "7d",
        grace: str | float | timedelta | None = None,
        dry_run: bool = False,
    ) -> Cleaned:
        """Deletes versions that are neither among the last `keep` of their branch nor younger
        than `older_than`, and every file that nothing needs any more. Tags, living branches and
        work under way keep what they need; nothing younger than `grace` (the setting, or longer)
        is touched. Commits that go stay in the log; their data cannot be read again.

        >>> g.cleanup(keep=1, older_than="30d", dry_run=True).removed
        []
        """

        from omnigraph.engine.upkeep.cleanup import cleanup
        from omnigraph.plan.retention import Policy, read_duration

        self._require_open(writing=not dry_run)
        self._session.permissions.require_graph("cleanup")
        policy = Policy(
            keep=keep,
            older_than=read_duration(older_than, "older_than"),
            grace=read_duration(self._session.settings.grace if grace is None else grace, "grace"),
        )
        return cleanup(
            self._session.for_itself(),
            policy,
            dry_run=dry_run,
            writable=self._access.mode == "rw",
            ledger=Ledger(),
        )

    def verify(self, *, deep: bool = False) -> Verification:
        """Looks at every version that can be read and at every file that it needs, and reports what
        is missing, cut short or damaged; with `deep` it also reads every row and byte. It repairs
        nothing.

        >>> g.verify(deep=True).ok
        True
        """

        from omnigraph.engine.upkeep.verify import verify

        self._require_open()
        writable = self._access.mode == "rw"
        self._session.permissions.require_graph("maintain")
        return verify(self._session.for_itself(), deep=deep, record=writable, ledger=Ledger())

    def copy(
        self,
        root: str | os.PathLike[str],
        *,
        names: Sequence[str] | None = None,
        progress: OnCopied | None = None,
    ) -> Copied:
        """Copies the graph to another root, as `omnigraph.copy` does, while writers go on.

        >>> g.copy("memory://backup").branches
        ('main',)
        """

        from omnigraph.engine.upkeep.copying import copy_graph

        self._require_open()
        self._session.permissions.require_server("admin")
        return copy_graph(self._session.for_itself(), root, names, progress)

    def format(self) -> FormatReport:
        """The format of the graph and that of the program, and what an upgrade would do. Opening
        for writing upgrades; opening for reading never writes.

        >>> g.format().current
        True
        """

        from omnigraph.engine.upkeep.upgrade import check_format

        self._require_open()
        self._session.permissions.require_graph("maintain")
        return check_format(self._session.for_itself(), Ledger())

    @property
    def jobs(self) -> GraphJobs:
        """Long work that was asked for, in whatever process it runs: submit, list, cancel.

        >>> job = g.jobs.submit("verify", {"deep": True}, actor="ada")
        >>> g.jobs.cancel(job.id).state
        'cancelled'
        """

        from omnigraph.engine.upkeep.jobs import GraphJobs

        self._require_open()
        self._session.permissions.require_graph("maintain")
        return GraphJobs(self._session.for_itself(), writable=self._access.mode == "rw")

    @property
    def recovery(self) -> Recovery:
        """Long operations under way, and those that died: list, resume, discard.

        >>> g.recovery.list()
        []
        """

        from omnigraph.engine.upkeep.recovery import Recovery

        self._require_open()
        self._session.permissions.require_graph("maintain")
        return Recovery(self._session.for_itself(), writable=self._access.mode == "rw")

    @property
    def maintenance(self) -> Folding | None:
        """What the graph does by itself after writes; None when that is off, or when it is open
        for reading only.

        >>> omnigraph.open(g.root, mode="r").maintenance is None
        True
        """
        self._session.permissions.require_graph("maintain")
        return None if self._session.on_write is None else self._session.shared(_folding)

    @property
    def spark(self) -> SparkHandle:
        """The graph for Spark: types as DataFrames, and as tables of Spark SQL.

        g.spark.tables()
        spark.sql("select count(*) from Person").show()
        """

        from omnigraph.engine.executors import find_executor

        self._require_open()
        self._session.permissions.require_server("admin")
        executor: Executor = find_executor("spark")
        return executor.spark_graph(self.root, self.at)


def graph_holding(graph: Graph, branch: str, incarnation: int) -> Graph:
    """This graph, of which one branch has to be the one that it was: if another of its name was
    made since, that is `BranchMoved`."""
    session = graph._session.holding(branch, incarnation)  # noqa: SLF001
    return Graph(session, graph._access.beside(), graph.io)  # noqa: SLF001


def _folding(session: Session) -> Folding:
    """Made after the first write, so that what only reads or is refused does not import it."""
    from omnigraph.engine.upkeep.folding import Folding

    return Folding(session)
