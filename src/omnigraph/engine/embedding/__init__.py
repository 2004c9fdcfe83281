"""Vectors of a graph come from texts of a graph here: for a query, for rows that miss theirs."""
