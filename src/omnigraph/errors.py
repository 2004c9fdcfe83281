"""Owns every error a user can meet: one row each with code, status, exit code and help."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

_PASSWORD = re.compile(r"(\w://)[^/\s]*:[^/\s]*@")
"""The user and password of an address. No error shows them, whatever text it repeats."""


def _without_password(value: Any) -> Any:
    return _PASSWORD.sub(r"\1***@", value) if isinstance(value, str) else value


class OmnigraphError(Exception):
    """The root. Each class is one row of the table in `docs/user/errors.md`. `applied` says what
    became of a write: False means that nothing was changed, True that it was published, None that
    this is not known and `commit` must be looked for.
    """

    code: ClassVar[str] = "error"
    kind: ClassVar[str] = "failed"
    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False
    help: ClassVar[str] = ""
    applied: ClassVar[bool | None] = False

    def __init__(self, message: str, *, help: str | None = None, **details: Any) -> None:
        message = _without_password(message)
        super().__init__(message)
        self.message = message
        self.hint = self.help if help is None else _without_password(help)
        self.details = {name: _without_password(value) for name, value in details.items()}

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message

    def to_dict(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "error": self.message,
            "help": self.hint,
            "retryable": self.retryable,
            **self.details,
        }


# What was asked for is not there.


class NotFound(OmnigraphError):
    """What was asked for is not there."""

    code, kind, http_status, exit_code = "not_found", "not_found", 404, 3


class GraphNotFound(NotFound):
    """There is no graph at the root."""

    code = "graph_not_found"
    help = "Create one with omnigraph.init(root, schema=...), or check the path."


class RefNotFound(NotFound):
    """The ref names no version of the graph."""

    code = "ref_not_found"


class BranchNotFound(RefNotFound):
    """There is no branch with this name."""

    code = "branch_not_found"


class TypeNotFound(NotFound):
    """The schema has no type with this name."""

    code = "type_not_found"


class EntityNotFound(NotFound):
    """There is no entity of this type with this id."""

    code = "entity_not_found"


class QueryNotFound(NotFound):
    """There is no stored query with this name."""

    code = "query_not_found"
    help = "List them with g.queries(), or `omnigraph queries list`."


class TagNotFound(RefNotFound):
    """There is no tag with this name."""

    code = "tag_not_found"


class IntentNotFound(NotFound):
    """No long operation has this id: it has ended, or it never existed."""

    code = "intent_not_found"
    help = "List them with g.recovery.list(), or `omnigraph recover list`."


class JobNotFound(NotFound):
    """There is no job with this id: cleanup took it, or it never was."""

    code = "job_not_found"
    help = "List them with g.jobs.list(), or `omnigraph jobs list`."


class Reclaimed(RefNotFound):
    """Cleanup has removed the version."""

    code, http_status = "reclaimed", 410
    help = "Cleanup removed this version; only newer ones can be read."


class HistoryGap(Reclaimed):
    """Commits after this point are gone, so the changes cannot be listed one by one."""

    code = "history_gap"
    help = "Read a snapshot of the branch and go on with its changes after that commit."


# What was given is wrong. Nothing was changed.


class Invalid(OmnigraphError):
    """What was given is wrong."""

    code, kind, http_status, exit_code = "invalid", "invalid", 422, 6


class InvalidArgument(Invalid):
    """An argument or option has a value that it cannot have."""

    code, http_status, exit_code = "invalid_argument", 400, 2


class InvalidRoot(InvalidArgument):
    """The root is neither a path nor an address of a store."""

    code = "invalid_root"


class InvalidBranchName(InvalidArgument):
    """A branch or tag cannot have this name."""

    code = "invalid_branch_name"


class SelfMerge(InvalidArgument):
    """The source of a merge is its target."""

    code = "self_merge"
    help = "Name the branch to merge from, and the one to merge into."


class MainBranch(InvalidArgument):
    """The branch `main` is always there."""

    code = "main_branch"
    help = "Restore it to an older commit, or delete the whole graph."


class InvalidRef(InvalidArgument):
    """The ref is not written as a ref."""

    code = "invalid_ref"
    help = "Refs are main, main~2, main@<commit>, main*<time> or a commit id."


class InvalidCursor(InvalidArgument):
    """The cursor of a change feed was altered or cut."""

    code = "invalid_cursor"
    help = "Use the cursor of a block just as it was given, or after='beginning'."


class CursorMismatch(InvalidCursor):
    """`differs` names what is not the same: graph, branch, incarnation or filter."""

    code = "cursor_mismatch"

    def __init__(self, message: str, *, differs: str, **details: Any) -> None:
        super().__init__(message, differs=differs, **details)
        self.differs = differs


class NotAcceptable(InvalidArgument):
    """The answer has none of the forms that the request accepts."""

    code, http_status = "not_acceptable", 406
    help = "Accept application/json, application/jsonl or application/vnd.apache.arrow.stream."


class NotRemote(InvalidArgument):
    """A graph on a server does not offer what needs the files of the graph, or another actor than
    the one of the token."""

    code, http_status = "not_remote", 501


class UnsupportedMediaType(InvalidArgument):
    """The body of the request has a content type that is not taken there."""

    code, http_status = "unsupported_media_type", 415


class MethodNotAllowed(InvalidArgument):
    """The address is known, and the method is not one that it takes."""

    code, http_status = "method_not_allowed", 405


class RangeNotSatisfiable(InvalidArgument):
    """The range lies beyond the end of the blob."""

    code, http_status = "range_not_satisfiable", 416


class TooLarge(Invalid):
    """A request, or an answer, is larger than the server takes. `limit` names the bound."""

    code, http_status = "too_large", 413

    def __init__(
        self, message: str, *, limit: str, allowed: int, actual: int | None = None, **details: Any
    ) -> None:
        super().__init__(message, limit=limit, allowed=allowed, actual=actual, **details)
        self.limit = limit
        self.allowed = allowed
        self.actual = actual


class InvalidSchema(Invalid):
    """`diagnostics` holds every mistake with its place; the message shows them all."""

    code = "invalid_schema"

    def __init__(self, message: str, *, diagnostics: Sequence[Any] = (), **details: Any) -> None:
        super().__init__(message, **details)
        self.diagnostics = tuple(diagnostics)


class UnsupportedChange(Invalid):
    """`steps` holds the steps that cannot be applied, with code and reason."""

    code = "unsupported_change"

    def __init__(self, message: str, *, steps: Sequence[Any] = (), **details: Any) -> None:
        super().__init__(message, **details)
        self.steps = tuple(steps)


class BrokenQueries(Invalid):
    """`queries` holds the stored queries that the schema would not allow, with their mistakes."""

    code = "broken_queries"
    help = "Change or remove these queries first, with g.store_queries() or `omnigraph queries`."

    def __init__(self, message: str, *, queries: Sequence[Any] = (), **details: Any) -> None:
        super().__init__(message, **details)
        self.queries = tuple(queries)


class InvalidData(Invalid):
    """`violations` holds every broken rule that was found."""

    code = "invalid_data"
    help = "Nothing was changed."

    def __init__(
        self, message: str, *, violations: Sequence[Any] = (), more: int = 0, **details: Any
    ) -> None:
        super().__init__(message, **details)
        self.violations = tuple(violations)
        self.more = more


class InvalidQuery(Invalid):
    """`diagnostics` holds every mistake with its place; the message shows them all."""

    code = "invalid_query"

    def __init__(self, message: str, *, diagnostics: Sequence[Any] = (), **details: Any) -> None:
        super().__init__(message, **details)
        self.diagnostics = tuple(diagnostics)


class InvalidPolicy(Invalid):
    """A policy is wrong, or says of rows what cannot be asked of rows. `problems` lists all."""

    code = "invalid_policy"

    def __init__(self, message: str, *, problems: Sequence[Any] = (), **details: Any) -> None:
        super().__init__(message, **details)
        self.problems = tuple(problems)


class InvalidParameters(Invalid):
    """`problems` names each parameter that is wrong, and why."""

    code = "invalid_parameters"

    def __init__(self, message: str, *, problems: Sequence[Any] = (), **details: Any) -> None:
        super().__init__(message, **details)
        self.problems = tuple(problems)


class ValueOutOfRange(Invalid):
    """A value that a query or a mutation computed does not fit its type."""

    code = "value_out_of_range"


class UnknownModel(Invalid):
    """The schema names a model for `@embed` that this program does not know."""

    code = "unknown_model"


class NoModel(Invalid):
    """A text was given where a vector is needed, and the property has no model to embed it."""

    code = "no_model"


class NotOneRow(Invalid):
    """One row was expected, and there were none or several."""

    code = "not_one_row"


# A limit was reached. Nothing was changed.


class LimitReached(OmnigraphError):
    """`limit` names which: timeout, memory_limit, rows or cancelled."""

    code, kind, http_status, exit_code = "limit_reached", "failed", 400, 1

    def __init__(self, message: str, *, limit: str, **details: Any) -> None:
        super().__init__(message, limit=limit, **details)
        self.limit = limit


class QueryTimeout(LimitReached):
    """The query took longer than its timeout."""

    code, http_status = "timeout", 504
    help = "Raise timeout, or ask for less: a filter, a limit, a smaller pattern."


class MemoryLimit(LimitReached):
    """The query would need more memory than its limit, or than the machine has."""

    code, http_status = "memory_limit", 413
    help = "Raise memory_limit, or ask for less: a filter, a limit, a smaller pattern."


class Cancelled(LimitReached):
    """The caller cancelled the query."""

    code, http_status = "cancelled", 499
    help = ""


# Somebody else was there. Nothing was changed.


class AlreadyExists(OmnigraphError):
    """Something with this name already exists."""

    code, kind, http_status, exit_code = "already_exists", "conflict", 409, 4


class GraphExists(AlreadyExists):
    """There is already a graph at the root."""

    code = "graph_exists"
    help = "Open it with omnigraph.open(root), or choose another root."


class RootNotEmpty(AlreadyExists):
    """The root holds something that is not part of a graph."""

    code = "root_not_empty"
    help = "Choose another root: a graph needs a folder, or a prefix, of its own."


class BranchExists(AlreadyExists):
    """There is already a branch with this name."""

    code = "branch_exists"


class TagExists(AlreadyExists):
    """There is already a tag with this name."""

    code = "tag_exists"
    help = "Choose another name, or delete the tag first."


class Conflict(OmnigraphError):
    """The graph has changed in a way that keeps this write from landing on its new head.

    `mismatch` names a table with the version that was expected and the one that is there.
    """

    code, kind, http_status, exit_code, retryable = "conflict", "conflict", 409, 4, True
    help = "Nothing was changed; read again and retry."

    def __init__(self, message: str, *, mismatch: Any = None, **details: Any) -> None:
        super().__init__(message, **details)
        self.mismatch = mismatch


class Contention(Conflict):
    """Other writers kept winning until the time was up."""

    code, http_status, exit_code = "contention", 503, 7
    help = "Nothing was changed; other writers kept winning. Retry, or raise retry_for."


class JobEnded(Conflict):
    """The job has ended: it can neither be cancelled nor run again."""

    code, retryable = "job_ended", False
    help = "Look at it with g.jobs.get(id), or `omnigraph jobs show`; submit a new one."


class JobRunning(Conflict):
    """A job with this name is running, here or elsewhere."""

    code = "job_running"
    help = "Wait until it ends. If its machine is gone, it counts as dead after a minute."


class MergeFailed(Conflict):
    """`conflicts` holds everything that both sides changed differently."""

    code, retryable = "merge_conflict", False
    help = "Nothing was changed; choose a strategy, give rows that resolve it, or edit a branch."

    def __init__(self, message: str, *, conflicts: Sequence[Any] = (), **details: Any) -> None:
        super().__init__(message, **details)
        self.conflicts = tuple(conflicts)


class RevertFailed(Conflict):
    """`conflicts` holds every value that a later commit has changed again."""

    code, retryable = "revert_conflict", False
    help = "Nothing was changed; revert the later commits first, or write the values yourself."

    def __init__(self, message: str, *, conflicts: Sequence[Any] = (), **details: Any) -> None:
        super().__init__(message, **details)
        self.conflicts = tuple(conflicts)


class BranchMoved(Conflict):
    """The branch or tag was deleted, or deleted and created again, while somebody held it."""

    code, retryable = "branch_moved", False


class PreconditionFailed(OmnigraphError):
    """The branch is not at the commit that the caller named."""

    code, kind, http_status, exit_code = "precondition_failed", "conflict", 412, 4
    help = "Nothing was changed; the branch is no longer at the commit given as if_commit."


class IdempotencyMismatch(OmnigraphError):
    """The idempotency key belongs to another write."""

    code, kind, http_status, exit_code = "idempotency_mismatch", "conflict", 409, 4
    help = "The key was used before for a different write; use a new key for a new write."


# Not allowed.


class Denied(OmnigraphError):
    """The operation is not allowed. `action`, `resource` and `policies` say what was asked, and
    which policies forbid it, if any does."""

    code, kind, http_status, exit_code = "denied", "denied", 403, 5

    def __init__(
        self,
        message: str,
        *,
        action: str = "",
        resource: str = "",
        policies: Sequence[str] = (),
        **details: Any,
    ) -> None:
        if action:
            details |= {"action": action, "resource": resource, "policies": list(policies)}
        super().__init__(message, **details)
        self.action = action
        self.resource = resource
        self.policies = tuple(policies)


class Unauthenticated(OmnigraphError):
    """Nobody is known to ask: there is no credential, or none that counts."""

    code, kind, http_status, exit_code = "unauthenticated", "denied", 401, 5
    help = "Give a token, or an actor, that is known here."


class ReadOnly(Denied):
    """The graph was opened only for reading."""

    code = "read_only"
    help = "Open the graph with mode='rw' to write."


class ProtectedBranch(Denied):
    """The branch accepts only merges."""

    code = "protected_branch"
    help = "Write to another branch and merge it, or lift the protection with unprotect."


class PermissionDenied(Denied):
    """The store or the file system refuses access."""

    code = "permission_denied"


# The store does not answer, or holds what it should not.


class Unavailable(OmnigraphError):
    """The store does not answer."""

    code, kind, http_status, exit_code, retryable = "unavailable", "unavailable", 503, 7, True


class RateLimited(Unavailable):
    """The caller sends more requests than one caller may."""

    code, http_status = "rate_limited", 429
    help = "Nothing was done; wait as long as Retry-After says, and send fewer at a time."


class Overloaded(Unavailable):
    """The server has too much to do. `limit` names what is used up."""

    code = "overloaded"
    help = "Nothing was done; try again after a moment."


class Draining(Unavailable):
    """The server is about to end and takes nothing new."""

    code = "draining"
    help = "Nothing was done; try again, another server will answer."


class GraphUnavailable(Unavailable):
    """The graph could not be opened by the server."""

    code = "graph_unavailable"
    help = "Nothing was done; the log of the server says why it does not open."


class BadAnswer(Unavailable):
    """What a server answered cannot be read."""

    code, http_status, retryable = "bad_answer", 502, False
    help = "Is it a server of OmniGraph, and of the same version as this client?"


class DiskFull(Unavailable):
    """There is no space left."""

    code, http_status, retryable = "disk_full", 507, False
    help = "Free some space and try again; nothing was changed."


class OutOfMemory(Unavailable):
    """The machine, or a limit on this process, gives no more memory or threads."""

    code, retryable = "out_of_memory", False
    help = "Raise the limit (ulimit -v, ulimit -u), or end other programs, and try again."


class UnsafeStore(Unavailable):
    """The store overwrites what it was told to create only if absent."""

    code, retryable = "unsafe_store", False
    help = "OmniGraph needs a store that honours put-if-absent (If-None-Match: *)."


class NotApplied(Unavailable):
    """The write failed before it changed anything."""

    code = "not_applied"
    help = "Nothing was changed; it is safe to retry."


class OutcomeUnknown(OmnigraphError):
    """The answer to the last put was lost and the head cannot be read, or the put was done but may
    not survive a power cut."""

    code, kind, http_status, exit_code = "outcome_unknown", "unknown", 504, 8
    applied = None
    help = "Look for this commit in the log before writing again, or retry with the same key."

    def __init__(self, message: str, *, commit: str, **details: Any) -> None:
        super().__init__(message, commit=commit, **details)
        self.commit = commit


class Corrupt(OmnigraphError):
    """A file of the graph is missing, cut short or not what it should be."""

    code, kind = "corrupt", "failed"
    help = "Restore the file from a copy, or read an older version."


class NewerFormat(OmnigraphError):
    """The graph was written by a newer version of the program."""

    code, kind = "newer_format", "failed"
    help = "Upgrade omnigraph first."


class OlderFormat(OmnigraphError):
    """The graph was written by a version of the program that this one no longer reads."""

    code, kind = "older_format", "failed"
    help = "Open it with an older omnigraph that upgrades it first."


class EngineMissing(OmnigraphError):
    """The engine that a load asked for is not installed, or lacks what it needs."""

    code, kind, http_status = "engine_missing", "failed", 501


class ModelMissing(OmnigraphError):
    """The model of a vector is not installed, or the key of its provider is not given."""

    code, kind, http_status = "model_missing", "failed", 501


class ProviderUnavailable(Unavailable):
    """The provider of embeddings did not answer, or stayed busy, until the deadline."""

    code = "provider_unavailable"
    help = "Try again later. What was committed stays; the rest remains to be embedded."


class ProviderRefused(OmnigraphError):
    """The provider of embeddings refuses the request because of its key, model or address."""

    code, kind, http_status = "provider_refused", "failed", 502


class TextRefused(ProviderRefused):
    """The provider refuses a text, for example because it is too long."""

    code = "text_refused"
    help = "Shorten the text. Other texts are not affected."


class InvalidEmbedding(OmnigraphError):
    """The answer of the provider is not an embedding, or does not fit the property."""

    code, kind, http_status = "invalid_embedding", "failed", 502


class NotEmbedded(OmnigraphError):
    """A load has landed, but not all of its texts could be embedded. `commit` is the load's."""

    code, kind, http_status = "not_embedded", "failed", 502
    applied = True
    help = "Do not load again: g.embed(), or `omnigraph embed`, does the rest."


class ForkedProcess(OmnigraphError):
    """A forked process uses a graph that its parent opened, or cannot use any graph."""

    code, kind = "forked_process", "failed"
    help = "Start processes by spawn or forkserver: multiprocessing.get_context('spawn')."


class StoreFailure(OmnigraphError):
    """Lance or the store failed for a reason that has no error of its own here."""

    code, kind = "store_failure", "failed"
