"""Owns what happens to the rows of a load, batch by batch: pure functions over Arrow that know
nothing of where they run, so that a process and a Spark executor run the same ones."""
