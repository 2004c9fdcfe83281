"""Effects: open, read, write, publish. Decides nothing that `plan` can decide."""
