"""The page of the guide about Spark does what it says, on one session. `UPDATE_GOLDEN=1` brings its
output up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import work_through
from tests.docs.test_guide import GUIDE, ON_SPARK


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", ON_SPARK)
def test_a_page_does_what_it_says_on_spark(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    work_through(GUIDE / name, tmp_path)
