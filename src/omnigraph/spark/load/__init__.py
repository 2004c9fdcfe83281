"""Loads on Spark: read, shape, check by joins, stage, index; jobs that can be taken up again."""
