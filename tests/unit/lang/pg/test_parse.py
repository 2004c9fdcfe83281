"""Parsing: places of everything, words that stay usable, and going on after errors."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.lang.diagnostics import Span, position
from omnigraph.lang.pg import compile_schema, parse_schema
from omnigraph.lang.pg.parse import GIVEN_UP
from omnigraph.lang.pg.print import print_schema
from omnigraph.lang.pg.tree import EdgeNode, LiteralNode, Name, NodeNode, PropertyNode
from omnigraph.model.schema import Schema
from tests.unit.lang.pg.drawn import drawn_schemas, scatter


def parts(value: object) -> Iterator[msgspec.Struct]:
    """Every node of a tree."""
    if isinstance(value, tuple):
        for item in value:
            yield from parts(item)
    elif isinstance(value, msgspec.Struct) and not isinstance(value, Span):
        yield value
        for field in value.__struct_fields__:
            yield from parts(getattr(value, field))


@given(drawn_schemas, st.integers(0, 2**32))
def test_every_name_of_a_tree_stands_where_it_says(schema: Schema, seed: int) -> None:
    text = scatter(print_schema(schema), seed)
    for part in parts(parse_schema(text).tree):
        if isinstance(part, Name):
            assert text[part.span.start : part.span.end] == part.text


def test_spans_cover_what_was_written() -> None:
    text = 'node A @x("y", z=1) { a: [I32]? @default([1, -2]), @range(a, -1 .. 5) }'
    node = parse_schema(text).tree.declarations[0]
    assert isinstance(node, NodeNode)
    assert node.body is not None
    prop, constraint = node.body.items
    assert isinstance(prop, PropertyNode)

    def shown(span: Span) -> str:
        return text[span.start : span.end]

    assert shown(node.span) == text
    assert shown(node.annotations[0].span) == '@x("y", z=1)'
    assert shown(node.body.span).startswith("{ a:")
    assert shown(prop.span) == "a: [I32]? @default([1, -2])"
    assert shown(prop.type.span) == "[I32]?"
    assert shown(constraint.span) == "@range(a, -1 .. 5)"
    literals = [part for part in parts(node) if isinstance(part, LiteralNode)]
    assert [shown(literal.span) for literal in literals] == ['"y"', "1", "[1, -2]", "-1", "5"]


SOFT = [
    "type",
    "node",
    "edge",
    "interface",
    "implements",
    "enum",
    "vector",
    "key",
    "unique",
    "index",
    "range",
    "check",
    "card",
]


@pytest.mark.parametrize("word", [*SOFT, "default", "date", "source", "count", "limit", "when"])
def test_a_word_of_the_language_can_name_a_property(word: str) -> None:
    text = f"node A {{ {word}: String @unique({word}) other: I32 @{word}x @x({word}) }}"
    schema = compile_schema(text).schema
    assert schema is not None
    assert schema.nodes[0].properties[0].name == word
    assert schema.nodes[0].uniques == ((word,),)


@pytest.mark.parametrize("word", ["and", "or", "not", "is", "in", "null", "true", "false"])
def test_a_reserved_word_cannot(word: str) -> None:
    checked = compile_schema(f"node A {{ {word}: String }}")
    assert [d.code for d in checked.diagnostics] == ["P103"]


@pytest.mark.parametrize("space", ["", " ", "\n", "/* x */", "// x\n", " /* ( */ // (\n"])
def test_a_constraint_is_one_whatever_stands_before_its_parenthesis(space: str) -> None:
    text = f"node A {{ a: String @{space}key{space}(a) b: String @unique{space} c: String }}"
    schema = compile_schema(text).schema
    assert schema is not None
    assert schema.nodes[0].key == ("a",)
    assert schema.nodes[0].uniques == (("b",),)


def test_card_may_stand_anywhere_among_the_annotations_of_an_edge() -> None:
    for head in ("@card(1..2) @a @b", "@a @card(1..2) @b", "@a @b @card ( 1 .. 2 )"):
        schema = compile_schema(f"node A {{}} edge E: A -> A {head}").schema
        assert schema is not None
        assert (schema.edges[0].card.low, schema.edges[0].card.high) == (1, 2)


def test_strings_know_their_escapes_and_pairs_of_surrogates() -> None:
    text = r'node A @description("\"\\\n\r\t\u00e9\ud83d\ude00😀/") {}'
    schema = compile_schema(text).schema
    assert schema is not None
    assert schema.nodes[0].description == '"\\\n\r\té😀😀/'


def test_an_edge_needs_no_spaces() -> None:
    edge = parse_schema("edge A:B->C").tree.declarations[0]
    assert isinstance(edge, EdgeNode)
    assert (edge.source, edge.target) == (Name("B", Span(7, 8)), Name("C", Span(10, 11)))


def test_five_mistakes_are_five_diagnostics_each_at_its_place() -> None:
    text = """\
node A {
    a String
    b: Strng
    c: I32 @default(
    d: String @unique(x)
}
edge E: A > A
"""
    found = [(d.code, position(text, d.span.start).line) for d in compile_schema(text).diagnostics]
    assert found == [("P001", 2), ("P110", 3), ("P001", 5), ("P002", 7)]
    without = text.replace("    a String\n", "").replace("@default(", "")
    codes = [d.code for d in compile_schema(without).diagnostics]
    assert codes == ["P110", "P107", "P002"]


@pytest.mark.parametrize("word", ["nod", "Node", "ndoe", "type", "vertex", "class"])
def test_a_misspelled_keyword_is_read_as_what_was_meant(word: str) -> None:
    text = f"{word} Person {{ name: String }} edge Knows: Person -> Person"
    (diagnostic,) = compile_schema(text).diagnostics
    assert diagnostic.code == "P001"
    assert diagnostic.suggestion == "did you mean `node`?"
    tree = parse_schema(text).tree
    assert [type(d) for d in tree.declarations] == [NodeNode, EdgeNode]


def test_a_declaration_in_an_open_body_closes_it() -> None:
    tree = parse_schema("node A { a: String node B { b: I32 }").tree
    assert [d.name.text for d in tree.declarations if isinstance(d, NodeNode) and d.name] == [
        "A",
        "B",
    ]


def test_a_parser_that_gave_up_says_so() -> None:
    parsed = parse_schema("node A { a String }\n" * (GIVEN_UP + 5))
    assert not parsed.complete
    assert len(parsed.diagnostics) == GIVEN_UP
    last = compile_schema("node A { a String }\n" * (GIVEN_UP + 5)).diagnostics[-1]
    assert (last.code, last.message) == ("P000", "at least 9900 more problems after this one")
