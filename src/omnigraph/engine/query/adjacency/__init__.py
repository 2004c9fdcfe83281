"""Adjacency: the neighbours of every vertex along an edge table, in memory and on disk."""
