"""Loads on Spark: read, shape, check by joins, stage, index; and jobs that can be resumed."""
