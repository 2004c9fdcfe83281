"""Large and hostile texts get an answer in time that grows no faster than they do."""

from __future__ import annotations

import time

import pytest

from omnigraph.lang.pg import compile_schema
from omnigraph.lang.pg.format import format_schema

M = 1_000_000
TYPE = """\
node T{0} implements Named {{
    name: String @key
    age: I32? @range(age, 0..150)
    status: enum(open, closed, in-progress) @default("open")
    // a comment
    bio: String? @description("something to say") @index
}}
edge E{0}: T{0} -> T{0} @card(0..5)
"""


def hostile(size: int) -> dict[str, str]:
    """Texts of about so many characters."""
    return {
        "comments that look nested": "/* " * (size // 3) + "*/ node A {}",
        "many comments": "/**/" * (size // 4) + "node A {}",
        "many line comments": "//\n" * (size // 3) + "node A {}",
        "a comment without an end": "node A {} /*" + "x/*" * (size // 3),
        "a comment of stars": "/*" + "*" * size,
        "a string without an end": 'node A @description("' + "x" * size,
        "strings without an end": 'node A { a: String @description("\n' * (size // 50),
        "backslashes": '"' + "\\" * size,
        "quotes": '"' * size,
        "brackets": "node A { a: " + "[" * size,
        "parentheses": "node A { a: enum(" + "(" * size,
        "braces": "{" * size,
        "bodies": "node A {" * (size // 8),
        "annotations": "@" * size,
        "keywords": "node " * (size // 5),
        "digits": "node A { a: Vector(" + "9" * size + ") }",
        "a long name": "node " + "A" * size + " {}",
        "foreign characters": "é$" * (size // 2),
        "spaces": " " * size,
        "colons": "node A { a: " + "a:" * (size // 2),
        "unknown ends": "".join(
            f"node T{i} {{}} edge E{i}: T{i} -> X{i}\n" for i in range(size // 100)
        ),
        "unknown properties": "node A { a: String " + "@unique(x) " * (size // 30) + "}",
        "many properties": "node A {"
        + "".join(f"p{i}: I32 @unique\n" for i in range(size // 50))
        + "}",
        "many ranges": "node A {"
        + "".join(f"p{i}: I32 @default(5) @range(p{i}, 0..9)\n" for i in range(size // 100))
        + "}",
        "many errors": "".join(f"node T{i} {{ a: Strng }}\n" for i in range(size // 100)),
    }


@pytest.mark.parametrize("size", [100_000, pytest.param(M, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", hostile(100))
def test_hostile_text_is_answered_in_seconds(name: str, size: int) -> None:
    text = hostile(size)[name]
    started = time.process_time()
    checked = compile_schema(text)
    assert (checked.schema is None) == bool(checked.diagnostics)
    assert time.process_time() - started < 3 + 20 * size / M


@pytest.mark.slow
def test_ten_thousand_types_are_checked_and_formatted_in_seconds() -> None:
    text = "interface Named { name: String }\n" + "".join(TYPE.format(i) for i in range(10_000))
    started = time.process_time()
    schema = compile_schema(text).schema
    assert schema is not None
    assert (len(schema.nodes), len(schema.edges)) == (10_000, 10_000)
    assert time.process_time() - started < 20
    formatted = format_schema(text).text
    assert formatted is not None
    assert time.process_time() - started < 50


def test_of_ten_thousand_errors_a_hundred_are_told_and_the_rest_counted() -> None:
    diagnostics = compile_schema(hostile(M)["many errors"]).diagnostics
    assert len(diagnostics) == 101
    assert diagnostics[-1].code == "P000"
    assert diagnostics[-1].message == "9900 more problems after this one"


@pytest.mark.slow
def test_ten_megabytes_are_answered() -> None:
    text = "interface Named { name: String }\n" + "".join(TYPE.format(i) for i in range(39_000))
    assert len(text) > 10 * M
    started = time.process_time()
    assert compile_schema(text).schema is not None
    assert time.process_time() - started < 60
