"""Upkeep: keeps a graph fast, small, sound and in the newest format."""
