"""Graphs and files that somebody made to do harm: they are only data."""
