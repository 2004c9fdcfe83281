"""A catalog and texts for tests of `.gq`."""

from __future__ import annotations

import random
from functools import cache

import msgspec

from omnigraph.lang.diagnostics import Span, render_all
from omnigraph.lang.gq import compile_query
from omnigraph.lang.gq.checked import CheckedQuery
from omnigraph.lang.gq.grammar import load_grammar
from omnigraph.lang.pg import compile_schema
from omnigraph.lang.tokens import Token
from omnigraph.model.catalog import Catalog
from omnigraph.model.schema import Schema
from omnigraph.plan.migrate import apply_steps, plan_migration

SCHEMA = """
interface Named { name: String }
node Person implements Named {
    name: String @key
    age: I32?
    born: Date?
    seen: DateTime?
    tags: [String]
    photo: Blob?
    face: Vector(3)?
    status: enum(open, closed)?
    bio: String?
    score: F64 @default(0.0)
    serial: U64?
    happy: Bool?
}
node Company implements Named { name: String @key size: I64? }
node City { name: String? }
edge Knows: Person -> Person { since: I32? }
edge Likes: Person -> Person { since: I32? stars: I32? }
edge WorksAt: Person -> Company
edge Contains: City -> Company
"""


def catalog_of(schema: Schema) -> Catalog:
    return apply_steps(None, plan_migration(None, schema).steps)


@cache
def catalog() -> Catalog:
    schema = compile_schema(SCHEMA).schema
    assert schema is not None
    return catalog_of(schema)


def checked(text: str) -> CheckedQuery:
    result = compile_query(text, catalog())
    assert result.query is not None, render_all(result.diagnostics, text)
    return result.query


def codes(text: str) -> list[str]:
    return [diagnostic.code for diagnostic in compile_query(text, catalog()).diagnostics]


def tokens_of(text: str) -> list[Token]:
    return load_grammar().lexer.tokens(text, lambda _: None)


def without_spans(value: object) -> object:
    """A tree as plain data, without its places."""
    if isinstance(value, tuple):
        return [without_spans(item) for item in value]
    if isinstance(value, msgspec.Struct) and not isinstance(value, Span):
        fields = {n: without_spans(getattr(value, n)) for n in value.__struct_fields__}
        fields.pop("span", None)
        return {"": type(value).__name__, **fields}
    return value


_SEPARATORS = [" ", "\n", "\t", "\r\n", "\n\n\n", " /* c{} */ ", " // c{}\n", "\n// c{}\n"]
_SEPARATORS += ["\n/* c{} */\n", " /* c{}\n   more */ ", "\n/*\n * c{}\n */ ", " /*c{}*//*d{}*/ "]


def scatter(text: str, seed: int, *, comments: float = 0.3) -> str:
    """The same tokens with other white space, and comments between them."""
    chance = random.Random(seed)
    parts: list[str] = []
    for number, token in enumerate(tokens_of(text)):
        between = " " if chance.random() > comments else chance.choice(_SEPARATORS)
        parts += [between.replace("{}", str(number)), token.text]
    return "".join(parts)
