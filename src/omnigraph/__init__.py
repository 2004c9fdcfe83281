"""OmniGraph: a typed graph database in plain files that branches and merges like Git.

    import omnigraph
    with omnigraph.init("my-graph", schema="people.pg") as g:
        with g.transaction(actor="me") as tx:
            tx.append("Person", {"name": "Alice"})

What is behind these names is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph
    from omnigraph.engine.opening import init, open
    from omnigraph.engine.snapshot import Snapshot
    from omnigraph.engine.upkeep.copying import copy
    from omnigraph.engine.write.transaction import Transaction
    from omnigraph.settings import Settings

__all__ = ["Graph", "Settings", "Snapshot", "Transaction", "__version__", "copy", "init", "open"]
__version__ = "0.1.0"

_HOMES = {
    "Graph": "omnigraph.engine.graph",
    "copy": "omnigraph.engine.upkeep.copying",
    "init": "omnigraph.engine.opening",
    "open": "omnigraph.engine.opening",
    "Snapshot": "omnigraph.engine.snapshot",
    "Transaction": "omnigraph.engine.write.transaction",
    "Settings": "omnigraph.settings",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(home), name)
