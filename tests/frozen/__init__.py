"""Graphs as released formats wrote them, and what they must answer for ever."""
