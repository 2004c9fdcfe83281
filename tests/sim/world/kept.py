"""Owns programs that failed once, shrunk and written down: what a seed draws changes with every
operation that is new, and a program stays what it was."""

from __future__ import annotations

from pathlib import Path

from tests.sim.world.refs import Ref
from tests.sim.world.statements import Statement, Where
from tests.sim.world.steps import Step

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
_NAMES = {one.__name__: one for one in (Step, Statement, Where, Ref)}


def keep(name: str, seed: int, why: str, steps: list[Step]) -> Path:
    """One line for each step, below the seed, which decides who comes when in a round."""
    path = PROGRAMS / f"{name}.txt"
    path.write_text("\n".join([f"# {why}", str(seed), *(repr(step) for step in steps)]) + "\n")
    return path


def kept_programs() -> list[str]:
    return sorted(path.stem for path in PROGRAMS.glob("*.txt"))


def read_program(name: str) -> tuple[int, list[Step]]:
    lines = (PROGRAMS / f"{name}.txt").read_text().splitlines()
    seed, *steps = [line for line in lines if not line.startswith("#")]
    return int(seed), [eval(line, _NAMES) for line in steps]
