"""Queries on Spark: the steps of the same plan, as operations on DataFrames."""
