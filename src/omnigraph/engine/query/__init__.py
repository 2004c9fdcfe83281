"""Answering queries: the steps of a plan run over pinned tables and yield Arrow batches."""
