"""Every page of the guide does what it says, command by command. `UPDATE_GOLDEN=1` brings the
output in the pages up to date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import read_blocks, work_through
from tests.docs.reference import PAGES

GUIDE = Path(__file__).parents[2] / "docs" / "user"
README = GUIDE.parents[1] / "README.md"
ON_SPARK = ("spark.md",)
"""Run by tests/spark/test_guide.py, with a session."""
WRITTEN = [README, *sorted(path for path in GUIDE.glob("*.md") if path.name not in PAGES)]
HERE = [path for path in WRITTEN if path.name not in ON_SPARK]


@pytest.mark.parametrize("path", HERE, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_page_does_what_it_says(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    work_through(path, tmp_path)


def test_every_link_of_the_guide_leads_somewhere() -> None:
    for path in (README, *GUIDE.glob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path.name} points at {target}"


def test_the_first_page_names_all_others() -> None:
    first = (GUIDE / "README.md").read_text(encoding="utf-8")
    for path in GUIDE.glob("*.md"):
        assert path.name == "README.md" or f"({path.name})" in first, path.name


def test_no_page_has_a_block_that_nobody_runs() -> None:
    """A block that is only to be read is data for another one, or what a program prints."""
    for path in WRITTEN:
        for block in read_blocks(path.read_text(encoding="utf-8")):
            assert block.language != "text", f"{path.name} line {block.start}"
            data = block.language in ("json", "toml", "csv", "cedar")
            assert not data or block.file is not None, f"{path.name} line {block.start}"


def test_every_page_has_blocks_that_run() -> None:
    for path in WRITTEN:
        if path.name not in ("README.md", "s3.md", "billion.md"):
            blocks = list(read_blocks(path.read_text(encoding="utf-8")))
            assert any(block.language in ("console", "python") for block in blocks), path.name
