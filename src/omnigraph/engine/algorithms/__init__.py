"""Graph algorithms over the adjacency of a snapshot, and results that can be stored as
properties."""
