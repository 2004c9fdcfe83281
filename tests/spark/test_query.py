"""Queries on Spark: the rows of the local engine, for every construct but search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import Cancelled, InvalidArgument, MemoryLimit, QueryTimeout, ValueOutOfRange
from omnigraph.settings import Settings
from tests.model.query_cases import Case, Topic, topics
from tests.model.query_engine import EngineExecutor, mismatch
from tests.model.query_texts import draw_query
from tests.model.query_worlds import draw_dataset
from tests.model.test_query_golden import check_rows

pytestmark = pytest.mark.usefixtures("spark")

TOPICS: Final = {topic.name: topic for topic in topics()}
CASES: Final = [c for t in TOPICS.values() for c in t.cases if c.outcome != "refused"]
ONE_OF_EACH: Final = (
    "alternatives: a bound edge of several types",
    "bounds: alternatives share the way",
    "bounds: a far bound ends where the graph ends",
    "blocks: exists is a value",
    "blocks: aggregates over a pattern",
    "blocks: not over an optional variable is a late filter, null is no solution",
    "floats: groups hold NaN together, and zeros",
    "interfaces: groups by entities of several types",
    "interfaces: ties between entities of one id follow their types",
    "limits: limit and offset take parameters",
    "numbers: overflow of a product is an error",
    "returns: a node is an object with its id and properties, without blobs and vectors",
    "texts: lower, upper and trim",
    "undirected: an edge variable has each edge from both ends, a self-loop once",
)
Executors = Callable[[Topic], EngineExecutor]


@pytest.fixture(scope="module")
def executors(spark: Any) -> Iterator[Executors]:
    made: dict[str, EngineExecutor] = {}

    def executor(topic: Topic) -> EngineExecutor:
        if topic.name not in made:
            made[topic.name] = EngineExecutor(topic.data, engine="spark")
        return made[topic.name]

    yield executor
    for one in made.values():
        one.close()


def check_case(case: Case, executor: EngineExecutor) -> None:
    if case.outcome == "error":
        with pytest.raises(Exception) as here:  # noqa: PT011
            executor.run(case.text, case.parameters, engine="local")
        with pytest.raises(type(here.value)):
            executor.run(case.text, case.parameters)
        return
    check_rows(case, TOPICS[case.topic], executor.run(case.text, case.parameters))


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_a_construct_gives_its_rows(name: str, executors: Executors) -> None:
    (case,) = (case for case in CASES if str(case) == name)
    check_case(case, executors(TOPICS[case.topic]))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_golden_case_gives_its_rows(case: Case, executors: Executors) -> None:
    check_case(case, executors(TOPICS[case.topic]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_drawn_queries_are_answered_as_the_oracle_does(seed: int) -> None:
    chance = Random(seed)
    data = draw_dataset(chance)
    executor = EngineExecutor(data, engine="spark")
    try:
        for _ in range(12):
            query = draw_query(chance, data)
            found = mismatch(executor, data, query)
            assert found is None, f"{data}\n{query}\n{found}"
    finally:
        executor.close()


# Results and bounds


PEOPLE: Final = 3000


@pytest.fixture(scope="module")
def g(spark: Any) -> Iterator[Graph]:
    schema = "node Person { name: String @key age: I64? }\nedge Knows: Person -> Person\n"
    graph = omnigraph.init(
        "memory://spark-queries", schema=schema, settings=Settings(durability="relaxed")
    )
    people = [{"name": f"p{i}", "age": i} for i in range(PEOPLE)]
    knows = [{"src": f"p{i}", "dst": f"p{(i * 7 + 1) % PEOPLE}"} for i in range(PEOPLE)]
    with graph.transaction() as tx:
        tx.append("Person", people)
        tx.append("Knows", knows)
    yield graph
    graph.close()


@pytest.mark.slow
def test_blocks_upon_blocks_come_to_an_end(g: Graph) -> None:
    """Each block uses the rows before it twice, and Spark writes down how rows were made at every
    use: the text of such a plan filled the memory of the driver."""
    text = """match {
      $p: Person { name: "p7" }  $p knows{1,2} $a
      optional { $a knows{0,2} $b  not { $b knows $_ } }
      optional { $a knows{1,2} $c  $c.age > 5 }
      optional { $c <knows>{1,20} $d  $d knows{2} $e }
      not { $p knows $p }
    } return { count($e) as n, max($c.age) as age, count($b) as b }"""
    here = g.query(text).to_pylist()
    result = g.query(text, engine="spark")
    shown = result.explain()
    assert "Only 3 of the frames that are used more than once are shown." in shown
    assert len(shown) < 2_000_000
    assert result.to_pylist() == here
    assert here[0]["n"] > 0


def test_rows_come_lazily_and_the_plan_can_be_read(g: Graph) -> None:
    text = "match { $p: Person  $p knows $f  $f.age > 10 } return { $p.name } order { $p.age }"
    result = g.branch("main").query(text, engine="spark")
    shown = result.explain()
    assert "asked" in shown
    stages = shown[shown.index("\nspark\n") :]
    assert "MapInArrow" in stages
    assert "Join" in stages
    assert [row["p.name"] for row in result][:2] == [
        row["p.name"] for row in g.query(text + " limit 2")
    ]


def test_what_cannot_be_asked_of_spark_is_refused_at_once(g: Graph) -> None:
    with pytest.raises(InvalidArgument, match="kernel"):
        g.query("match { $p: Person } return { $p.name }", engine="spark", kernel="indexed")
    with pytest.raises(InvalidArgument, match="engine"):
        g.query("match { $p: Person } return { $p.name }", engine="flink")  # type: ignore[arg-type]
    text = 'match { $p: Person  search($p.name, "x") } return { $p.name }'
    with pytest.raises(InvalidArgument, match="local"):
        g.query(text, engine="spark")


SLOW_TEXT: Final = """
match { $a: Person  $b: Person  $c: Person  $a.age + $b.age * 3 + $c.age = 7 }
return { count($a) as n }
"""


def test_a_timeout_ends_the_jobs(g: Graph, spark: Any) -> None:
    with pytest.raises(QueryTimeout):
        g.query(SLOW_TEXT, engine="spark", timeout=1.0).to_arrow()
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()


@pytest.mark.slow
def test_a_result_that_is_cancelled_ends_its_jobs(g: Graph, spark: Any) -> None:
    import threading

    result = g.query(SLOW_TEXT, engine="spark")
    threading.Timer(1.5, result.cancel).start()
    with pytest.raises(Cancelled):
        result.to_arrow()
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()


@pytest.mark.slow
def test_memory_is_bounded_on_executors_too(g: Graph) -> None:
    text = "match { $p: Person } return { collect($p.name) as names }"
    with pytest.raises(MemoryLimit):
        g.query(text, engine="spark", memory_limit=1000).to_arrow()


@pytest.mark.slow
def test_an_error_in_a_value_has_the_words_of_the_local_engine(g: Graph) -> None:
    text = "match { $p: Person } return { $p.age * 9223372036854775807 as n }"
    with pytest.raises(ValueOutOfRange) as here:
        g.query(text).to_arrow()
    with pytest.raises(ValueOutOfRange) as there:
        g.query(text, engine="spark").to_arrow()
    assert here.value.to_dict() == there.value.to_dict()


@pytest.mark.slow
def test_a_result_that_is_left_early_ends_its_jobs(g: Graph, spark: Any) -> None:
    batches = g.query("match { $p: Person } return { $p.name }", engine="spark").batches()
    assert next(batches).num_rows > 0
    batches.close()  # type: ignore[attr-defined]
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()


@pytest.mark.slow
def test_versions_and_branches_are_asked_as_they_were(g: Graph) -> None:
    g.create_branch("side")
    with g.branch("side").transaction() as tx:
        tx.append("Person", {"name": "late"})
    text = "match { $p: Person } return { count($p) as n }"
    assert g.branch("side").query(text, engine="spark").one() == {"n": PEOPLE + 1}
    assert g.at("side~1").query(text, engine="spark").one() == {"n": PEOPLE}


@pytest.mark.slow
def test_the_graph_of_a_result_is_that_of_the_local_engine(g: Graph) -> None:
    text = "match { $p: Person  $p $k:knows $f  $p.age < 20 } return { $p.name }"
    here = g.query(text).to_networkx()
    there = g.query(text, engine="spark").to_networkx()
    assert dict(here.nodes(data=True)) == dict(there.nodes(data=True))
    assert sorted(map(repr, here.edges(keys=True, data=True))) == sorted(
        map(repr, there.edges(keys=True, data=True))
    )
