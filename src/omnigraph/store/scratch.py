"""Owns scratch indexes: words of texts that no index covers, in memory, cut and scored as those of
an index are. Nothing of it reaches a graph."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from omnigraph.model.analysis import Analysis
from omnigraph.store.lance_errors import explained
from omnigraph.store.tables import Table

TEXT: Final = "text"
"""The one column of a scratch index."""
_PLACE: Final = "scratch"


def build_scratch(texts: pa.Array, analysis: Analysis) -> Table:
    """The n-th text has the address n."""
    import lance

    with explained(_PLACE):
        handle = lance.write_dataset(
            pa.table({TEXT: texts}),
            f"memory://{_PLACE}",
            max_rows_per_file=1 << 30,
            session=lance.Session(),
        )
        handle.create_scalar_index(TEXT, "INVERTED", with_position=True, **dict(analysis.options))
    return Table(handle, _PLACE, None)
