"""OmniGraph: a typed graph database in plain files that branches and merges like Git.

    import omnigraph
    with omnigraph.init("my-graph", schema="people.pg") as g:
        with g.transaction(actor="me") as tx:
            tx.append("Person", {"name": "Alice"})

Each name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph import errors
    from omnigraph.client.opening import init, open
    from omnigraph.client.remote_graph import RemoteGraph
    from omnigraph.engine.branch import Branch
    from omnigraph.engine.graph import Graph
    from omnigraph.engine.protocols import BranchLike, GraphLike, SnapshotLike, TransactionLike
    from omnigraph.engine.query.result import Result
    from omnigraph.engine.snapshot import Snapshot
    from omnigraph.engine.upkeep.copying import copy
    from omnigraph.engine.upkeep.graph_deletion import delete
    from omnigraph.engine.write.transaction import Savepoint, Transaction
    from omnigraph.model.options import CommitOptions
    from omnigraph.model.version import Commit
    from omnigraph.settings import Settings

__all__ = [
    "Branch",
    "BranchLike",
    "Commit",
    "CommitOptions",
    "Graph",
    "GraphLike",
    "RemoteGraph",
    "Result",
    "Savepoint",
    "Settings",
    "Snapshot",
    "SnapshotLike",
    "Transaction",
    "TransactionLike",
    "__version__",
    "copy",
    "delete",
    "errors",
    "init",
    "open",
]
__version__ = "0.1.0"

_HOMES = {
    "Branch": "omnigraph.engine.branch",
    "BranchLike": "omnigraph.engine.protocols",
    "Commit": "omnigraph.model.version",
    "CommitOptions": "omnigraph.model.options",
    "Graph": "omnigraph.engine.graph",
    "GraphLike": "omnigraph.engine.protocols",
    "RemoteGraph": "omnigraph.client.remote_graph",
    "Result": "omnigraph.engine.query.result",
    "Savepoint": "omnigraph.engine.write.transaction",
    "Settings": "omnigraph.settings",
    "Snapshot": "omnigraph.engine.snapshot",
    "SnapshotLike": "omnigraph.engine.protocols",
    "Transaction": "omnigraph.engine.write.transaction",
    "TransactionLike": "omnigraph.engine.protocols",
    "copy": "omnigraph.engine.upkeep.copying",
    "delete": "omnigraph.engine.upkeep.graph_deletion",
    "init": "omnigraph.client.opening",
    "open": "omnigraph.client.opening",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name == "errors":
        return importlib.import_module("omnigraph.errors")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
