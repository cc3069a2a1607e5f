"""The step sizes that both of the paper's algorithms try, as its authors ran them."""

from collections.abc import Iterator

SMALLEST = 1e-8


def step_sizes() -> Iterator[float]:
    """1, ½, ¼, ... down to 1e-8."""
    step_size = 1.0
    while step_size >= SMALLEST:
        yield step_size
        step_size /= 2
