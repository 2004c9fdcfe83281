"""The command line: it reads arguments, calls the engine and prints the results. It decides
nothing."""
