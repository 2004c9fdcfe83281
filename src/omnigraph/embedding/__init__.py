"""Texts become vectors here: which models there are, and how each is asked. Knows no graph."""
