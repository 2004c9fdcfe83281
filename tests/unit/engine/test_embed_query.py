"""A text in a query becomes a vector by the property's own model, once a session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import omnigraph
from omnigraph.engine.embedding.models import embed_query
from omnigraph.engine.session import Session
from omnigraph.errors import NoModel, ProviderUnavailable, UnknownModel
from omnigraph.model.catalog import Property
from omnigraph.settings import Settings
from omnigraph.telemetry import Ledger
from tests.bench.embeddings import Provider, provider, unit_vector_of
from tests.unit.engine.clock import Clock

SCHEMA = """
node Doc {
  name: String @key
  text: String?
  near: Vector(64)? @embed("text")
  far: Vector(8)? @embed("text", model="openai:small")
  odd: Vector(8)? @embed("text", model="tiny")
  plain: Vector(4)?
}
"""


@pytest.fixture
def there() -> Iterator[Provider]:
    with provider() as made:
        yield made


@pytest.fixture
def session(there: Provider, tmp_path: Path) -> Session:
    settings = Settings(embed_url=there.url)
    root = tmp_path / "g"
    return omnigraph.init(root, schema=SCHEMA, settings=settings, runtime=Clock())._session


def prop(session: Session, name: str) -> Property:
    head = session.live_head("main", Ledger())
    catalog = session.read_catalog(head.catalog, Ledger())
    return next(p for p in catalog.nodes[0].properties if p.name == name)


def test_the_property_says_the_model_and_the_size(session: Session) -> None:
    assert embed_query(session, prop(session, "far"), "fox") == pytest.approx(
        unit_vector_of("fox", 8), abs=1e-7
    )
    near = embed_query(session, prop(session, "near"), "fox")
    assert len(near) == 64
    assert np.linalg.norm(near) == pytest.approx(1, abs=1e-6)


def test_a_text_is_asked_for_once_a_session(session: Session, there: Provider) -> None:
    first = embed_query(session, prop(session, "far"), "fox")
    assert embed_query(session, prop(session, "far"), "fox") == first
    embed_query(session, prop(session, "far"), "whale")
    assert there.texts == ["fox", "whale"]


@pytest.mark.parametrize("text", ["", "  \n"])
def test_a_blank_text_is_near_nothing_and_costs_nothing(
    session: Session, there: Provider, text: str
) -> None:
    assert embed_query(session, prop(session, "far"), text) == (0.0,) * 8
    assert not there.requests


def test_a_property_without_a_model_says_what_to_do(session: Session) -> None:
    with pytest.raises(NoModel, match="`plain` has no model") as caught:
        embed_query(session, prop(session, "plain"), "fox")
    assert "Give a vector of 4 numbers" in caught.value.hint
    assert 'plain: Vector(4) @embed("source", model="local")' in caught.value.hint


def test_a_model_that_nobody_knows_is_named(session: Session) -> None:
    with pytest.raises(UnknownModel, match="There is no model 'tiny'"):
        embed_query(session, prop(session, "odd"), "fox")


def test_a_provider_that_is_down_is_named_with_the_property(
    session: Session, there: Provider
) -> None:
    there.always = "500"
    with pytest.raises(ProviderUnavailable, match="status 500") as caught:
        embed_query(session, prop(session, "far"), "fox")
    assert any("`far`" in note for note in caught.value.__notes__)
    there.always = ""
    assert len(embed_query(session, prop(session, "far"), "fox")) == 8
