"""Turns texts into vectors: which models there are, and how each is asked. It knows no graph."""
