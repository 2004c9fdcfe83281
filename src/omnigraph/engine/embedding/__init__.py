"""Models and query vectors of an open graph."""
