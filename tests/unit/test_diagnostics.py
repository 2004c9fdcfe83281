"""Diagnostics: positions in any text, and what a reader sees."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.lang.diagnostics import (
    Diagnostic,
    Position,
    Severity,
    Source,
    Span,
    encode_diagnostics,
    position,
    render,
    render_all,
    sort_diagnostics,
)


def at(start: int, end: int, message: str = "wrong", code: str = "P001") -> Diagnostic:
    return Diagnostic(code=code, message=message, span=Span(start, end))


@pytest.mark.parametrize(
    ("text", "offset", "line", "column"),
    [
        ("", 0, 1, 1),
        ("abc", 2, 1, 3),
        ("a\nb", 1, 1, 2),
        ("a\nb", 2, 2, 1),
        ("a\r\nb", 3, 2, 1),
        ("a\rb", 2, 2, 1),
        ("a\n", 2, 2, 1),
        ("é𝄞x", 2, 1, 3),
        ("abc", 99, 1, 4),
        ("abc", -1, 1, 1),
    ],
)
def test_a_position_counts_lines_and_characters_from_one(
    text: str, offset: int, line: int, column: int
) -> None:
    assert position(text, offset) == Position(line, column)


@given(st.text(alphabet="ab\r\né\t漢"), st.integers(0, 40))
def test_a_position_finds_its_character_again(text: str, offset: int) -> None:
    source = Source(text)
    found = source.position(offset)
    character = text[offset : offset + 1]
    if character and character not in "\r\n":
        assert source.line(found.line)[found.column - 1] == character


def test_a_diagnostic_is_shown_with_its_line_and_carets() -> None:
    text = "node A {\n    name: Strng @key\n}\n"
    diagnostic = Diagnostic(
        code="P110",
        message="there is no property type `Strng`",
        span=Span(19, 24),
        expected=("String", "Bool", "I32"),
        suggestion="did you mean `String`?",
    )
    assert render(diagnostic, text, "schema.pg") == (
        "error[P110]: there is no property type `Strng`\n"
        " --> schema.pg:2:11\n"
        "  |\n"
        "2 |     name: Strng @key\n"
        "  |           ^^^^^\n"
        "  = expected: String, Bool or I32\n"
        "  = help: did you mean `String`?\n"
    )


def test_a_warning_says_that_it_is_one_and_a_text_needs_no_path() -> None:
    warning = Diagnostic(code="L101", message="unused", span=Span(0, 1), severity=Severity.WARNING)
    assert render(warning, "x").splitlines()[:2] == ["warning[L101]: unused", " --> <text>:1:1"]


def shown(text: str, start: int, end: int) -> tuple[str, str]:
    """The line with the text and the line with the carets."""
    lines = render(at(start, end), text).splitlines()
    return lines[3], lines[4]


def test_tabs_are_as_wide_under_the_text_as_in_it() -> None:
    assert shown("\tab\tcd", 4, 6) == ("1 |     ab    cd", "  |           ^^")


def test_wide_characters_get_two_carets_and_combining_ones_none() -> None:
    assert shown("漢字x", 0, 2) == ("1 | 漢字x", "  | ^^^^")
    assert shown("e\u0301x", 2, 3) == ("1 | e\u0301x", "  |  ^")


def test_the_end_of_a_text_gets_one_caret() -> None:
    assert shown("ab", 2, 2) == ("1 | ab", "  |   ^")
    assert shown("", 0, 0) == ("1 |", "  | ^")


def test_a_line_that_ends_with_crlf_is_shown_without_its_end() -> None:
    assert shown("ab\r\ncd\r\n", 0, 2) == ("1 | ab", "  | ^^")


def test_a_span_over_many_lines_marks_the_first_and_names_the_last() -> None:
    assert shown("ab\ncd\nef", 1, 7) == ("1 | ab", "  |  ^ … to line 3")


def test_a_very_long_line_is_cut_around_the_place() -> None:
    text = "x" * 500_000 + "WRONG" + "y" * 500_000
    line, carets = shown(text, 500_000, 500_005)
    assert line.startswith("1 | …x")
    assert line.endswith("y…")
    assert len(line) < 120
    assert line[carets.index("^") : carets.rindex("^") + 1] == "WRONG"


@given(st.integers(40, 120), st.integers(0, 130), st.integers(0, 130))
def test_no_more_of_a_line_is_shown_than_asked_for(columns: int, start: int, length: int) -> None:
    text = "".join(chr(ord("a") + n % 26) for n in range(130))
    found = render_all([at(start, min(130, start + length))], text, columns=columns)
    line, carets = found.splitlines()[3:5]
    assert len(line) <= len("1 | ") + columns + len("……")
    assert len(line.replace("…", "")) == len("1 | ") + min(columns, 130)
    assert line[carets.index("^") :].startswith(text[start : start + 1])


def test_carets_never_leave_a_line_that_is_cut() -> None:
    line, carets = shown("x" * 10_000, 10, 9_000)
    assert len(carets) <= len(line)


def test_what_would_move_the_cursor_is_not_shown_as_it_is() -> None:
    line, _ = shown("a\x1b[31m\u202eb\x00", 0, 1)
    assert "\x1b" not in line
    assert "\u202e" not in line
    assert "\x00" not in line


@given(st.text(), st.integers(-2, 60), st.integers(-2, 60))
def test_any_span_of_any_text_can_be_shown(text: str, start: int, end: int) -> None:
    lines = render(at(start, end), text).splitlines()
    assert "^" in lines[-1] or "^" in lines[-2]


def test_many_diagnostics_stand_apart_and_none_are_nothing() -> None:
    text = "abc"
    both = render_all([at(0, 1, "one"), at(1, 2, "two")], text, "a.pg")
    assert both == render(at(0, 1, "one"), text, "a.pg") + "\n" + render(
        at(1, 2, "two"), text, "a.pg"
    )
    assert render_all([], text) == ""


def test_diagnostics_sort_by_place_and_then_by_code() -> None:
    first, second, third = at(0, 1, code="P002"), at(0, 2), at(5, 6)
    assert sort_diagnostics([third, second, first]) == (first, second, third)
    assert [d.code for d in sort_diagnostics([at(0, 1, code="P9"), at(0, 1, code="P1")])] == [
        "P1",
        "P9",
    ]


def test_the_json_form_has_offsets_lines_and_columns() -> None:
    diagnostic = Diagnostic(code="P001", message="wrong", span=Span(2, 3), suggestion="no")
    assert msgspec.json.decode(encode_diagnostics([diagnostic], "a\nb\n", "a.pg")) == [
        {
            "code": "P001",
            "severity": "error",
            "message": "wrong",
            "path": "a.pg",
            "span": {"start": 2, "end": 3},
            "start": {"line": 2, "column": 1},
            "end": {"line": 2, "column": 2},
            "expected": [],
            "suggestion": "no",
        }
    ]
