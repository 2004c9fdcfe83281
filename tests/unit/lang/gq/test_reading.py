"""The reading rules: what a word or sign is, by what stands around it."""

from __future__ import annotations

import pytest

from omnigraph.lang.diagnostics import Span, render_all
from omnigraph.lang.gq import compile_file, compile_query, parse_queries, queries_of, tree
from tests.unit.lang.gq.world import catalog, codes


def parsed(text: str) -> tree.Query:
    result = parse_queries(text)
    assert result.diagnostics == (), render_all(result.diagnostics, text)
    return queries_of(result.file)[0]


def clauses(text: str, parameters: str = "") -> list[type]:
    """The kinds of the clauses of a match."""
    query = parsed(f"query q({parameters}) {{ match {{ {text} }} return {{ $p }} }}")
    assert isinstance(query.body, tree.Read)
    return [type(clause) for clause in query.body.clauses]


B, T, F, K = tree.Binding, tree.Traversal, tree.Filter, tree.Block


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$a: T", [B]),
        ("$a: T { p: $b }", [B]),
        ("$a e $b", [T]),
        ("$a E $b", [T]),
        ("$a $w:e $b", [T]),
        ("$a $w : e $b", [T]),
        ("$a (e|f) $b", [T]),
        ("$a * $b", [T]),
        ("$a <e> $b", [T]),
        ("$a <e|F> $b", [T]),
        ("$a <*> $b", [T]),
        ("$a e{1,2} $b", [T]),
        ("$a e { 2 } $b", [T]),
        ("$a < $b", [F]),
        ("$a < b", [F]),
        ("$a < count { $a e $b } $a e $b", [F, T]),
        ("$a = $b $c e $d", [F, T]),
        ("$a.x = 1 $b: T", [F, B]),
        ("$a.x - 1 > 2", [F]),
        ("$a.x > 1 -$b.y $c: T", [F, B]),
        ("2 * $a.x = 1", [F]),
        ("$a and $b", [F]),
        ("$a is null $b is not null", [F, F]),
        ("lower($a.x) = 1 upper($a.x) = 2", [F, F]),
        ("not { $a e $b }", [K]),
        ("optional { $a e $b }", [K]),
        ("not exists { $a e $b }", [F]),
        ("exists { $a e $b } count { $a e $b } > 1", [F, F]),
        ("not $a.x = 1 not { $a e $b }", [F, K]),
        ("optional = 1 exists = 2 count = 3", [F, F, F]),
        ("optional(1) = 1", [F]),
        ("(1 = 1) ($a.x = 2)", [F, F]),
        ("$a match $b $b return $c $c where $d", [T, T, T]),
        ("$a return{1,2} $b", [T]),
        ("$a query $b", [T]),
        ("$a.not = 1 $a.in in [1]", [F, F]),
    ],
)
def test_the_token_after_a_leading_variable_decides(text: str, expected: list[type]) -> None:
    assert clauses(text) == expected


@pytest.mark.parametrize("word", ["contains", "starts_with", "ends_with"])
def test_an_operator_word_between_two_bare_variables_is_an_edge(word: str) -> None:
    assert clauses(f"$a {word} $b") == [T]
    assert clauses(f"$a {word} $_") == [T]
    assert clauses(f"$a {word}{{1,2}} $b") == [T]
    assert clauses(f"$a $w:{word} $b") == [T]
    assert clauses(f"$a {word} $b.x") == [F]
    assert clauses(f'$a {word} "x"') == [F]
    assert clauses(f"$a.x {word} $b") == [F]
    assert clauses(f"$a {word} $b", "$a: String") == [F]
    assert clauses(f"$a {word} $b", "$b: String") == [F]
    assert clauses(f"$a {word} $b", "$c: String") == [T]


def test_the_parameters_of_one_query_say_nothing_about_the_next() -> None:
    text = "query q($a: String) { match { $a contains $b } return { $b } } "
    bare = parse_queries(text + "match { $a contains $b } return { $b }").file.queries[1]
    assert isinstance(bare.body, tree.Read)
    assert isinstance(bare.body.clauses[0], tree.Traversal)


SOFT = ["type", "date", "when", "source", "count", "limit", "match", "return", "order", "as"]
SOFT += ["contains", "distinct", "exists", "optional", "query", "set", "where", "from", "asc"]


@pytest.mark.parametrize("word", SOFT)
def test_a_word_of_the_language_can_be_a_name(word: str) -> None:
    query = parsed(
        f"query {word}(${word}: I32) {{ match {{ ${word}x: T {{ {word}: 1, b: 2 }} "
        f"${word}x.{word} = ${word} ${word}x {word}{{1,2}} $y }} "
        f"return {{ ${word}x.{word} as {word}, $y }} order {{ {word} desc }} limit ${word} }}"
    )
    assert query.name is not None
    assert query.name.text == word
    parsed(f"insert T {{ {word}: 1 b: 2, {word}: 3 }}")
    parsed(f"update T set {{ {word}: {word} }} where {word} = 1")


@pytest.mark.parametrize("word", ["and", "or", "not", "is", "in", "null", "true", "false"])
def test_a_reserved_word_is_a_name_only_after_a_dot(word: str) -> None:
    assert clauses(f"$a.{word} = 1") == [F]
    assert parse_queries(f"insert T {{ {word}: 1 }}").diagnostics != ()


def test_mutations_without_a_name_are_one_query_and_reads_are_one_each() -> None:
    text = "insert A {} delete A where x = 1 match { $a: A } return { $a } insert A {}"
    bodies = [query.body for query in parse_queries(text).file.queries]
    assert [len(body) if isinstance(body, tuple) else "read" for body in bodies] == [2, "read", 1]


def test_numbers_have_no_sign_so_that_a_minus_subtracts() -> None:
    query = parsed("match { $a.x = 5-3 } return { $a }")
    assert isinstance(query.body, tree.Read)
    clause = query.body.clauses[0]
    assert isinstance(clause, tree.Filter)
    assert isinstance(clause.condition, tree.Comparison)
    right = clause.condition.right
    assert isinstance(right, tree.Chain)
    assert right.operators == ("-",)


def test_operators_bind_as_the_language_says() -> None:
    query = parsed("match { 1 + 2 * -3 = 4 and not 5 = 6 or true } return { $a }")
    assert isinstance(query.body, tree.Read)
    clause = query.body.clauses[0]
    assert isinstance(clause, tree.Filter)
    either = clause.condition
    assert isinstance(either, tree.Chain)
    assert either.operators == ("or",)
    both = either.operands[0]
    assert isinstance(both, tree.Chain)
    assert both.operators == ("and",)
    assert isinstance(both.operands[0], tree.Comparison)
    assert isinstance(both.operands[0].left, tree.Chain)
    assert isinstance(both.operands[1], tree.Unary)


def test_spans_cover_what_was_written() -> None:
    text = "query q($a: I32 = 1) { match { $p: Person { name: ($a) } } return { $p.name as n, } }"
    query = parsed(text)
    assert isinstance(query.body, tree.Read)

    def shown(span: Span) -> str:
        return text[span.start : span.end]

    assert shown(query.span) == text
    assert shown(query.parameters[0].span) == "$a: I32 = 1"
    assert shown(query.body.projections[0].span) == "$p.name as n"
    binding = query.body.clauses[0]
    assert isinstance(binding, tree.Binding)
    assert shown(binding.span) == "$p: Person { name: ($a) }"
    assert shown(binding.entries[0].span) == "name: ($a)"


def test_mistakes_in_one_query_do_not_hide_those_of_another() -> None:
    text = "query a() { match { $p Person } return { $p } } "
    text += "query b() { match { $p: Persn } return { $p } }"
    assert [d.code for d in compile_file(text, catalog()).diagnostics] == ["Q001", "T1"]


def test_a_named_query_is_checked_alone_but_the_text_must_parse() -> None:
    good = "query a() { match { $p: Person } return { $p } } "
    wrong_type = "query b() { match { $p: Persn } return { $p } }"
    assert compile_query(good + wrong_type, catalog(), "a").query is not None
    assert compile_query(good + "query b() {", catalog(), "a").query is None


def test_a_filter_is_never_a_variable_alone() -> None:
    assert codes("query q($f: Bool) { match { $p: Person  $f } return { $p } }") == ["T7"]
