"""Graphs over HTTP. It decides nothing: the engine does, for whoever the request comes from."""
