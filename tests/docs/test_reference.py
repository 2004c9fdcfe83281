"""The pages that are made from the program are what the program says now. `UPDATE_GOLDEN=1`
writes them anew."""

from __future__ import annotations

import os
import re

import pytest

from omnigraph.cli.commands import COMMANDS
from tests.docs.reference import (
    EXIT_CODES,
    GUIDE,
    PAGES,
    SCHEMA_CODES,
    all_errors,
    render,
    schema_codes_in_source,
)

UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_what_the_program_says(name: str) -> None:
    path = GUIDE / name
    made = render(PAGES[name])
    if UPDATE:
        path.write_text(made, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == made, "the program has changed: run `make docs`"


def test_every_error_says_what_it_means_and_every_exit_code_is_told() -> None:
    page = (GUIDE / "errors.md").read_text(encoding="utf-8")
    for error in all_errors():
        assert f"| `{error.code}` | {error.exit_code} |" in page
        assert error.__doc__, f"{error.__name__} says nothing"
        assert error.exit_code in EXIT_CODES


def test_codes_of_errors_are_their_own() -> None:
    codes = [error.code for error in all_errors()]
    assert len(codes) == len(set(codes))


def test_every_code_of_a_schema_change_is_told() -> None:
    assert schema_codes_in_source() == set(SCHEMA_CODES)


def test_every_command_is_in_the_reference() -> None:
    page = (GUIDE / "cli.md").read_text(encoding="utf-8")
    for command in COMMANDS.values():
        assert f"### omnigraph {command.name}\n" in page


def test_what_models_read_first_leads_to_every_page() -> None:
    text = (GUIDE.parent / "llms.txt").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert all((GUIDE.parent / target).is_file() for target in targets)
    assert {f"user/{path.name}" for path in GUIDE.glob("*.md")} - {*targets} == {"user/README.md"}
    assert len(text) < 5_000
