"""Catalogs: JSON form, digest, ids, columns and Arrow schemas."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.model.arrow import row_schema, table_schema
from omnigraph.model.catalog import (
    Catalog,
    EdgeType,
    NodeType,
    Property,
    declared,
    encode_catalog,
    fresh_column,
    stable_id,
    used_columns,
)
from omnigraph.model.catalog_file import decode_catalog
from omnigraph.model.schema import (
    Annotation,
    Check,
    Default,
    NodeDecl,
    PropertyDecl,
    Range,
    Schema,
    canonical,
    same,
)
from omnigraph.model.types import Base, EnumType, ListType, ScalarType, VectorType
from tests.strategies.schemas import literals, schemas

STRING = ScalarType(Base.STRING)


def with_literal(value: object) -> Catalog:
    prop = msgspec.convert(
        {"name": "p", "type": {"is": "scalar", "base": "String"}, "id": "1", "column": "p"},
        Property,
    )
    annotation = Annotation("a", msgspec.convert(value, type=object), True)  # type: ignore[arg-type]
    node = NodeType(
        id="0",
        name="N",
        properties=(msgspec.structs.replace(prop, annotations=(annotation,)),),
    )
    return Catalog(generation=1, nodes=(node,))


@given(literals | st.integers())
def test_every_literal_survives_json_with_its_type(value: object) -> None:
    catalog = with_literal(value)
    again = decode_catalog(encode_catalog(catalog))
    kept = again.nodes[0].properties[0].annotations[0].value
    assert repr(kept) == repr(value)
    assert again == catalog
    assert again.digest == catalog.digest


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_would_turn_into_null_are_refused(number: float) -> None:
    with pytest.raises(ValueError, match="cannot hold"):
        Default(number)
    with pytest.raises(ValueError, match="cannot hold"):
        Default((1.0, number))
    with pytest.raises(ValueError, match="cannot hold"):
        Annotation("a", arguments=(("b", number),))
    with pytest.raises(ValueError, match="cannot hold"):
        Range("p", number)


def test_the_digest_is_of_the_content() -> None:
    one, other = with_literal("ü"), with_literal("ü")
    assert one.digest == other.digest
    assert with_literal(1).digest != with_literal(1.0).digest
    assert with_literal(1).digest != with_literal(True).digest
    assert msgspec.structs.replace(one, generation=2).digest != one.digest


def test_the_json_form_of_a_catalog_does_not_change_between_releases() -> None:
    node = NodeType(
        id="0",
        name="N",
        properties=(Property(name="p", type=STRING, id="1", column="_2_p", nullable=True),),
        retired=("p",),
    )
    edge = EdgeType(id="2", name="E", source="N", target="N")
    catalog = Catalog(generation=3, nodes=(node,), edges=(edge,))
    assert encode_catalog(catalog).decode() == (
        '{"edges":[{"id":"2","kind":"edge","name":"E","source":"N","target":"N"}],"generation":3,'
        '"nodes":[{"id":"0","kind":"node","name":"N","properties":[{"column":"_2_p","id":"1",'
        '"name":"p","nullable":true,"type":{"base":"String","is":"scalar"}}],"retired":["p"]}]}'
    )


def test_equality_to_the_letter_tells_one_from_true_and_from_one_point_zero() -> None:
    assert same(Default(1), Default(1))
    assert not same(Default(1), Default(True))
    assert not same(Default(1), Default(1.0))


def test_declared_leaves_out_ids_columns_and_applied_renames() -> None:
    prop = Property(name="p", type=STRING, id="1", column="_2_p", rename_from="q")
    node = NodeType(id="0", name="N", properties=(prop,), retired=("p",), rename_from="M")
    assert declared(Catalog(nodes=(node,))) == Schema(
        nodes=(NodeDecl(name="N", properties=(PropertyDecl(name="p", type=STRING),)),)
    )


@given(schemas())
def test_the_canonical_form_is_stable_and_ignores_the_order_of_types(schema: Schema) -> None:
    form = canonical(schema)
    assert canonical(form) == form
    turned = Schema(
        interfaces=schema.interfaces[::-1], nodes=schema.nodes[::-1], edges=schema.edges[::-1]
    )
    assert canonical(turned) == form


def test_the_canonical_form_sorts_constraints_but_keeps_properties_in_order() -> None:
    def node(names: str) -> NodeDecl:
        return NodeDecl(
            name="N",
            properties=(PropertyDecl(name="b", type=STRING), PropertyDecl(name="a", type=STRING)),
            uniques=tuple((n,) for n in names),
            indexes=tuple((n, "x") for n in names),
            ranges=tuple(Range(n, 0) for n in names),
            checks=tuple(Check(n, "x") for n in names),
        )

    (one,) = canonical(Schema(nodes=(node("ab"),))).nodes
    (other,) = canonical(Schema(nodes=(node("ba"),))).nodes
    assert one == other
    assert [p.name for p in one.properties] == ["b", "a"]


def test_ids_differ_by_kind_type_property_and_the_catalog_they_were_added_to() -> None:
    empty = Catalog()
    origins = [
        (empty, "node", "A", ""),
        (empty, "edge", "A", ""),
        (empty, "node", "B", ""),
        (empty, "node", "A", "p"),
        (Catalog(generation=1), "node", "A", ""),
    ]
    ids = {stable_id(*origin) for origin in origins}
    assert len(ids) == len(origins)
    assert all(len(i) == 16 and int(i, 16) >= 0 for i in ids)
    assert stable_id(Catalog(), "node", "A") == stable_id(empty, "node", "A")


def test_a_column_name_is_never_given_twice() -> None:
    assert fresh_column("p", "f00d", ()) == "p_f00d"
    assert fresh_column("p", "f00d", {"p"}) == "p_f00d"
    assert fresh_column("p", "f00d", {"p_f00d", "p_f00d_2"}) == "p_f00d_3"


def test_tables_use_columns_and_rows_use_names() -> None:
    edge = EdgeType(
        id="0",
        name="E",
        source="N",
        target="N",
        properties=(
            Property(name="when", type=ScalarType(Base.DATETIME), id="1", column="_2_when"),
            Property(name="raw", type=ScalarType(Base.BLOB), id="2", column="raw", nullable=True),
            Property(name="tags", type=ListType(Base.I32), id="3", column="tags"),
            Property(name="kind", type=EnumType(("a",)), id="4", column="kind"),
            Property(name="v", type=VectorType(3), id="5", column="v"),
        ),
        retired=("when", "old"),
    )
    rows, table = row_schema(edge), table_schema(edge)
    assert rows.names == ["id", "src", "dst", "when", "raw", "tags", "kind", "v"]
    assert table.names == ["id", "src", "dst", "_2_when", "raw", "tags", "kind", "v"]
    assert rows.types == table.types
    assert rows.field("when").type == pa.timestamp("ms", tz="UTC")
    assert not rows.field("when").nullable
    assert table.field("_2_when").nullable
    assert table.field("raw").metadata == {b"lance-encoding:blob": b"true"}
    assert used_columns(edge) == {"id", "src", "dst", "_2_when", "raw", "tags", "kind", "v"} | {
        "when",
        "old",
    }


def test_a_type_is_found_by_name_and_by_table_key() -> None:
    node = NodeType(id="0", name="N")
    edge = EdgeType(id="1", name="N", source="N", target="N")
    catalog = Catalog(nodes=(node,), edges=(edge,))
    assert catalog.find("N") is node
    assert catalog.find("node:N") is node
    assert catalog.find("edge:N") is edge
    assert catalog.find("M") is None
