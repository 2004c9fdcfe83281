"""The only I/O: objects, graph versions and tables. The one place that knows Lance and obstore."""
