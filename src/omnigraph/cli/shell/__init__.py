"""The interactive shell: reads statements, runs them, shows tables."""
