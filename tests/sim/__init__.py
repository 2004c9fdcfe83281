"""Proofs by simulation: kills at every point, power cuts, sleeping writers, stores that lie."""
