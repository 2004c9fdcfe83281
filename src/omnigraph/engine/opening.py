"""Owns opening a graph: creating it with a schema, or finding it at its root."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from omnigraph.arguments import checked
from omnigraph.engine.access import Access, Mode
from omnigraph.engine.graph import Graph
from omnigraph.engine.permissions import (
    UNRESTRICTED,
    Authorizer,
    Permissions,
    graph_name,
    require_authorizer,
)
from omnigraph.engine.session import Session
from omnigraph.errors import (
    GraphExists,
    GraphNotFound,
    InvalidArgument,
    InvalidRoot,
    NotApplied,
    OmnigraphError,
    Unauthenticated,
    UnsafeStore,
)
from omnigraph.model.caller import Caller
from omnigraph.model.commit_text import read_word
from omnigraph.model.version import FORMAT, GraphStamp, GraphVersion
from omnigraph.runtime import SYSTEM, Runtime, reach
from omnigraph.settings import Settings
from omnigraph.store.objects import Absent, Ambiguous
from omnigraph.store.roots import Root, parse_root
from omnigraph.store.versions import STAMP_KEY
from omnigraph.telemetry import Ledger

if TYPE_CHECKING:
    from omnigraph.engine.write.chain import Step
    from omnigraph.plan.successor import CreateGraph


@checked
def init(
    root: str | os.PathLike[str],
    *,
    schema: str | os.PathLike[str],
    actor: str | None = None,
    settings: Settings | None = None,
    runtime: Runtime = SYSTEM,
) -> Graph:
    """Creates a graph with a schema, given as text or as the path of a `.pg` file.

    When two callers create a graph at once, the one that puts the first graph version wins. Nothing
    refers to what the loser or a crash leaves behind.

    >>> with omnigraph.init("memory://notes", schema="node Note { text: String }") as notes:
    ...     notes.types()
    ['Note']
    """

    from omnigraph.engine.write.migration import create_tables, read_schema, schema_text
    from omnigraph.plan.migrate import apply_steps, plan_migration
    from omnigraph.plan.publish import Lineage, SchemaChange
    from omnigraph.plan.successor import CreateGraph

    actor = read_word("actor", actor)
    text = schema_text(schema)
    declared = read_schema(text)
    session = _session(root, settings, runtime)
    ledger = Ledger()
    _refuse_file(session)
    _refuse_occupied(session, ledger)
    catalog = apply_steps(None, plan_migration(None, declared).steps)
    texts = session.write_schema(text, catalog, ledger)
    pins = create_tables(session.tables, runtime, [*catalog.nodes, *catalog.edges], ledger)
    found = CreateGraph(
        Lineage(kind="init", operation=runtime.ulid(), actor=actor),
        runtime.ulid(),
        SchemaChange(schema=texts[0], catalog=texts[1]),
        tuple(pins),
    )
    reach("init staged")
    _create(session, found, ledger)
    return Graph(session, Access("rw"), ledger)


@checked
def open(  # noqa: A001
    root: str | os.PathLike[str],
    *,
    mode: Mode = "rw",
    actor: str | Caller | None = None,
    policy: Authorizer | None = None,
    settings: Settings | None = None,
    runtime: Runtime = SYSTEM,
) -> Graph:
    """Opens a graph for reading and writing ("rw") or for reading alone ("r"). Commits carry the
    `actor` if their writer gives no other. With a `policy` it is asked before everything that the
    actor reads and writes; without an actor the graph is then closed. Whoever holds the
    credentials of the store can leave the policy out.

    >>> with omnigraph.open(g.root, mode="r") as reader:
    ...     reader.count("Person")
    3
    >>> omnigraph.open(g.root, actor="eve").mutate('insert Person { name: "Dan" }').commit.actor
    'eve'
    """
    if mode not in ("rw", "r"):
        raise InvalidArgument(f"The mode {mode!r} is neither 'rw' nor 'r'.")
    place = parse_root(root)
    permissions = _permissions(place, actor, policy)
    return open_root(place, mode=mode, settings=settings, runtime=runtime, permissions=permissions)


def _permissions(place: Root, actor: str | Caller | None, policy: Authorizer | None) -> Permissions:
    if actor is None:
        if policy is not None:
            raise Unauthenticated(
                "A graph that is opened with a policy is opened for somebody.",
                help="Give the actor: omnigraph.open(root, actor='ada', policy=...).",
            )
        return UNRESTRICTED
    caller = actor if isinstance(actor, Caller) else Caller(actor)
    return Permissions(caller, require_authorizer(policy), graph_name(place.uri))


def open_root(
    place: Root,
    *,
    mode: Mode,
    settings: Settings | None = None,
    runtime: Runtime = SYSTEM,
    permissions: Permissions = UNRESTRICTED,
) -> Graph:
    """Like `open`, for a root that another process resolved, with the credentials of that
    process."""
    settings = settings or Settings.from_environment()
    session = Session(place, place.objects(settings), settings, runtime)
    ledger = Ledger()
    try:
        stamp = session.versions(ledger).read_stamp()
    except Absent:
        _adopt_unstamped(session, mode, ledger)
    else:
        if stamp.format < FORMAT and mode == "rw":
            from omnigraph.engine.upkeep.upgrade import upgrade

            upgrade(session, ledger)
    if permissions is not UNRESTRICTED:
        session = session.acting(permissions)
    return Graph(session, Access(mode), ledger)


def _adopt_unstamped(session: Session, mode: Mode, ledger: Ledger) -> None:
    """Handles a creator that died between the first version and the stamp: the graph is
    complete."""
    try:
        head = session.versions(ledger).read_head("main")
    except Absent:
        raise GraphNotFound(f"There is no graph at {session.root.uri}.") from None
    if mode == "rw":
        stamp = GraphStamp(format=head.format, graph=head.graph)
        session.versions(ledger).write_stamp(stamp, after=session.files_of(head))


def _create(session: Session, found: CreateGraph, ledger: Ledger) -> None:
    from omnigraph.engine.write.chain import Step, put_with_retry

    versions = session.versions(ledger)
    # Before the store decides anything, it is tested with an object that nobody else uses.
    stamp = GraphStamp(format=FORMAT, graph=found.graph)
    probe_key = f"__wait/{found.graph}"
    objects = session.metered(ledger)
    try:
        if not (
            objects.put_if_absent(probe_key, b"") and not objects.put_if_absent(probe_key, b"")
        ):
            raise UnsafeStore(f"{session.root.uri} does not honour put-if-absent.")
    except Ambiguous as error:
        raise NotApplied(f"{session.root.uri} cannot be written: {error}.") from error
    finally:
        with contextlib.suppress(OmnigraphError):
            objects.delete(probe_key)

    def propose(end: GraphVersion | None) -> Step:
        if end is not None:
            raise GraphExists(f"Somebody else created a graph at {session.root.uri} just now.")
        return Step(found)

    first = put_with_retry(session, "main", lambda _: None, propose, ledger, stamped=False)
    assert first is not None
    reach("init put")
    with contextlib.suppress(Ambiguous, OmnigraphError):  # the next open will write it
        versions.write_stamp(stamp, after=session.files_of(first))


def _refuse_file(session: Session) -> None:
    """A graph is a directory. Every part of its path must be a directory or not exist."""
    directory = session.root.directory
    for place in () if directory is None else (directory, *directory.parents):
        if os.path.lexists(place):
            if not place.is_dir():
                raise InvalidRoot(f"{place} is a file, and a graph is a directory.")
            return


def _refuse_occupied(session: Session, ledger: Ledger) -> None:
    from omnigraph.store.ownership import list_occupants, refuse_foreign

    objects, root = session.metered(ledger), session.root
    if not (occupants := list_occupants(root, objects)):
        return
    if objects.exists(STAMP_KEY) or objects.list("__manifest/main/", limit=1):
        raise GraphExists(f"There is a graph at {root.uri} already.")
    refuse_foreign(root, occupants)


def _session(root: str | os.PathLike[str], settings: Settings | None, runtime: Runtime) -> Session:
    settings = settings or Settings.from_environment()
    place = parse_root(root)
    return Session(place, place.objects(settings), settings, runtime)
