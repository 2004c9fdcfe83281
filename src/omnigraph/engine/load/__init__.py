"""Loading: sources in, one commit out. `plan.load` decides what happens to rows."""
