"""Owns what a handle asks before it writes: whether its caller may do that to a branch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from omnigraph.engine.graph_view import find_type, full_view_of
from omnigraph.engine.history.refs import History
from omnigraph.engine.session import Session
from omnigraph.errors import BranchNotFound
from omnigraph.model.permission import AskedAction, BranchAction, GraphAction, GraphResource
from omnigraph.model.stored_queries import QUERY
from omnigraph.telemetry import Ledger


def ask_branch(
    session: Session, name: str, action: BranchAction, *, whole: bool = False, **context: str
) -> None:
    """A `whole` action concerns every row: it is not for who does not see all of them."""
    permissions = session.permissions
    if not permissions.restricted:
        return
    ledger = Ledger()
    head = session.live_head(name, ledger)
    branch = permissions.branch(head)
    permissions.require_branch(action, branch, **context)
    if whole:
        permissions.require_whole(session.read_catalog(head.catalog, ledger), action, branch)


def may(session: Session, action: AskedAction, name: str) -> bool:
    """Whether the caller may do that to a branch, or to one of that name if there is none; or to
    the graph, if that is what the action is for."""
    permissions = session.permissions
    if not permissions.restricted:
        return True
    if action in get_args(GraphAction):
        return permissions.ask(action, GraphResource(permissions.graph)).allowed
    try:
        branch = permissions.branch(session.live_head(name, Ledger()))
    except BranchNotFound:
        branch = permissions.new_branch(name)
    return permissions.ask(action, branch).allowed


def ask_new_branch(session: Session, name: str, mode: str | None = None) -> None:
    """To begin a branch and, with a `mode`, to load into it."""
    permissions = session.permissions
    made = permissions.new_branch(name)
    permissions.require_branch("branch_create", made)
    if mode is not None:
        permissions.require_branch("load", made, mode=mode)


def ask_tag(session: Session, ref: str) -> None:
    """To name a commit is to change the branch that has it."""
    permissions = session.permissions
    if permissions.restricted:
        history = History(session, Ledger())
        version = history.resolve(ref)
        permissions.require_branch("tag", history.asked or permissions.branch(version))


def ask_resolved(session: Session, branch: str, resolve: Mapping[Any, Any] | None) -> None:
    """A row that resolves a conflict is written by who gives it."""
    permissions = session.permissions
    if permissions.restricted and resolve:
        ledger = Ledger()
        catalog = full_view_of(session, session.live_head(branch, ledger), ledger).catalog
        visible = permissions.sight(catalog).visible
        names = {key[0] for key in resolve if isinstance(key, tuple) and key}
        if QUERY in names:
            ask_branch(session, branch, "queries_edit")
        for name in sorted(names - {QUERY}):
            permissions.require_write(catalog, find_type(visible, name))
