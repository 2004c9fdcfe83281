"""Asking an endpoint for embeddings: what is right, what is tried again, how it ends."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from omnigraph.embedding.openai import OWN, OpenAIEmbedder, openai_embedder
from omnigraph.embedding.port import Model
from omnigraph.errors import (
    InvalidArgument,
    InvalidEmbedding,
    ModelMissing,
    OmnigraphError,
    ProviderRefused,
    ProviderUnavailable,
    TextRefused,
)
from omnigraph.settings import Settings
from tests.bench.embeddings import Provider, provider, unit_vector_of
from tests.unit.engine.clock import Clock

KEY = "sk-a-secret-that-nobody-sees"
TEXTS = ["red fox", "blue whale", "red fox"]


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMNIGRAPH_EMBED_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def there() -> Iterator[Provider]:
    with provider() as made:
        yield made


def asking(there: Provider, name: str = "small", **settings: Any) -> OpenAIEmbedder:
    return openai_embedder(
        Model("openai", name), Settings(embed_url=there.url, **settings), Clock()
    )


def check_vectors(found: np.ndarray, texts: list[str] = TEXTS) -> None:
    expected = np.array([unit_vector_of(text, 8) for text in texts], dtype=np.float32)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_vectors_come_in_the_order_of_the_texts_and_at_length_one(there: Provider) -> None:
    check_vectors(asking(there).embed(TEXTS, 8))
    (request,) = there.requests
    assert request.path == "/v1/embeddings"
    assert request.body == {"model": "small", "input": TEXTS}


def test_vectors_that_come_in_another_order_are_put_in_theirs(there: Provider) -> None:
    there.faults = ["backwards"]
    check_vectors(asking(there).embed(TEXTS, 8))


def test_a_model_that_can_be_cut_is_asked_for_the_size_of_the_property(there: Provider) -> None:
    assert asking(there, "text-embedding-3-small").embed(TEXTS, 5).shape == (3, 5)
    assert there.requests[0].body["dimensions"] == 5


@pytest.mark.parametrize("fault", ["429", "500", "503", "cut", "408"])
def test_who_is_busy_or_down_is_asked_again(there: Provider, fault: str) -> None:
    there.faults = [fault, fault]
    check_vectors(asking(there).embed(TEXTS, 8))
    assert len(there.requests) == 3


@pytest.mark.parametrize(
    "fault", ["not_json", "other_json", "nan", "huge", "zero", "too_few", "same_index"]
)
def test_nonsense_is_asked_again_and_named_when_it_stays(there: Provider, fault: str) -> None:
    there.faults = [fault]
    check_vectors(asking(there).embed(TEXTS, 8))
    there.always = fault
    with pytest.raises(InvalidEmbedding, match="answers nonsense, 3 times") as caught:
        asking(there).embed(TEXTS, 8)
    assert there.url in str(caught.value)
    assert len(there.requests) == 2 + 3


def test_a_vector_of_another_size_shows_both_sides(there: Provider) -> None:
    there.always = "wrong_dimension"
    with pytest.raises(InvalidEmbedding, match=r"of 9 numbers, and the property holds 8\.") as e:
        asking(there).embed(TEXTS, 8)
    assert "Vector(9)" in e.value.hint
    assert len(there.requests) == 1


def test_the_pause_that_the_other_side_asks_for_is_kept(there: Provider) -> None:
    there.faults = ["429"]
    clock = Clock()
    settings = Settings(embed_url=there.url)
    openai_embedder(Model("openai", "small"), settings, clock).embed(TEXTS, 8)
    assert clock.skipped == 7


@pytest.mark.parametrize("fault", ["429", "500", "cut"])
def test_it_gives_up_at_the_deadline(there: Provider, fault: str) -> None:
    there.always = fault
    clock = Clock()
    settings = Settings(embed_url=there.url, embed_retry_for=60)
    with pytest.raises(ProviderUnavailable, match="gave no embeddings within 60 s") as caught:
        openai_embedder(Model("openai", "small"), settings, clock).embed(TEXTS, 8)
    assert clock.skipped < 60
    assert len(there.requests) > 3
    assert caught.value.retryable
    assert there.url in str(caught.value)


def test_a_pause_beyond_the_deadline_is_not_waited_for(there: Provider) -> None:
    there.always = "429"
    clock = Clock()
    settings = Settings(embed_url=there.url, embed_retry_for=5)
    with pytest.raises(ProviderUnavailable, match="asked once"):
        openai_embedder(Model("openai", "small"), settings, clock).embed(TEXTS, 8)
    assert clock.skipped == 0


def test_a_provider_that_hangs_is_left(there: Provider) -> None:
    there.always = "hang"
    with pytest.raises(ProviderUnavailable, match="does not answer in time"):
        asking(there, request_timeout=0.05, embed_retry_for=1).embed(TEXTS, 8)


def test_an_answer_that_drips_is_left(there: Provider) -> None:
    there.always = "drip"
    with pytest.raises(ProviderUnavailable):
        asking(there, request_timeout=10.0, embed_retry_for=0.1).embed(TEXTS, 8)


def test_nobody_there() -> None:
    there = Provider(url="http://127.0.0.1:9/v1")
    with pytest.raises(ProviderUnavailable, match="nobody answers there"):
        asking(there, embed_retry_for=5).embed(TEXTS, 8)


def test_a_redirect_is_not_followed(there: Provider) -> None:
    there.always = "redirect"
    with pytest.raises(ProviderRefused, match="status 302"):
        asking(there).embed(TEXTS, 8)


def test_a_text_that_is_refused_is_not_sent_again(there: Provider) -> None:
    there.bad = frozenset({"blue whale"})
    with pytest.raises(TextRefused, match="status 400: This input is too long") as caught:
        asking(there).embed(TEXTS, 8)
    assert len(there.requests) == 1
    assert not caught.value.retryable


def test_the_key_comes_from_the_environment_and_is_sent(
    there: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.key = KEY
    embedder = asking(there)
    with pytest.raises(ProviderRefused, match="status 401") as caught:
        embedder.embed(TEXTS, 8)
    assert "OPENAI_API_KEY" in caught.value.hint
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    check_vectors(embedder.embed(TEXTS, 8))
    monkeypatch.setenv("OMNIGRAPH_EMBED_KEY", "sk-another")
    with pytest.raises(ProviderRefused):
        embedder.embed(TEXTS, 8)


def test_no_message_and_no_object_holds_the_key(
    there: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.key = "what it wants"
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    embedder = asking(there)
    with pytest.raises(ProviderRefused, match=r"Wrong key: Bearer \*\*\*") as caught:
        embedder.embed(TEXTS, 8)
    there.always = "cut"
    there.key = ""
    with pytest.raises(ProviderUnavailable) as down:
        asking(there, embed_retry_for=1).embed(TEXTS, 8)
    for error in (caught.value, down.value):
        shown = f"{error} {error.to_dict()} {error!r} {error.__cause__!r}"
        assert KEY not in shown
    assert KEY not in repr(embedder)
    assert KEY.encode() not in pickle.dumps((embedder.model, embedder.url, Settings()))


@pytest.mark.parametrize("key", ["sk-\nInjected: yes", "sk-ключ"])
def test_a_key_that_is_none_is_not_shown(
    there: Provider, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelMissing, match="OPENAI_API_KEY holds characters") as caught:
        asking(there).embed(TEXTS, 8)
    assert key not in str(caught.value)
    assert not there.requests


def test_without_a_key_nobody_asks_openai() -> None:
    embedder = openai_embedder(Model("openai", "small"), Settings(), Clock())
    assert embedder.url == OWN
    with pytest.raises(ModelMissing, match="The model openai:small needs a key") as caught:
        embedder.embed(TEXTS, 8)
    assert "OMNIGRAPH_EMBED_KEY or OPENAI_API_KEY" in caught.value.hint


def test_the_address_comes_from_settings_then_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://there:1/v1/")
    model = Model("openai", "small")
    assert openai_embedder(model, Settings(), Clock()).url == "http://there:1/v1"
    given = Settings.from_environment({"OMNIGRAPH_EMBED_URL": "http://here:2"})
    assert openai_embedder(model, given, Clock()).url == "http://here:2"


@pytest.mark.parametrize("url", ["localhost:1", "ftp://there/v1", "/v1", "http://"])
def test_an_address_that_is_none_is_named(url: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(url)) as caught:
        openai_embedder(Model("openai", "small"), Settings(embed_url=url), Clock())
    assert "OMNIGRAPH_EMBED_URL" in caught.value.hint


def test_the_password_of_an_address_is_not_shown() -> None:
    there = Provider(url="http://me:hush@127.0.0.1:9/v1")
    with pytest.raises(OmnigraphError) as caught:
        asking(there, embed_retry_for=1).embed(TEXTS, 8)
    assert "hush" not in str(caught.value)
