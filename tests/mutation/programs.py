"""Random programs of mutations, most of which do something."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.mutation.naive import Delete, Expression, Insert, Program, Statement, Update

PEOPLE = ["a", "b", "c", "ü", "select", "O'x\"\\"]
TAGS = ["x", "y", "Zürich"]

people = st.sampled_from(PEOPLE)
small = st.integers(-3, 40)


def value(held: Any) -> Expression:
    return ("value", held)


def _column(name: str) -> Expression:
    return ("column", name)


def integers(column: str | None) -> st.SearchStrategy[Expression]:
    """Over a column, or over nothing where an insert cannot read one."""
    leaves = [small.map(value), st.just(value(None)), st.just(("param", "none"))]
    if column is not None:
        leaves += [st.just(_column(column))] * 3
    leaf = st.one_of(leaves)

    def grow(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        return st.one_of(
            st.tuples(st.sampled_from(["+", "-", "*", "%"]), inner, inner),
            inner.map(lambda e: ("call", "coalesce", e, value(7))),
        )

    return st.recursive(leaf, grow, max_leaves=3)


def nullable(held: st.SearchStrategy[Any]) -> st.SearchStrategy[Expression]:
    return st.one_of(held, held, st.none()).map(value)


scores = st.one_of(
    st.sampled_from([0.0, 1.5, -2.5, 10.0]).map(value),
    st.just(("param", "nan")),
    st.just(value(None)),
)
comparators = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])


def _tests(type_: str) -> list[st.SearchStrategy[Expression]]:
    match type_:
        case "Person":
            name = st.tuples(st.just("="), st.just(_column("name")), people.map(value))
            return [
                name,
                name,
                people.map(lambda p: ("=", ("id",), value(p))),
                st.just(("=", _column("name"), ("param", "who"))),
                st.just(("in", _column("name"), ("param", "some"))),
                st.just(("in", ("id",), ("param", "some"))),
                st.tuples(comparators, st.just(_column("age")), integers("age")),
                st.tuples(comparators, st.just(_column("score")), scores),
                st.sampled_from(TAGS).map(lambda t: ("=", _column("tag"), value(t))),
                st.just(("null?", _column("tag"), False)),
                st.just(("starts_with", _column("name"), value("s"))),
                st.just((">", ("call", "length", _column("name")), value(1))),
            ]
        case "Note":
            return [
                st.tuples(comparators, st.just(_column("n")), integers("n")),
                st.just(("=", _column("text"), value("none"))),
            ]
        case _:
            own = "since" if type_ == "Knows" else "w"
            ends = st.sampled_from(["src", "dst"]).map(_column)
            return [
                st.tuples(st.just("="), ends, people.map(value)),
                st.tuples(st.just("!="), ends, ends),
                st.tuples(comparators, st.just(_column(own)), integers(own)),
                st.just(("null?", _column(own), True)),
            ]


def conditions(type_: str) -> st.SearchStrategy[Expression]:
    def grow(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        return st.one_of(
            st.tuples(st.sampled_from(["and", "and", "or"]), inner, inner),
            inner.map(lambda e: ("not", e)),
        )

    return st.recursive(st.one_of(_tests(type_)), grow, max_leaves=3)


def _values(type_: str, *, reads: bool) -> dict[str, st.SearchStrategy[Expression]]:
    match type_:
        case "Person":
            return {
                "age": integers("age" if reads else None),
                "score": scores,
                "tag": nullable(st.sampled_from(TAGS)),
            }
        case "Note":
            return {"text": nullable(st.sampled_from(TAGS))}
        case "Knows":
            return {"since": integers("since" if reads else None)}
        case _:
            return {"w": integers("w" if reads else None)}


@st.composite
def statements(draw: st.DrawFn) -> Statement:
    type_ = draw(st.sampled_from(["Person", "Person", "Person", "Knows", "Likes", "Note"]))
    what = draw(st.sampled_from(["insert", "insert", "insert", "update", "update", "delete"]))
    if what == "delete":
        return Delete(type_, draw(conditions(type_)))
    choices = _values(type_, reads=what == "update")
    if what == "update":
        names = draw(st.lists(st.sampled_from(sorted(choices)), min_size=1, unique=True))
        set_ = tuple((name, draw(choices[name])) for name in names)
        return Update(type_, set_, draw(conditions(type_)))
    names = draw(st.lists(st.sampled_from(sorted(choices)), unique=True))
    given = [(name, draw(choices[name])) for name in names]
    match type_:
        case "Person":
            given.insert(0, ("name", value(draw(people))))
        case "Note":
            given.insert(0, ("n", value(draw(small))))
        case _:
            given += [(end, value(draw(st.sampled_from(PEOPLE[:4])))) for end in ("src", "dst")]
    return Insert(type_, tuple(given))


programs: st.SearchStrategy[Program] = st.lists(statements(), min_size=1, max_size=6)

START: Program = [
    *[Insert("Person", (("name", value(p)), ("age", value(n)))) for n, p in enumerate(PEOPLE[:4])],
    Insert("Knows", (("src", value("a")), ("dst", value("b")), ("since", value(3)))),
    Insert("Knows", (("src", value("a")), ("dst", value("b")))),
    Insert("Likes", (("src", value("b")), ("dst", value("c")), ("w", value(1)))),
    Insert("Note", (("n", value(1)),)),
    Insert("Note", (("n", value(2)), ("text", value("x")))),
]
