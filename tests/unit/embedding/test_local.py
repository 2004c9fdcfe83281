"""The model that runs in this process: deterministic, offline, near what means the same."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from omnigraph.embedding import local
from omnigraph.embedding.local import DIMENSIONS, LocalEmbedder, local_embedder
from omnigraph.embedding.port import Model, is_blank, normalised, parse_model
from omnigraph.errors import InvalidEmbedding, ModelMissing, UnknownModel

TEXTS = ["a red fox in the snow", "the central bank raised interest rates", "fox", "日本語 🦊", "é"]


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the local model went to the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_vectors_have_length_one_and_the_size_asked_for(dimension: int) -> None:
    found = local_embedder().embed(TEXTS, dimension)
    assert found.shape == (len(TEXTS), dimension)
    assert found.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_a_vector_is_the_mean_of_the_rows_of_its_tokens() -> None:
    embedder = local_embedder()
    ids = embedder._tokenizer.encode(TEXTS[0], add_special_tokens=False).ids
    mean = np.asarray(embedder._matrix)[ids].astype(np.float64).mean(axis=0)
    expected = mean / np.linalg.norm(mean)
    np.testing.assert_allclose(embedder.embed(TEXTS[:1], 256)[0], expected, atol=1e-7)


def test_a_text_has_the_same_bits_alone_and_in_company_and_in_another_process() -> None:
    together = local_embedder().embed(TEXTS, 256)
    for text, vector in zip(TEXTS, together, strict=True):
        assert local_embedder().embed([text], 256)[0].tobytes() == vector.tobytes()
    program = (
        "import sys; from omnigraph.embedding.local import LocalEmbedder;"
        f"sys.stdout.buffer.write(LocalEmbedder().embed({TEXTS!r}, 256).tobytes())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == together.tobytes()


def test_texts_that_mean_alike_are_nearer() -> None:
    fox, animal, money = local_embedder().embed(
        ["a red fox", "wild animals like wolves", "interest rates of the bank"], 256
    )
    assert fox @ animal > fox @ money + 0.05


def test_a_long_text_is_counted_and_gives_what_its_mean_is() -> None:
    once = local_embedder().embed(["one red fox jumps "], 256)[0]
    many = local_embedder().embed(["one red fox jumps " * 50_000], 256)[0]
    assert once @ many > 0.98


def test_another_size_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidEmbedding, match="no vectors of 100 numbers") as caught:
        local_embedder().embed(TEXTS, 100)
    assert "Vector(64), Vector(128), Vector(256)" in caught.value.hint


def test_without_the_extra_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    local._files.cache_clear()
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    with pytest.raises(ModelMissing, match="local:wordllama is not installed") as caught:
        LocalEmbedder().embed(TEXTS, 256)
    assert "pip install 'omnigraph[embed]'" in caught.value.hint
    local._files.cache_clear()


@pytest.mark.parametrize("content", [b"", b"\x10", b"\xff" * 64, b"\x02\0\0\0\0\0\0\0{}"])
def test_a_broken_file_of_the_model_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "weights"
    path.write_bytes(content)
    with pytest.raises(ModelMissing, match="cannot be read"):
        local._read_matrix(path)


@pytest.mark.parametrize("text", [None, "local", "local:wordllama"])
def test_a_missing_name_means_the_local_model(text: str | None) -> None:
    assert parse_model(text) == Model("local", "wordllama")


def test_the_rest_of_a_name_is_the_providers() -> None:
    assert parse_model("openai:a/b:c") == Model("openai", "a/b:c")
    assert str(parse_model("openai:a/b:c")) == "openai:a/b:c"


@pytest.mark.parametrize(
    "text", ["", "small", "openai", "openai:", "local:", "local:x", "cohere:x"]
)
def test_an_unknown_model_is_refused_with_what_there_is(text: str) -> None:
    if not text:
        assert parse_model(text).provider == "local"
        return
    with pytest.raises(UnknownModel) as caught:
        parse_model(text)
    assert repr(text) in str(caught.value)
    assert "'openai:<name>'" in caught.value.hint


def test_a_typo_in_the_provider_is_guessed() -> None:
    with pytest.raises(UnknownModel, match="Did you mean 'openai'"):
        parse_model("opanai:small")


@pytest.mark.parametrize(
    ("text", "blank"), [(None, True), ("", True), (" \n\t ", True), ("x", False)]
)
def test_what_is_blank(text: str | None, blank: bool) -> None:
    assert is_blank(text) is blank


def test_zeros_stay_zeros() -> None:
    assert normalised(np.array([[0.0, 0.0], [3.0, 4.0]])).tolist() == [
        [0.0, 0.0],
        [np.float32(0.6), np.float32(0.8)],
    ]
