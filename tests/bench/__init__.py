"""The test bench: real servers, real processes and chosen faults; nothing here knows the engine."""
