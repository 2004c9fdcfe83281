"""Owns answering queries: runs the steps of a plan over pinned tables, as Arrow batches."""
