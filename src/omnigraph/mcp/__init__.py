"""Graphs for models: tools, resources and prompts of the Model Context Protocol. One implementation
for a process that is talked to (stdio) and for the server (HTTP)."""
