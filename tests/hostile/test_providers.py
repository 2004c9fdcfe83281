"""A provider of embeddings that means harm: whatever it answers is vectors or a sentence, and never
the key. Its address is shown and travels, so it holds no secret."""

from __future__ import annotations

import gzip
import json
import pickle
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from omnigraph.embedding.openai import OpenAIEmbedder, openai_embedder
from omnigraph.embedding.port import Model, normalised
from omnigraph.engine.vectors.journal import JournalFile
from omnigraph.errors import InvalidArgument, OmnigraphError
from omnigraph.settings import Settings
from tests.bench.embeddings import Provider, provider
from tests.unit.engine.clock import Clock

KEY = "sk-hunter2hunter2"
SHOWN = 8
"""Letters of a key that are too many."""
Raw = tuple[int, dict[str, str], bytes]


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMNIGRAPH_EMBED_KEY", KEY)
    with provider() as made:
        yield made


def asking(url: str) -> OpenAIEmbedder:
    return openai_embedder(Model("openai", "m"), Settings(embed_url=url), Clock())


def answer(numbers: object, index: object = 0) -> bytes:
    return json.dumps({"data": [{"embedding": numbers, "index": index}]}).encode()


def refusal(message: object) -> bytes:
    return json.dumps({"error": {"message": message}}).encode()


RAW: dict[str, Raw] = {
    "a number beyond floats": (200, {}, b'{"data":[{"embedding":[1e400,1],"index":0}]}'),
    "a long whole number": (200, {}, b'{"data":[{"embedding":[%s,1],"index":0}]}' % (b"9" * 500)),
    "a deep list": (200, {}, b"[" * 1_000_000),
    "a deep object": (200, {}, b'{"a":' * 300_000),
    "depth in what is not looked at": (200, {}, b'{"x":' + b"[" * 300_000 + b"]" * 300_000 + b"}"),
    "a place below zero": (200, {}, answer([1, 0], -1)),
    "a place beyond": (200, {}, answer([1, 0], 2**64)),
    "a place that is a list": (200, {}, answer([1, 0], [0])),
    "no zip": (200, {"Content-Encoding": "gzip"}, b"no zip"),
    "a zip that is huge": (
        200,
        {"Content-Encoding": "gzip"},
        gzip.compress(b" " * 600_000_000, compresslevel=1, mtime=0),
    ),
    "less than it says": (200, {"Content-Length": "99999"}, answer([1, 0])),
    "a huge header": (200, {"X": "x" * 200_000}, answer([1, 0])),
    "a refusal that is deep": (400, {}, b"[" * 1_000_000),
    "a refusal that is no text": (400, {}, b"\xff\xfe"),
    "a refusal of another form": (400, {}, b'{"error": [1, 2]}'),
    "control characters": (400, {}, refusal("\x1b]0;x\x07 \u202e evil \x9b2J")),
    "a pause that is no number": (503, {"Retry-After": "nan"}, b""),
    "a pause for ever": (503, {"Retry-After": "1e400"}, b""),
    "a pause before": (503, {"Retry-After": "-5"}, b""),
    "no status": (999, {}, b""),
    "the key": (401, {}, refusal(f"bad key {KEY}")),
    "the key where it is cut": (401, {}, refusal("x" * 285 + " " + KEY)),
    "the key at a raw end": (400, {}, b"y" * 290 + KEY.encode()),
    "the key far away": (400, {}, b" " * 4785 + KEY.encode()),
    "the key of one who is down": (500, {}, b"z" * 290 + KEY.encode()),
}


@pytest.mark.parametrize("case", RAW)
def test_whatever_a_provider_answers_is_told_without_the_key(there: Provider, case: str) -> None:
    there.raw = RAW[case]
    with pytest.raises(OmnigraphError) as caught:
        asking(there.url).embed(["x"], 2, within=5)
    shown = f"{caught.value} {caught.value!r} {caught.value.to_dict()}"
    for start in range(len(KEY) - SHOWN):
        assert KEY[start : start + SHOWN] not in shown
    assert all(c.isprintable() for c in caught.value.message)
    assert len(caught.value.message) < 600


def test_noise_of_a_provider_is_told(there: Provider) -> None:
    draw = random.Random(17)
    sound = answer([1.0, 0.0])
    embedder = asking(there.url)
    for _ in range(60):
        data = bytearray(sound)
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        there.raw = (
            draw.choice([200, 200, 400, 500]),
            {},
            bytes(data[: draw.randrange(len(data))]),
        )
        try:
            found = embedder.embed(["x"], 2, within=5)
        except OmnigraphError as error:
            assert error.code in ("invalid_embedding", "text_refused", "provider_unavailable")
        else:
            assert np.linalg.norm(found[0]) == pytest.approx(1)


@pytest.mark.parametrize("number", [1e308, 1e-200, 5e-324, 1e160, 1.0])
def test_a_vector_of_any_length_has_length_one(there: Provider, number: float) -> None:
    there.raw = (200, {}, answer([number, -number]))
    found = asking(there.url).embed(["x"], 2)
    assert found[0] == pytest.approx([0.5**0.5, -(0.5**0.5)])
    assert (normalised(np.array([[0.0, 0.0]])) == 0).all()


@pytest.mark.parametrize(
    "address",
    [
        f"http://ada:{KEY}@localhost:1/v1",
        f"http://{KEY}@localhost:1/v1",
        f"http://localhost:1/v1?key={KEY}",
        f"http://localhost:1/v1#{KEY}",
        f"http://ada:{KEY}/x@localhost:1/v1",
        f"http://ada:{KEY}@[::1/x",
    ],
)
def test_an_address_with_a_secret_is_refused_wherever_it_comes_from(
    there: Provider, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    for make in (
        lambda: Settings(embed_url=address),
        lambda: Settings.from_environment({"OMNIGRAPH_EMBED_URL": address}),
        lambda: openai_embedder(Model("openai", "m"), Settings(), Clock()),
    ):
        with pytest.raises(InvalidArgument) as caught:
            make()
        assert KEY not in f"{caught.value} {caught.value!r} {caught.value.to_dict()}"


@pytest.mark.parametrize(
    "address", ["http://[::1/v1", "http://h:99999999/", "http://a b/", "http://a\nb/"]
)
def test_an_address_that_cannot_be_read_is_a_sentence(address: str) -> None:
    with pytest.raises(InvalidArgument, match="is no http or https address"):
        Settings(embed_url=address)


def test_settings_and_models_hold_no_key(there: Provider) -> None:
    embedder = asking(there.url)
    settings = Settings(embed_url=there.url)
    for held in (embedder, settings, embedder.model):
        assert KEY not in repr(held)
    for held in (settings, embedder.model):
        assert KEY.encode() not in pickle.dumps(held)


def test_two_runs_with_one_journal_never_take_the_vector_of_another_text(tmp_path: Path) -> None:
    one, other = JournalFile(tmp_path / "x", 2), JournalFile(tmp_path / "x", 2)
    one.add({"red": np.array([1, 0], np.float32)})
    other.add({"blue": np.array([0, 1], np.float32)})
    assert one.find("red") is None
    assert other.find("blue") == pytest.approx([0, 1])


def test_a_damaged_journal_gives_no_wrong_vector(tmp_path: Path) -> None:
    """A power cut may leave zeros where a part of a record was."""
    texts = {f"text {n}": np.arange(n, n + 8, dtype=np.float32) for n in range(3)}
    whole = JournalFile(tmp_path / "x", 8)
    whole.add(texts)
    whole.close(done=False)
    sound = (tmp_path / "x").read_bytes()
    for place in range(len(sound)):
        for changed in (
            sound[:place] + bytes([sound[place] ^ 0x40]) + sound[place + 1 :],
            sound[:place] + bytes(len(sound) - place),
            sound[:place],
        ):
            (tmp_path / "x").write_bytes(changed)
            journal = JournalFile(tmp_path / "x", 8)
            found = {text: journal.find(text) for text in texts}
            journal.close(done=False)
            for text, vector in found.items():
                assert vector is None or vector.tolist() == texts[text].tolist(), (text, place)
