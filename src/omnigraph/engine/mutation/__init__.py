"""Owns mutations: the statements of a query, run as one write that can be run again."""
