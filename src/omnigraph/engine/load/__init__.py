"""Owns loading: sources in, one commit out. What happens to rows is decided in `plan.load`."""
