"""Owns `.gq`, the query language: text to checked queries, with all diagnostics."""
