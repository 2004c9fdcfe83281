"""The only I/O: objects, graph versions and tables. Only this package knows Lance and obstore."""
