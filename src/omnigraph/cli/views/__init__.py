"""How results read on a terminal: functions from values to lines of text."""
