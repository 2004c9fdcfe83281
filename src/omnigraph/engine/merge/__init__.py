"""Merging: the base of two sides, tables merged by reference or row by row, and the commit."""
