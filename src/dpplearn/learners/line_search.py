"""The step sizes that both of the paper's algorithms try, as its authors ran them; and what counts as a fall."""

from collections.abc import Iterator

SMALLEST = 1e-8
ROUNDING = 1e-13  # relative, of a log-likelihood


def step_sizes() -> Iterator[float]:
    """1, ½, ¼, ... down to 1e-8."""
    step_size = 1.0
    while step_size >= SMALLEST:
        yield step_size
        step_size /= 2


def has_fallen(after: float, before: float) -> bool:
    """Whether a step lowered the likelihood, by more than the rounding that a step at the optimum may show."""
    return not after >= before - ROUNDING * max(1.0, abs(before))
