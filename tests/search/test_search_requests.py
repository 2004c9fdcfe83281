"""What a search costs in requests to a bucket, seen by a proxy."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

import omnigraph
from benchmarks import corpus
from omnigraph import Settings
from tests.bench.proxy import Proxy
from tests.search.world import SEGMENTS, limits

pytestmark = pytest.mark.s3

SCHEMA = "node Doc { slug: String @key  text: String? @index  v: Vector(8)? @index }"
SETTINGS = Settings(durability="relaxed", queue=False, folding="off")
ROWS = 3000
WORDS = """match { $d: Doc search($d.text, "w3 w5") }
  return { bm25($d.text, "w3 w5") as s } order { s } limit 5"""
NEAR = """match { $d: Doc } return { nearest($d.v, [1, 0, 0, 0, 0, 0, 0, 0]) as s }
  order { s } limit 5"""
COLD = 20
"""Requests to the index that a first search for words may take (issue 19)."""
COLD_OF_TWO = 23
"""As many as Lance alone takes for two common words of 200,000 texts, measured in one run."""
TEXTS = "node Doc { text: String @index }"


@pytest.mark.slow
def test_a_cold_search_of_200_000_texts_asks_for_no_more_than_lance_alone(
    proxied_root: str, proxy: Proxy
) -> None:
    """Of the size and with the frequencies of `benchmarks/search.py`."""
    rows = pa.table({"text": corpus.texts(200_000)})
    with omnigraph.init(proxied_root, schema=TEXTS, settings=SETTINGS) as g:
        g.load(rows, type="Doc", engine="local")
        g.optimize(engine="local")
    common, other, rare = (corpus.WORDS[n] for n in (4, 9, 2000))
    for words, most in ((common, COLD), (rare, COLD), (f"{common} {other}", COLD_OF_TWO)):
        with (
            omnigraph.open(proxied_root, mode="r", settings=SETTINGS) as g,
            proxy.counting() as cold,
        ):
            assert len(g.query(WORDS.replace("w3 w5", words)).to_pylist()) == 5
        counts = cold.by_verb_and_class.items()
        assert 0 < sum(n for (_, place), n in counts if place == "index") <= most, cold


def test_a_cold_search_reads_a_few_pieces_of_the_index_and_a_warm_one_nothing(
    proxied_root: str, proxy: Proxy
) -> None:
    chance = Random(1)
    rows = [
        {
            "slug": f"d{n}",
            "text": " ".join(f"w{chance.randrange(50)}" for _ in range(8)),
            "v": [chance.uniform(-1, 1) for _ in range(8)],
        }
        for n in range(ROWS)
    ]
    with omnigraph.init(proxied_root, schema=SCHEMA, settings=SETTINGS) as g, limits(**SEGMENTS):
        g.load(rows, type="Doc", engine="local")
        g.optimize(engine="local")
    for text in (WORDS, NEAR):
        with omnigraph.open(proxied_root, mode="r", settings=SETTINGS) as g:
            with proxy.counting() as cold:
                assert len(g.query(text).to_pylist()) == 5
            index = sum(
                count for (_, place), count in cold.by_verb_and_class.items() if place == "index"
            )
            assert 0 < index <= COLD, cold
            pinned = g.snapshot()
            for _ in range(5):
                pinned.query(text).to_pylist()
            with proxy.counting() as warm:
                assert len(pinned.query(text).to_pylist()) == 5
            assert warm.reads == 0, warm
