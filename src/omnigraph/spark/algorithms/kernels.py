"""Owns the algorithms on DataFrames.

Each corresponds to one in `engine/algorithms/kernels.py` on arrays, with the same rules for
parallel edges, loops and ties. Results have the columns `node` and `value`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from omnigraph.spark.algorithms.network import FrameNetwork

Found = tuple[Any, int]


def degrees(network: FrameNetwork) -> Found:
    from pyspark.sql import functions as f

    counted = network.edges.groupBy(f.col("src").alias("node")).agg(f.count("*").alias("value"))
    return _or_zero(network, counted), 1


def pagerank(
    network: FrameNetwork,
    *,
    damping: float,
    tolerance: float,
    rounds: int,
    sources: list[str | tuple[str, str]],
) -> Found:
    from pyspark.sql import functions as f

    ways = network.edges.groupBy("src").agg(f.count("*").alias("ways"))
    links = (
        network.edges.groupBy("src", "dst")
        .agg(f.count("*").alias("parallel"))
        .join(ways, "src")
        .select("src", "dst", (f.col("parallel") / f.col("ways")).alias("weight"))
        .localCheckpoint()
    )
    begun = _begun(network, sources)
    ranks = (
        begun.join(ways, begun["node"] == ways["src"], "left")
        .select(
            "node",
            "begin",
            f.col("ways").isNull().alias("stuck"),
            f.col("begin").alias("rank"),
            f.lit(0.0).alias("moved"),
        )
        .localCheckpoint()
    )
    _, lost = _totals(ranks)
    for done in range(1, rounds + 1):
        flow = (
            links.join(ranks.select("node", "rank"), links["src"] == f.col("node"))
            .groupBy("dst")
            .agg(f.sum(f.col("rank") * f.col("weight")).alias("flow"))
        )
        anew = f.col("begin") * (damping * lost + 1.0 - damping)
        new = damping * f.coalesce(f.col("flow"), f.lit(0.0)) + anew
        ranks = ranks.join(flow, ranks["node"] == flow["dst"], "left").select(
            "node", "begin", "stuck", new.alias("rank"), f.abs(new - f.col("rank")).alias("moved")
        )
        ranks = ranks.localCheckpoint(eager=False)  # by the sums that come next
        moved, lost = _totals(ranks)
        if moved < tolerance:
            return ranks.select("node", f.col("rank").alias("value")), done
    return ranks.select("node", f.col("rank").alias("value")), rounds


def _begun(network: FrameNetwork, sources: list[str | tuple[str, str]]) -> Any:
    """The share of walkers who begin at each node."""
    from pyspark.sql import functions as f

    if not sources:
        share = f.lit(1.0 / max(network.count, 1))
        return network.nodes.select("node", share.alias("begin"))
    home = network.find(sources)
    shares = home.withColumn("share", f.lit(1.0 / home.count()))
    return (
        network.nodes.select("node")
        .join(shares, "node", "left")
        .select("node", f.coalesce("share", f.lit(0.0)).alias("begin"))
    )


def _totals(ranks: Any) -> tuple[float, float]:
    """How much all ranks have moved, and how much rank is on nodes without outgoing edges."""
    from pyspark.sql import functions as f

    stuck = f.sum(f.when(f.col("stuck"), f.col("rank")).otherwise(0.0))
    row = ranks.agg(f.sum("moved"), stuck).first()
    return float(row[0] or 0.0), float(row[1] or 0.0)


def connected_components(network: FrameNetwork) -> Found:
    """By large stars and small stars in turn (Kiveris and others, 2014): every node is hung to the
    least node that it or its neighbours know, until nothing moves. The rounds are few, however long
    the paths are."""
    from pyspark.sql import functions as f

    stars = _pairs(network).localCheckpoint()
    before, done = None, 0
    while True:
        done += 1
        stars = _small_stars(_large_stars(stars)).localCheckpoint(eager=False)
        mark = stars.agg(
            f.count("*"),
            f.bit_xor(f.xxhash64("high", "low")),
            f.sum(f.col("low").cast("decimal(38,0)")),
        ).first()
        if mark == before:
            break
        before = mark
    found = network.nodes.join(stars, network.nodes["node"] == stars["high"], "left")
    return found.select("node", f.coalesce("low", "node").alias("value")), done


def _pairs(network: FrameNetwork) -> Any:
    """Neighbours as pairs, each pair once, without directions and loops."""
    from pyspark.sql import functions as f

    ends = network.edges.where("src != dst")
    high, low = f.greatest("src", "dst").alias("high"), f.least("src", "dst").alias("low")
    return ends.select(high, low).distinct()


def _large_stars(pairs: Any) -> Any:
    """Each node connects its higher neighbours to the smallest of itself and its neighbours."""
    from pyspark.sql import functions as f

    back = pairs.select(f.col("low").alias("at"), f.col("high").alias("near"))
    both = back.unionByName(pairs.select(f.col("high").alias("at"), f.col("low").alias("near")))
    least = both.groupBy("at").agg(f.least(f.min("near"), f.first("at")).alias("least"))
    hung = pairs.join(least, pairs["low"] == least["at"])
    return hung.select("high", f.col("least").alias("low")).distinct()


def _small_stars(pairs: Any) -> Any:
    """Each node connects itself and its lower neighbours to the smallest of these."""
    from pyspark.sql import functions as f

    least = pairs.groupBy(f.col("high").alias("at")).agg(f.min("low").alias("least"))
    own = least.select(f.col("at").alias("high"), f.col("least").alias("low"))
    hung = pairs.join(least, pairs["high"] == least["at"])
    others = hung.select(f.col("low").alias("high"), f.col("least").alias("low"))
    return own.unionByName(others.where("high != low")).distinct()


def label_propagation(network: FrameNetwork, *, rounds: int) -> Found:
    from pyspark.sql import functions as f

    labels = network.nodes.select("node", f.col("node").alias("label"), f.lit(False).alias("moved"))
    for done in range(1, rounds + 1):
        votes = (
            network.edges.join(labels, network.edges["src"] == labels["node"])
            .groupBy("dst", "label")
            .agg(f.count("*").alias("votes"))
        )
        best = votes.groupBy("dst").agg(
            f.min(f.struct((-f.col("votes")).alias("votes"), "label"))["label"].alias("best")
        )
        new = f.coalesce("best", "label")
        labels = (
            labels.select("node", "label")
            .join(best, f.col("node") == best["dst"], "left")
            .select("node", new.alias("label"), (new != f.col("label")).alias("moved"))
            .localCheckpoint(eager=False)
        )
        if not labels.agg(f.max("moved")).first()[0]:
            return labels.select("node", f.col("label").alias("value")), done
    return labels.select("node", f.col("label").alias("value")), rounds


def triangle_count(network: FrameNetwork) -> Found:
    """Edges point from the node with fewer neighbours to the one with more, so that no node has
    many; a triangle is then found from exactly one of its corners."""
    from pyspark.sql import functions as f

    pairs = _pairs(network).localCheckpoint()
    ends = pairs.select(f.explode(f.array("high", "low")).alias("at"))
    sizes = ends.groupBy("at").agg(f.count("*").alias("size"))
    sized = pairs.join(
        sizes.select(f.col("at").alias("high"), f.col("size").alias("of_high")), "high"
    ).join(sizes.select(f.col("at").alias("low"), f.col("size").alias("of_low")), "low")
    up = f.struct("of_low", "low") < f.struct("of_high", "high")
    turned = sized.select(
        f.when(up, f.col("low")).otherwise(f.col("high")).alias("x"),
        f.when(up, f.col("high")).otherwise(f.col("low")).alias("y"),
    ).localCheckpoint()
    second = turned.select(f.col("x").alias("y"), f.col("y").alias("z"))
    third = turned.select("x", f.col("y").alias("z"))
    closed = turned.join(second, "y").join(third, ["x", "z"])
    corners = closed.select(f.explode(f.array("x", "y", "z")).alias("node"))
    return _or_zero(network, corners.groupBy("node").agg(f.count("*").alias("value"))), 1


def core_numbers(network: FrameNetwork) -> Found:
    """By rounds (Montresor and others, 2013): each node begins with the number of its neighbours,
    and takes the largest k for which k of its neighbours have at least k, until nothing moves."""
    from pyspark.sql import functions as f

    pairs = _pairs(network)
    both = pairs.select(f.col("high").alias("at"), f.col("low").alias("near")).unionByName(
        pairs.select(f.col("low").alias("at"), f.col("high").alias("near"))
    )
    both = both.localCheckpoint()
    cores = both.groupBy(f.col("at").alias("node")).agg(f.count("*").alias("value"))
    cores = cores.withColumn("moved", f.lit(True)).localCheckpoint()
    done = 0
    while cores.agg(f.max("moved")).first()[0]:
        done += 1
        values = cores.select(f.col("node").alias("near"), "value")
        votes = both.join(values, "near").groupBy("at", "value").agg(f.count("*").alias("n"))
        best = (
            votes.groupBy("at")
            .agg(f.sort_array(f.collect_list(f.struct("value", "n")), asc=False).alias("votes"))
            .select("at", f.expr(_MOST).alias("best"))
        )
        new = f.least("value", "best")
        cores = (
            cores.select("node", "value")
            .join(best, f.col("node") == f.col("at"))
            .select("node", new.alias("value"), (new != f.col("value")).alias("moved"))
            .localCheckpoint(eager=False)
        )
    return _or_zero(network, cores.select("node", "value")), done


_MOST = """
aggregate(
  votes,
  struct(0L as seen, 0L as best),
  (a, v) -> struct(a.seen + v.n as seen, greatest(a.best, least(v.value, a.seen + v.n)) as best),
  a -> a.best
)
"""
"""The largest k for which k neighbours have at least k, of votes from the largest down."""


def shortest_paths(network: FrameNetwork, *, sources: list[str | tuple[str, str]]) -> Found:
    from pyspark.sql import functions as f

    frontier = network.find(sources)
    reached = frontier.select("node", f.lit(0).cast("long").alias("value")).localCheckpoint()
    frontier, far = reached, 0
    while True:
        far += 1
        steps = network.edges.join(frontier.select("node"), network.edges["src"] == f.col("node"))
        found = steps.select(f.col("dst").alias("node")).distinct()
        new = found.join(reached.select("node"), "node", "left_anti")
        frontier = new.select("node", f.lit(far).cast("long").alias("value"))
        frontier = frontier.localCheckpoint(eager=False)
        if not frontier.count():
            return reached, far
        reached = reached.unionByName(frontier)


def _or_zero(network: FrameNetwork, counted: Any) -> Any:
    from pyspark.sql import functions as f

    every = network.nodes.select("node").join(counted, "node", "left")
    return every.select("node", f.coalesce("value", f.lit(0).cast("long")).alias("value"))


KERNELS: Mapping[str, Callable[..., Found]] = {
    "pagerank": pagerank,
    "connected_components": connected_components,
    "label_propagation": label_propagation,
    "triangle_count": triangle_count,
    "shortest_paths": shortest_paths,
    "core_numbers": core_numbers,
    "degrees": degrees,
}
