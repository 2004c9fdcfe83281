"""Mutations: the statements of a query, executed as one write that can be repeated."""
