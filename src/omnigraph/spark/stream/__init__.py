"""Streams into a graph, one commit for each micro-batch, and streams of its changes."""
