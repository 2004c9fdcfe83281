"""Effects: open, read, write, publish. It decides nothing that `plan` can decide."""
