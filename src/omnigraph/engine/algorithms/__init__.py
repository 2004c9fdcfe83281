"""Graph algorithms over the adjacency of a snapshot, and their results as properties."""
