"""The command line: reads arguments, calls the engine, renders. It decides nothing."""
