"""Owns the picture of a subgraph: a page of its own in a frame, with the script that draws it
inside. It works without a network, and may reach none.

What is drawn is data of the page, never markup. The frame is sandboxed: what is in it cannot
reach the notebook around it, and its own rules let nothing run but the two scripts given here.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from omnigraph.errors import Corrupt
from omnigraph.show.markup import counted, value_text
from omnigraph.show.parts import SubgraphEdge, SubgraphNode

MOST_NODES: Final = 300
MOST_EDGES: Final = 900
HEIGHT: Final = 440
COLOURS: Final = (
    "#2f6fdb", "#d9730d", "#2e9e5b", "#a54bd1", "#c9364f", "#0f9aa8", "#8a7a1c", "#6b7280",
    "#1f4e9c", "#8f3f97",
)  # fmt: skip
_LABELS: Final = ("name", "title", "label")
_LONGEST_LABEL: Final = 28
_MOST_LABELLED: Final = 40
"""Edges whose types are written at them; more could not be read."""
_NO_EDGES: Final = (
    "No edge has a name in this query, so none is shown: "
    "write $a $e:knows $b instead of $a knows $b."
)


@dataclass(frozen=True)
class Legend:
    """What is told beside nodes and edges. Of a schema each node is a type: it has a colour of its
    own, and is called by its id."""

    title: str = "graph"
    node: str = "node"
    edge: str = "edge"
    of_types: bool = False


def picture(
    nodes: Sequence[SubgraphNode], edges: Sequence[SubgraphEdge], legend: Legend | None = None
) -> str:
    """A frame with the page. Of large subgraphs the nodes with the most edges are drawn."""
    legend = legend or Legend()
    page = html.escape("".join(_page(picture_data(nodes, edges, legend))), quote=True)
    return (
        f'<iframe sandbox="allow-scripts" srcdoc="{page}" title="{html.escape(legend.title)}" '
        f'style="width:100%;height:{HEIGHT}px;border:1px solid #8885;border-radius:6px"></iframe>'
    )


def picture_data(
    all_nodes: Sequence[SubgraphNode], all_edges: Sequence[SubgraphEdge], legend: Legend
) -> dict[str, Any]:
    nodes, edges = _drawn(all_nodes, all_edges)
    places = {node.end: place for place, node in enumerate(nodes)}
    groups = [node.id if legend.of_types else node.type for node in nodes]
    colours = {name: COLOURS[n % len(COLOURS)] for n, name in enumerate(dict.fromkeys(groups))}
    drawn = (
        f"{counted(len(nodes), legend.node, len(all_nodes))}, "
        f"{counted(len(edges), legend.edge, len(all_edges))}"
    )
    return {
        "nodes": [
            {
                "label": _cut(node.id) if legend.of_types else label_of(node),
                "type": node.type,
                "id": node.id,
                "colour": colours[group],
                "data": _facts(node.data),
            }
            for node, group in zip(nodes, groups, strict=True)
        ],
        "edges": [
            {
                "source": places[edge.source],
                "target": places[edge.target],
                "type": edge.type,
                "id": edge.id,
                "data": _facts(edge.data),
            }
            for edge in edges
        ],
        "groups": [] if legend.of_types else [*colours.items()],
        "edgeLabels": legend.of_types or len(edges) <= _MOST_LABELLED,
        "note": drawn if all_edges or len(nodes) < 2 else f"{drawn}. {_NO_EDGES}",
    }


def label_of(node: SubgraphNode) -> str:
    text = next((v for name in _LABELS if isinstance(v := node.data.get(name), str) and v), node.id)
    return _cut(" ".join(text.split()) or node.id)


def _cut(shown: str) -> str:
    return shown if len(shown) <= _LONGEST_LABEL else f"{shown[: _LONGEST_LABEL - 1]}…"


def _drawn(
    nodes: Sequence[SubgraphNode], edges: Sequence[SubgraphEdge]
) -> tuple[Sequence[SubgraphNode], Sequence[SubgraphEdge]]:
    if len(nodes) > MOST_NODES:
        degrees = dict.fromkeys((node.end for node in nodes), 0)
        for edge in edges:
            degrees[edge.source] += 1
            degrees[edge.target] += 1
        nodes = sorted(nodes, key=lambda node: -degrees[node.end])[:MOST_NODES]
    kept = {node.end for node in nodes}
    return nodes, [edge for edge in edges if {edge.source, edge.target} <= kept][:MOST_EDGES]


def _facts(data: Mapping[str, Any]) -> list[list[str]]:
    return [[name, value_text(value)] for name, value in data.items() if value is not None]


def _page(told: Mapping[str, Any]) -> Iterator[str]:
    data = json.dumps(told, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    script = (files("omnigraph.show") / "picture.js").read_text(encoding="utf-8")
    nonce = hashlib.sha256(data.encode()).hexdigest()[:32]
    rules = f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'"
    yield '<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
    yield f'content="{rules}"><style>'
    yield (files("omnigraph.show") / "picture.css").read_text(encoding="utf-8")
    yield '</style><body><div id="graph"></div><aside id="facts" hidden></aside>'
    yield '<div id="legend"></div><div id="note"></div><button id="fit">fit</button>'
    yield f'<script type="application/json" id="data">{data}</script>'
    yield f'<script type="text/plain" id="library">{_library()}</script>'
    yield f'<script nonce="{nonce}">{script}</script></body>'


@cache
def _library() -> str:
    """The vendored script that draws, as a classic script, packed."""
    text = (files("omnigraph") / "web" / "vendor" / "cytoscape.js").read_text(encoding="utf-8")
    classic, found = re.subn(
        r"export\s*\{\s*(\w+) as default\s*\};?\s*$", r"globalThis.cytoscape=\1;", text
    )
    if not found:
        raise Corrupt("The script that draws pictures is not the one that this program came with.")
    return base64.b64encode(gzip.compress(classic.encode(), 9, mtime=0)).decode()
