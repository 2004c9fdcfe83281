"""Rows as users pass them, on the way to typed columns."""
