"""One seeded world: every public operation, several branches and handles, faults, a naive model.

`python -m tests.sim.world SEED` runs one seed; `test_world.py` runs many.
"""
