"""Owns `python -m omnigraph`, the program without its script."""

from __future__ import annotations

from omnigraph.cli.app import main

main()
