"""Rows that wait for a vector get it here: what waits, how it is asked for, how it is committed."""
