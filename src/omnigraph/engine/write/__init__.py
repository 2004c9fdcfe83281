"""Writing: statements, the rows they come to, their checks, and the one place that publishes."""
