"""Merging: the base of two sides, tables merged by pointer or by row, the commit."""
