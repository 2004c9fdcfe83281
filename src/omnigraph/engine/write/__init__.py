"""Writing: statements, the rows that they produce, their checks, and the one place that
publishes."""
