"""Rows as users give them, on the way to typed columns."""
