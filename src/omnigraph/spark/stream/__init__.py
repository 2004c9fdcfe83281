"""Streams into a graph, one commit a micro-batch, and out of it, from its changes."""
