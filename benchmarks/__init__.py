"""Measurements. Every claim is a ratio to a peer or to the floor, taken in one run."""
