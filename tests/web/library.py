"""The graph that the tests of the page look at: a library of papers, always the same, with a
history, branches, a tag and stored queries."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import omnigraph
from omnigraph import Graph

SCHEMA = """node Person {
    name: String @key
    born: I32?
}

node Paper {
    doi: String @key
    title: String @index @analyzer("english")
    year: I32
    @range(year, 1900..2100)
}

node Venue {
    name: String @key
    city: String?
}

edge Wrote: Person -> Paper {
    @key(src, dst)
}

edge Cites: Paper -> Paper {
    @key(src, dst)
}

edge AppearedIn: Paper -> Venue {
    page: I32?
}
"""
NAMES = [
    f"{first} {last}"
    for first in ("Ada", "Alan", "Barbara", "Edsger", "Grace", "Radia")
    for last in ("Abe", "Bose", "Curie", "Dahl", "Ito")
]
HOW = ("Sparse", "Robust", "Adaptive", "Bayesian", "Spectral", "Streaming", "Verified", "Private")
WHAT = ("indexes", "embeddings", "joins", "kernels", "sketches", "graphs", "proofs", "caches")
WHERE = ("proteins", "oceans", "power grids", "crop yields", "citations", "glaciers", "images")
VENUES = [("Journal of Graphs", "Oslo"), ("Data Letters", "Kyoto"), ("Open Systems", "Lima")]
PAPERS = 60
QUERIES = {
    "prolific": """query prolific($most: I64 = 5) {
    match { $p: Person $p wrote $x }
    return { $p.name as author, count($x) as papers }
    order { papers desc, author }
    limit $most
}""",
    "since": """query since($year: I32) {
    match { $x: Paper $x.year >= $year }
    return { $x.doi as doi, $x.title as title, $x.year as year }
    order { year, doi }
}""",
}


def papers() -> Iterator[dict[str, Any]]:
    draw = random.Random(22)
    for n in range(PAPERS):
        title = f"{draw.choice(HOW)} {draw.choice(WHAT)} for {draw.choice(WHERE)}"
        yield {"doi": f"10.1000/{n}", "title": title, "year": 1990 + n * 7 % 35}


def make_library(root: str) -> Graph:
    """Four commits on main; branches `review` (two commits more, one of them in conflict with
    main) and `later`; the tag `v1` at the second commit."""
    draw = random.Random(7)
    g = omnigraph.init(root, schema=SCHEMA, actor="ada")
    written = [*papers()]
    dois = [one["doi"] for one in written]
    with g.transaction(actor="ada", message="People and venues") as tx:
        people = [{"name": name, "born": 1900 + 3 * n} for n, name in enumerate(NAMES)]
        tx.append("Person", people)
        tx.append("Venue", [{"name": name, "city": city} for name, city in VENUES])
    with g.transaction(actor="ada", message="The papers") as tx:
        tx.append("Paper", written)
        wrote = {(draw.choice(NAMES), doi) for doi in dois for _ in range(2)}
        tx.append("Wrote", [{"from": name, "to": doi} for name, doi in sorted(wrote)])
        cites = {(n, draw.randrange(n)) for n in range(1, PAPERS) for _ in range(2)}
        tx.append("Cites", [{"from": dois[a], "to": dois[b]} for a, b in sorted(cites)])
        appeared = [
            {"from": doi, "to": VENUES[n % 3][0], "page": 1 + 12 * n} for n, doi in enumerate(dois)
        ]
        tx.append("AppearedIn", appeared)
    g.create_tag("v1", "main", actor="ada")
    g.create_branch("review", "main", actor="eve")
    g.create_branch("later", "main", actor="joe")
    review = g.branch("review")
    review.mutate(
        'update Paper set { title: "On the nature of graphs" } where doi = "10.1000/29"',
        actor="eve",
        message="A better title",
    )
    review.mutate(
        'insert Person { name: "Mina Novak", born: 1998 } '
        'update Paper set { year: 2020 } where doi = "10.1000/30"',
        actor="eve",
        message="A new author",
    )
    g.mutate(
        'update Paper set { title: "The nature of graphs" } where doi = "10.1000/29"',
        actor="bob",
        message="Another title",
    )
    g.store_queries(QUERIES, actor="ada", message="Questions of everybody")
    return g
