"""Pure decisions: migrations, validation, publish plans, rebases. No I/O, no clock, no Lance."""
