"""The algorithms of the engine on DataFrames, with the same results."""
