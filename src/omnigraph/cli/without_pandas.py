"""Owns leaving pandas out of the program. Nobody hands the program a frame, and still Arrow imports
pandas when it makes its first array, to recognize one: twice the time of everything else.

It is for the process of the program alone. There pandas is missing as if it were not installed,
which Arrow and Lance allow, until PySpark, which needs it, is imported. As a library, OmniGraph
leaves imports alone.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType


class _WithoutPandas(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("The program runs without pandas.", name=fullname)
        if fullname == "pyspark":
            let_in()


_FINDER = _WithoutPandas()


def leave_out() -> None:
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def let_in() -> None:
    """Arrow remembers that pandas was missing, and looks again when it is asked for a series."""
    if _FINDER not in sys.meta_path:
        return
    sys.meta_path.remove(_FINDER)
    if "pyarrow" in sys.modules:
        import pyarrow as pa

        with contextlib.suppress(ImportError):
            pa.nulls(0).to_pandas()
