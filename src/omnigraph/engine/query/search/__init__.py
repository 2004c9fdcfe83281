"""Search within a query: words, vectors, and the ranks that they give."""
