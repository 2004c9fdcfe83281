"""Owns the numbers of search: beside tantivy, faiss, lancedb, numpy and duckdb, on the same rows in
one run, answers checked against everything looked at.

Each question is asked of a warm graph; contenders take turns, what counts is the ratio of medians.
Lance alone, on the same table, is the floor of a search for words.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import faiss
import lance
import lancedb
import numpy as np
import pyarrow as pa
import tantivy
from lance.query import MatchQuery, PhraseQuery
from lancedb.rerankers import RRFReranker

import omnigraph
from benchmarks import corpus
from benchmarks.corpus import SCHEMA, WORDS, Data, Texts, Vectors
from benchmarks.measure import Line, all_seconds, milliseconds, spent_on
from omnigraph.settings import Settings

_SETTINGS = Settings(durability="relaxed")
_COMMON = (WORDS[4], WORDS[9])
_PHRASE = (WORDS[2], WORDS[5])
_TOPIC = (WORDS[20], WORDS[35])
_TEXT = """query q($w: String) { match { $p: Paper search($p.text, $w) }
  return { $p.slug as slug, bm25($p.text, $w) as value } order { value desc } limit 10 }"""
_TOLD_PHRASE = _TEXT.replace("search(", "match_text(")
_NEAR = """query q($q: Vector(%d)) { match { $i: %s }
  return { $i.slug as slug, nearest($i.v, $q) as value } order { nearest($i.v, $q) } limit 10 }"""
_AMONG = """query q($q: Vector(128)) { match { $h: Hub { name: "h00000" } $h owns $g $g holds $i }
  return { $i.slug as slug, nearest($i.v, $q) as value } order { nearest($i.v, $q) } limit 10 }"""
_CANDIDATES = """match { $h: Hub { name: "h00000" } $h owns $g $g holds $i }
  return { $i.slug as slug }"""
_HYBRID = """query q($w: String, $q: Vector(128)) { match { $i: Item }
  return { $i.slug as slug, rrf(bm25($i.text, $w), nearest($i.v, $q)) as value }
  order { rrf(bm25($i.text, $w), nearest($i.v, $q)) } limit 10 }"""
_SCOPED = """query q($n: String, $w: String) {
  match { $x: Author { name: $n } $x wrote $p $c wrote $p $c wrote $q search($q.text, $w) }
  return distinct { $q.slug as slug, bm25($q.text, $w) as value } order { value desc } limit 10 }"""
_PEAK = """import sys, omnigraph
g = omnigraph.open(sys.argv[1], mode="r")
for _ in range(3):
    g.query(sys.argv[2], params={"w": sys.argv[3]}).to_pylist()
(peak,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(int(peak.split()[1]) // 1024)  # getrusage would count what this process had before exec
"""
Answer = list[tuple[str, float]]


def run(directory: Path) -> list[Line]:
    data = corpus.draw()
    files = corpus.write(data, directory / "parquet")
    bare, indexed = SCHEMA % "", SCHEMA % "@index"
    with omnigraph.init(directory / "graph", schema=bare, settings=_SETTINGS) as g:
        g.load(list(files.values()))
        g.optimize()
        g.apply_schema(indexed)
        built, peer = _build(g, data.papers, directory)
        return [
            built,
            *_words(g, data.papers, peer),
            *_nearest(g, data),
            _among(g, data),
            _hybrid(g, data, directory),
            _scoped(g, data, files),
            *_requests(g),
            _peak(g),
        ]


# What is compared.


def _ask(g: Any, text: str, **params: Any) -> Answer:
    found = g.query(text, params=params).to_arrow()
    return list(zip(found["slug"].to_pylist(), found["value"].to_pylist(), strict=True))


def _require(what: str, found: Answer, wanted: Answer, tolerance: float) -> None:
    """The same values in order, and, where values differ, the same rows."""
    same = len(found) == len(wanted) and all(
        abs(a - b) <= tolerance * max(1.0, abs(b))
        for (_, a), (_, b) in zip(found, wanted, strict=True)
    )
    known = dict(wanted)
    if not same or any(slug not in known and abs(v - wanted[-1][1]) > 1e-4 for slug, v in found):
        raise AssertionError(f"{what}: {found[:3]} …, expected {wanted[:3]} …")


def _line(
    what: str,
    contenders: Mapping[str, Callable[[], object]],
    peer: str,
    target: float | None,
    *,
    rounds: int,
) -> Line:
    """The ratio of medians decides. The quickest calls stand beside it, because they are what a
    busy machine bends least."""
    times = all_seconds(contenders, rounds=rounds)
    middle = {name: statistics.median(values) for name, values in times.items()}
    least = {name: min(values) for name, values in times.items()}
    ratio = middle["ours"] / middle[peer]
    shown = ", ".join(
        f"{name} {milliseconds(middle[name])}, least {milliseconds(least[name])}" for name in times
    )
    value = f"{ratio:.2f} × {peer}, of the least {least['ours'] / least[peer]:.2f} × ({shown})"
    if target is None:
        return Line(what, value)
    return Line(what, value, f"≤ {target:g} ×", ratio <= target)


# Words, beside tantivy.


def _build(g: Any, papers: Texts, directory: Path) -> tuple[Line, Any]:
    """Of the text index alone, over rows that are there."""
    ours = spent_on(lambda: g.optimize(types=["Paper"]))
    place = directory / "tantivy"
    place.mkdir()
    fields = tantivy.SchemaBuilder()
    fields.add_text_field("text", stored=False, index_option="position")
    fields.add_text_field("slug", stored=True, tokenizer_name="raw")
    index = tantivy.Index(fields.build(), path=str(place))

    def build() -> None:
        writer = index.writer(heap_size=256 * 1024 * 1024, num_threads=2)
        for slug, text in zip(papers.slugs, papers.texts, strict=True):
            writer.add_document(tantivy.Document(slug=slug, text=text))
        writer.commit()
        writer.wait_merging_threads()

    theirs = spent_on(build)
    index.reload()
    ratio = ours.clock / theirs.clock
    value = f"{ratio:.2f} × tantivy ({ours} / {theirs})"
    what = f"building the index of {corpus.TEXTS:,} texts"
    return Line(what, value, "≤ 2 ×", ratio <= 2), index


def _words(g: Any, papers: Texts, index: Any) -> list[Line]:
    searcher = index.searcher()
    bare = _bare(g, "Paper")
    lines = []
    for what, text, words, target in (
        ("text top 10, two common words", _TEXT, _COMMON, 1.5),
        ("phrase top 10", _TOLD_PHRASE, _PHRASE, 1.0),
    ):
        wanted = " ".join(words)
        scores = papers.scores(list(words))
        if text is _TOLD_PHRASE:
            scores = np.where(papers.with_phrase(*words), scores, 0)
        best = _best(papers.slugs, scores)
        _require(what, _ask(g, text, w=wanted), best, 1e-4)
        query = index.parse_query(f'"{wanted}"' if text is _TOLD_PHRASE else wanted, ["text"])
        hits = searcher.search(query, 10, count=True).count
        if hits != np.count_nonzero(scores):
            raise AssertionError(f"{what}: tantivy finds {hits}, not {np.count_nonzero(scores)}")

        def peers(query: Any = query) -> list[Any]:
            found = searcher.search(query, 10, count=False).hits
            return [searcher.doc(address)["slug"] for _, address in found]

        def ours(text: str = text, wanted: str = wanted) -> Answer:
            return _ask(g, text, w=wanted)

        alone = PhraseQuery(wanted, "text") if text is _TOLD_PHRASE else MatchQuery(wanted, "text")

        def lances(alone: Any = alone) -> Any:
            """The floor: Lance's own search for ten rows, neither their values nor ties."""
            columns = ["_rowid", "_score"]
            return bare.scanner(columns=columns, full_text_query=alone, limit=10).to_table()

        contenders: dict[str, Callable[[], object]] = {"ours": ours, "tantivy": peers}
        contenders["lance alone"] = lances
        named = f"{what} of {hits:,} that match"
        lines.append(_line(named, contenders, "tantivy", target, rounds=60))
    return lines


def _bare(g: Any, kind: str) -> Any:
    """The table of a type, opened by Lance alone."""
    pins = [row for row in g.manifest().to_pylist() if row["object_type"] == "table_version"]
    (pin,) = [row for row in pins if row["table_key"] == f"node:{kind}"]
    version = int(json.loads(pin["metadata"])["lance_version"])
    return lance.dataset(f"{g.root}/{pin['location']}", version=version)


def _best(slugs: Sequence[str], scores: np.ndarray[Any, Any]) -> Answer:
    order = np.argsort(-scores, kind="stable")[:10]
    return [(slugs[n], float(scores[n])) for n in order if scores[n] > 0]


# Vectors, beside faiss and numpy.


def _nearest(g: Any, data: Data) -> list[Line]:
    lines = []
    for kind, vectors in (("Item", data.narrow), ("Wide", data.wide)):
        count, size = vectors.values.shape
        normed = vectors.values / np.linalg.norm(vectors.values, axis=1, keepdims=True)
        flat = faiss.IndexFlatIP(size)
        flat.add(normed)
        asked = _questions(vectors)
        what = f"exact nearest, {count:,} × {size:,}"
        turn = iter(range(1_000_000))

        def ours(text: str = _NEAR % (size, kind), asked: Any = asked, turn: Any = turn) -> Answer:
            return _ask(g, text, q=asked[next(turn) % len(asked)].tolist())

        def faisses(flat: Any = flat, asked: Any = asked, turn: Any = turn) -> Any:
            return flat.search(asked[next(turn) % len(asked)][None], 10)

        for vector in asked[:3]:
            best = vectors.nearest(vector)
            _require(what, _ask(g, _NEAR % (size, kind), q=vector.tolist()), best, 1e-6)
            near = {vectors.slugs[n] for n in flat.search(vector[None], 10)[1][0]}
            if near != {slug for slug, _ in best}:
                raise AssertionError(f"{what}: faiss finds others")
        contenders = {"ours": ours, "faiss flat": faisses}
        lines.append(_line(what, contenders, "faiss flat", 1.0, rounds=40))
    return lines


def _questions(vectors: Vectors) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(5)
    picked = vectors.values[random.integers(0, len(vectors.slugs), 16)]
    noisy = picked + 0.5 * random.standard_normal(picked.shape)
    length = np.linalg.norm(noisy, axis=1, keepdims=True)
    return np.asarray(noisy / length, dtype=np.float32)


def _among(g: Any, data: Data) -> Line:
    """Beside the same pattern without a rank, whose rows are then taken and measured by numpy."""
    what = "nearest among the 1,000 candidates of a two-hop pattern"
    rows = np.sort(data.held[data.held[:, 0] < corpus.GROUPS][:, 1])
    vector = _questions(data.narrow)[0]
    wanted = data.narrow.nearest(vector, rows)
    asked = vector.tolist()
    _require(what, _ask(g, _AMONG, q=asked), wanted, 1e-6)
    table = lance.write_dataset(
        pa.table({"v": pa.FixedSizeListArray.from_arrays(data.narrow.values.ravel(), 128)}),
        "memory://candidates",
    )
    numbers = {slug: n for n, slug in enumerate(data.narrow.slugs)}

    def numpy() -> Answer:
        slugs = g.query(_CANDIDATES).to_arrow()["slug"].to_pylist()
        places = [numbers[slug] for slug in slugs]
        taken = table.take(places, columns=["v"])["v"].combine_chunks()
        values = np.asarray(taken.values).reshape(-1, 128)
        cosines = values @ vector / np.linalg.norm(values, axis=1)
        best = np.argsort(-cosines, kind="stable")[:10]
        return [(slugs[n], float(1 - cosines[n])) for n in best]

    def held() -> Any:
        values = data.narrow.values[rows]
        cosines = values @ vector / np.linalg.norm(values, axis=1)
        return np.argsort(-cosines, kind="stable")[:10]

    _require(what, numpy(), wanted, 1e-5)
    contenders: dict[str, Callable[[], object]] = {
        "ours": lambda: _ask(g, _AMONG, q=asked),
        "pattern, take and numpy": numpy,
        "numpy in memory, candidates known": held,
    }
    return _line(what, contenders, "pattern, take and numpy", 1.2, rounds=60)


# Both, beside lancedb.


def _hybrid(g: Any, data: Data, directory: Path) -> Line:
    what = "hybrid top 10 of 100,000"
    words, vector = " ".join(_TOPIC), _questions(data.narrow)[1]
    flat = pa.FixedSizeListArray.from_arrays(data.narrow.values.ravel(), 128)
    rows = pa.table({"slug": data.items.slugs, "text": data.items.texts, "v": flat})
    database: Any = lancedb.connect(str(directory / "lancedb"))
    table = database.create_table("items", rows)
    table.create_fts_index("text", use_tantivy=False, stem=False, remove_stop_words=False)
    table.create_index(metric="cosine", vector_column_name="v", index_type="IVF_FLAT")
    asked = vector.tolist()

    def theirs() -> Any:
        search = table.search(query_type="hybrid", vector_column_name="v", fts_columns="text")
        search = search.vector(asked).text(words).distance_type("cosine").limit(10)
        return search.rerank(RRFReranker()).to_arrow()

    wanted = _fused(data, words.split(), vector)
    _require(what, _ask(g, _HYBRID, w=words, q=asked), wanted, 1e-9)
    theirs()
    contenders = {"ours": lambda: _ask(g, _HYBRID, w=words, q=asked), "lancedb": theirs}
    return _line(what, contenders, "lancedb", 0.5, rounds=30)


def _fused(data: Data, words: list[str], vector: np.ndarray[Any, Any]) -> Answer:
    """Places of both ranks within their windows, by looking at everything."""
    scores = np.round(data.items.scores(words), 5)
    values = data.narrow.values.astype(np.float64)
    cosines = values @ vector / np.linalg.norm(values, axis=1)
    found: dict[int, float] = {}
    for order in (
        [n for n in np.argsort(-scores, kind="stable")[:1000] if scores[n] > 0],
        np.argsort(-cosines, kind="stable")[:1000],
    ):
        for place, number in enumerate(order):
            found[int(number)] = found.get(int(number), 0) + 1 / (60 + place)
    best = sorted(found, key=lambda n: (-found[n], n))[:10]
    return [(data.items.slugs[n], found[n]) for n in best]


# Within a graph, beside duckdb.


def _scoped(g: Any, data: Data, files: dict[str, Path]) -> Line:
    what = "papers of co-authors of one author about two words, top 10"
    author, words = "a00007", list(_COMMON)
    ducks = duckdb.connect()
    for name in ("wrote", "paper"):
        source = files[name.capitalize()]
        ducks.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet('{source}')")
    ducks.execute(
        "CREATE TABLE term AS SELECT slug, word, count(*) AS n FROM"
        " (SELECT slug, unnest(string_split(text, ' ')) AS word FROM paper) GROUP BY slug, word"
    )
    ducks.execute("CREATE TABLE size AS SELECT slug, sum(n) AS n FROM term GROUP BY slug")
    rarities = ", ".join(
        f"('{word}', {np.log(1 + (corpus.TEXTS - held + 0.5) / (held + 0.5))})"
        for word in words
        for held in [int(np.count_nonzero(data.papers.scores([word])))]
    )
    mean = float(data.papers.lengths.mean())
    question = f"""
      WITH scope AS (SELECT DISTINCT c.to AS slug FROM wrote a JOIN wrote b ON a.to = b.to
        JOIN wrote c ON b.from = c.from WHERE a.from = '{author}'),
      rarity(word, idf) AS (VALUES {rarities})
      SELECT t.slug, sum(idf * t.n * 2.2 / (t.n + 1.2 * (0.25 + 0.75 * s.n / {mean}))) AS value
      FROM scope JOIN term t USING (slug) JOIN rarity USING (word) JOIN size s USING (slug)
      GROUP BY t.slug ORDER BY value DESC, t.slug LIMIT 10"""

    def theirs() -> Answer:
        found: Answer = ducks.execute(question).fetchall()
        return found

    def ours() -> Answer:
        return _ask(g, _SCOPED, n=author, w=" ".join(words))

    _require(what, ours(), theirs(), 1e-4)
    return _line(what, {"ours": ours, "duckdb": theirs}, "duckdb", None, rounds=20)


# What it costs to read, and to hold.


def _requests(g: Any) -> list[Line]:
    words = " ".join(_COMMON)
    pinned = g.snapshot()
    for _ in range(5):  # a column that is asked for again and again is read into memory
        pinned.query(_TEXT, params={"w": words}).to_pylist()
    before = pinned.io.reads  # a snapshot has one ledger for all that is asked of it
    pinned.query(_TEXT, params={"w": words}).to_pylist()
    warm = pinned.io.reads - before
    with omnigraph.open(g.root, mode="r", settings=_SETTINGS) as fresh:
        cold = fresh.query(_TEXT, params={"w": words})
        cold.to_pylist()
        asked = sum(cold.io.by_purpose["search"].values())
    near = {"q": [1.0] * corpus.NARROW}
    with omnigraph.open(g.root, mode="r", settings=_SETTINGS) as fresh:
        vectors = fresh.query(_NEAR % (corpus.NARROW, "Item"), params=near)
        vectors.to_pylist()
    return [
        Line(
            "requests of a warm search for words in a pinned version",
            f"{warm}",
            "0",
            warm == 0,
        ),
        Line(
            "requests of a cold search for words, the graph just opened",
            f"{asked} of the index, of {cold.io.reads} with the head, the catalog and the rows"
            f" ({cold.io.hops} in sequence, {cold.io.read_bytes / 1e6:.1f} MB)",
            "≤ 20",
            asked <= 20,
        ),
        Line(
            "requests of a cold search for vectors",
            f"{vectors.io.reads} ({vectors.io.hops} in sequence)",
        ),
    ]


def _peak(g: Any) -> Line:
    command = [sys.executable, "-c", _PEAK, str(g.root), _TEXT, " ".join(_COMMON)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Line("peak memory of a process that opens and searches words", f"{told.strip()} MB")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as place:
        for line in run(Path(place)):
            print(line)
