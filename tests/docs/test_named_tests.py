"""What the pages about failures and invariants call a test is one: files and names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
PAGES = TESTS.parent / "docs" / "dev"
TOLD = re.compile(r"`([^`]+)`")
FILE = re.compile(r"(?:tests/)?((?:[a-z_0-9]+/)*test_[a-z_0-9]+\.py)")
FOLDER = re.compile(r"tests/([a-z_0-9/]+)")
SENTENCE = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+){3,}")
WORLD = "world"


def rows(page: str) -> list[list[str]]:
    """The cells of every row of every table, without heads and rules."""
    found: list[list[str]] = []
    fresh = True
    for line in (PAGES / page).read_text().splitlines():
        if not line.startswith("|"):
            fresh = True
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not fresh and set(cells[0]) != {"-"}:
            found.append(cells)
        fresh = False
    return found


def files_of(name: str) -> list[Path]:
    """By path below `tests`, or by its name alone, which several may share."""
    return [TESTS / name] if "/" in name else sorted(TESTS.rglob(name))


def missing(cell: str) -> list[str]:
    """What a cell names and is not there. Names of tests belong to the file before them."""
    lacking: list[str] = []
    text = ""
    for told in TOLD.findall(cell):
        if match := FILE.fullmatch(told):
            there = [path for path in files_of(match[1]) if path.is_file()]
            text = "\n".join(path.read_text() for path in there)
            lacking += [] if there else [told]
        elif match := FOLDER.fullmatch(told):
            lacking += [] if (TESTS / match[1]).exists() else [told]
        elif SENTENCE.fullmatch(told) and f"def test_{told}(" not in text:
            lacking.append(told)
    return lacking


def names_a_test(cell: str) -> bool:
    told = TOLD.findall(cell)
    return any(FILE.fullmatch(one) or FOLDER.fullmatch(one) or one == WORLD for one in told)


@pytest.mark.parametrize("page", ["failures.md", "invariants.md"])
def test_every_row_names_tests_that_exist(page: str) -> None:
    found = rows(page)
    assert len(found) > 25
    for cells in found:
        assert any(names_a_test(cell) for cell in cells[1:]), f"no test: {cells[0]}"
        lacking = [one for cell in cells[1:] for one in missing(cell)]
        assert lacking == [], cells[0]


def test_every_failure_names_a_test_by_its_sentence() -> None:
    for cells in rows("failures.md"):
        assert any(SENTENCE.fullmatch(one) for one in TOLD.findall(cells[-1])), cells[0]


@pytest.mark.parametrize(
    "cell",
    [
        "`unit/engine/test_nowhere.py`",
        "`tests/nowhere`",
        "`unit/engine/test_cleanup.py`: `a_test_that_nobody_wrote`",
        "`a_test_that_belongs_to_no_file`",
    ],
)
def test_a_name_that_is_not_there_is_found(cell: str) -> None:
    assert missing(cell)
