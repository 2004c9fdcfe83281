"""Proofs with real processes: many writers on one branch, many creators of one graph."""
