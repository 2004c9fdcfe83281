"""PageRank by linear algebra: the one distribution that a step of the walker leaves as it is."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np


def solve_pagerank(network: nx.MultiDiGraph, damping: float = 0.85) -> dict[Any, float]:
    step = np.asarray(nx.google_matrix(network, alpha=damping)).T
    count = len(network)
    system = np.vstack([step - np.eye(count), np.ones(count)])
    ranks = np.linalg.lstsq(system, np.append(np.zeros(count), 1.0), rcond=None)[0]
    return dict(zip(network.nodes, ranks.tolist(), strict=True))
