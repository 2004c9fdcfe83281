"""The routes, a module for each noun; each has a `router`, which the application finds by name."""
