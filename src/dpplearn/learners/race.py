"""Two runs abreast for some steps, and then the better alone: for starts of which neither is always the better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from dpplearn.learners.loop import Memory, Step


def race(runners: Sequence[Iterator[Step]], length: int, begun: int = 0) -> Iterator[Step]:
    """The better of the two after every step of both; after `length` steps it goes on alone."""
    steps = [next(runner) for runner in runners]
    for number in range(begun, length + 1):
        ahead = int(steps[1].log_likelihood > steps[0].log_likelihood)
        memory = _of_both(number, steps) if number < length else steps[ahead].memory
        yield replace(steps[ahead], evaluations=sum(step.evaluations for step in steps), memory=memory)
        if number < length:
            steps = [next(runner, replace(step, evaluations=0)) for runner, step in zip(runners, steps, strict=True)]
    yield from runners[ahead]


def of_each(memory: Memory) -> list[Memory]:
    """What each of the two remembers, out of what a race does."""
    return [
        {name.removeprefix(f"{number}."): array for name, array in memory.items() if name.startswith(f"{number}.")}
        for number in (0, 1)
    ]


def _of_both(number: int, steps: Sequence[Step]) -> Memory:
    each = {f"{runner}.{name}": array for runner, step in enumerate(steps) for name, array in step.memory.items()}
    return {"race": np.array([number]), **each}
