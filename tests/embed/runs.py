"""What the processes of `test_kills.py` run."""

from __future__ import annotations

import omnigraph
from omnigraph import runtime
from omnigraph.settings import Settings
from tests.bench.worker import pause


def embed(root: str, url: str, commit_every: int | None, stop_at: str, nth: int) -> int:
    """Embeds, and waits to be killed when it comes to a point for the nth time."""
    seen = 0

    def on_reach(point: str) -> None:
        nonlocal seen
        if point == stop_at:
            seen += 1
            if seen == nth:
                pause(point)

    runtime.on_reach = on_reach
    with omnigraph.open(root, settings=Settings(embed_url=url)) as g:
        return g.embed("Doc", batch=5, commit_every=commit_every).embedded
