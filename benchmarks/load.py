"""Owns the numbers of loading: a million nodes and five million edges against the same work done
bare (raw writes, raw index builds, the same checks), against ladybug, and from JSONL.

    python -m benchmarks.load [scale [rounds]]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from lance.fragment import write_fragments
from lance.indices import IndexConfig

import omnigraph
from benchmarks.measure import Line
from omnigraph.plan.load.new_ids import number_ids
from omnigraph.settings import Settings

NODES, EDGES = 1_000_000, 5_000_000
SCHEMA = """
node Person { name: String @key  age: I32?  city: String? }
edge Knows: Person -> Person { since: I32? }
"""
LADYBUG = """
import ladybug, os, sys, time
data, place = sys.argv[1:]
c = ladybug.Connection(ladybug.Database(place))
c.execute("CREATE NODE TABLE Person(name STRING, age INT32, city STRING, PRIMARY KEY(name))")
c.execute("CREATE REL TABLE Knows(FROM Person TO Person, since INT32)")
start, cpu = time.perf_counter(), time.process_time()
for kind in ("Person", "Knows"):
    c.execute(f"COPY {kind} FROM '{data}/{kind}.parquet'")
print(time.perf_counter() - start, time.process_time() - cpu)
"""
Timed = tuple[float, float]
"""Seconds by the clock, and of both processors: the second is what a busy machine does not bend."""


def run(directory: Path, scale: float = 1.0, rounds: int = 3) -> list[Line]:
    data = make_data(directory / "data", int(NODES * scale), int(EDGES * scale))
    entities = int(NODES * scale) + int(EDGES * scale)
    contenders: dict[str, Callable[[Path], Timed | None]] = {
        "ours": lambda place: ours(data, place),
        "floor": lambda place: floor(data, place),
        "ladybug": lambda place: ladybug(data, place),
        "jsonl": lambda place: ours(directory / "data" / "all.jsonl", place),
    }
    best: dict[str, Timed] = {}
    for _ in range(rounds):
        for name, call in contenders.items():
            place = Path(tempfile.mkdtemp(dir=directory))
            timed = call(place)
            shutil.rmtree(place)
            if timed is not None:
                print(f"{name}: {timed[0]:.1f} s, processors {timed[1]:.1f} s", file=sys.stderr)
                best[name] = min(best.get(name, timed), timed)
    peak = peak_memory(data, directory)
    rate = entities / best["jsonl"][0]
    lines = [_against(best, "floor", "bare writes, index builds and checks")]
    if "ladybug" in best:
        lines.append(_against(best, "ladybug", "COPY of ladybug"))
    lines.append(Line("peak memory of the Parquet load", f"{peak:.2f} GB", "≤ 3 GB", peak <= 3))
    jsonl = f"{rate:,.0f}/s ({best['jsonl'][0]:.1f} s, {best['jsonl'][1]:.1f} s of processors)"
    lines.append(Line("entities from JSONL", jsonl, "≥ 150,000/s", rate >= 150_000))
    return lines


def _against(best: dict[str, Timed], other: str, what: str) -> Line:
    (wall, cpu), (their_wall, their_cpu) = best["ours"], best[other]
    ratio = wall / their_wall
    value = (
        f"{ratio:.2f} × ({wall:.1f} s / {their_wall:.1f} s; processors {cpu:.1f} / {their_cpu:.1f})"
    )
    return Line(f"load of Parquet / {what}", value, "≤ 1.5 ×", ratio <= 1.5)


def make_data(directory: Path, nodes: int, edges: int) -> Path:
    """The same rows as Parquet and as JSONL, in no order."""
    directory.mkdir(parents=True)
    chance = np.random.default_rng(7)
    prefix = pa.scalar("person-")

    def people(numbers: Any) -> Any:
        return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")

    cities = pa.array([f"city{i}" for i in range(1000)])
    person = pa.table(
        {
            "name": people(chance.permutation(nodes)),
            "age": pa.array(chance.integers(0, 100, nodes), pa.int32()),
            "city": cities.take(pa.array(chance.integers(0, 1000, nodes))),
        }
    )
    knows = pa.table(
        {
            "from": people(chance.integers(0, nodes, edges)),
            "to": people(chance.integers(0, nodes, edges)),
            "since": pa.array(chance.integers(1990, 2026, edges), pa.int32()),
        }
    )
    pq.write_table(person, directory / "Person.parquet")
    pq.write_table(knows, directory / "Knows.parquet")
    with (directory / "all.jsonl").open("wb") as file:
        for table, shape in (
            (person, ('{"type":"Person","data":{"name":"', '","age":', ',"city":"', '"}}\n')),
            (knows, ('{"edge":"Knows","from":"', '","to":"', '","data":{"since":', "}}\n")),
        ):
            for batch in table.to_batches(100_000):
                texts = [column.cast(pa.string()) for column in batch.columns]
                parts = [pa.scalar(shape[0])]
                for text, after in zip(texts, shape[1:], strict=True):
                    parts += [text, pa.scalar(after)]
                file.write("".join(pc.binary_join_element_wise(*parts, "").to_pylist()).encode())
    return directory


def _timed(call: Callable[[], object]) -> Timed:
    start, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - start, time.process_time() - cpu


def ours(source: Path, place: Path) -> Timed:
    files = [source / "Person.parquet", source / "Knows.parquet"] if source.is_dir() else source
    with omnigraph.init(
        str(place / "graph"), schema=SCHEMA, settings=Settings(durability="relaxed")
    ) as g:
        return _timed(lambda: g.load(files, engine="local"))


def floor(data: Path, place: Path) -> Timed:
    """What has to be done in any case, by the libraries alone: read, check, write, index."""

    def bare() -> None:
        person, knows = (
            pq.read_table(data / "Person.parquet"),
            pq.read_table(data / "Knows.parquet"),
        )
        ids = number_ids("01ARZ3NDEKTSV4RRFFQ69G5FAV", 0, knows.num_rows)
        _check(person, knows)
        nodes = pa.table({"id": person["name"], **_columns(person)})
        edges = pa.table(
            {"id": ids, "src": knows["from"], "dst": knows["to"], "since": knows["since"]}
        )
        for name, table, columns in (("n", nodes, ["id"]), ("e", edges, ["id", "src", "dst"])):
            _write_and_index(str(place / name), table, columns)

    return _timed(bare)


def _columns(table: pa.Table) -> dict[str, Any]:
    return dict(zip(table.column_names, table.columns, strict=True))


def _check(person: pa.Table, knows: pa.Table) -> None:
    connection = duckdb.connect()
    connection.register("p", person)
    connection.register("e", knows)
    for question in (
        "SELECT name FROM p GROUP BY name HAVING count(*) > 1",
        'SELECT DISTINCT "from" FROM e ANTI JOIN p ON "from" = name',
        'SELECT DISTINCT "to" FROM e ANTI JOIN p ON "to" = name',
    ):
        assert connection.sql(question).to_arrow_table().num_rows == 0


def _write_and_index(uri: str, table: pa.Table, columns: list[str]) -> None:
    base = lance.write_dataset(table.schema.empty_table(), uri, enable_stable_row_ids=False)
    written = write_fragments(table, base, mode="append", enable_stable_row_ids=False)
    made = lance.LanceDataset.commit(
        base, lance.LanceOperation.Append(written), read_version=base.version, detached=True
    )
    numbers = [fragment.fragment_id for fragment in made.get_fragments()]

    def index(column: str) -> None:
        made.checkout_version(made.version).create_index_uncommitted(
            column,
            IndexConfig(index_type="BTREE", parameters={"zone_size": 4096}),
            name=f"{column}_btree",
            fragment_ids=numbers,
            replace=True,
        )

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(index, columns))


def ladybug(data: Path, place: Path) -> Timed | None:
    """In the environment of the peers, if there is one: OMNIGRAPH_PEERS names its interpreter."""
    python = os.environ.get("OMNIGRAPH_PEERS", "/tmp/bench/bin/python")
    if not Path(python).exists():
        return None
    done = subprocess.run(
        [python, "-c", LADYBUG, str(data), str(place / "ladybug")],
        capture_output=True,
        text=True,
        check=True,
    )
    wall, cpu = done.stdout.split()
    return float(wall), float(cpu)


def peak_memory(data: Path, directory: Path) -> float:
    """In GB, of a fresh process that does nothing but load."""
    code = (
        "import resource, sys; from pathlib import Path; from benchmarks.load import ours;"
        "ours(Path(sys.argv[1]), Path(sys.argv[2]));"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)"
    )
    place = Path(tempfile.mkdtemp(dir=directory))
    done = subprocess.run(
        [sys.executable, "-c", code, str(data), str(place)],
        capture_output=True,
        text=True,
        check=True,
    )
    shutil.rmtree(place)
    return float(done.stdout)


def main() -> int:
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-load-") as directory:
        lines = run(Path(directory), scale, int(sys.argv[2]) if len(sys.argv) > 2 else 3)
    for line in lines:
        print(f"{line.what}: {line.value}  [{line.target}] {line.holds}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
