"""A load on Spark tells of broken rules in the words of the rule book."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.contract.rule_book import FAULTS, by_load


@pytest.mark.parametrize("name", [n for n, fault in FAULTS.items() if "spark" in fault.surfaces])
def test_spark_says_what_every_other_surface_says(name: str, tmp_path: Path, spark: Any) -> None:
    assert by_load(tmp_path, FAULTS[name], "spark") == FAULTS[name].told
