"""Values that are held where work on them is done: in this process, or, by `tools.cluster`, in those of workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dpplearn.tools.threads import one_blas_thread, pool, thread_count

Function = Callable[..., Any]  # of a module, so that other processes find it by its name


class Held(Protocol):
    """Values in an order. What is asked of them is the same to the last bit wherever they are held, if processors
    are alike: each is worked on by one thread."""

    def __len__(self) -> int: ...

    def apply(self, function: Function, *arguments: Any, threads: int | None = None) -> Iterator[Any]:
        """function(*arguments, value) of every value, in their order; `threads` is for those held here."""
        ...

    def changed(self, function: Function, *arguments: Any, each: Sequence[Any] = ()) -> Held:
        """The values function(*arguments, value), or function(own, *arguments, value) with one of `each`, held where
        the values are."""
        ...

    def joined_by(self, value: Any) -> Held:
        """With one value more, the last."""
        ...

    def close(self) -> None:
        """Let go of the values, and of the processes that were started to hold them."""
        ...


def call(function: Function, arguments: Sequence[Any], value: Any) -> Any:
    """The one way in which a value is worked on, here or elsewhere."""
    with one_blas_thread():
        return function(*arguments, value)


def own_arguments(n: int, arguments: tuple[Any, ...], each: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Those of each of n values."""
    return [(own, *arguments) for own in each] if each else [arguments] * n


@dataclass(frozen=True)
class HeldHere:
    """In this process."""

    values: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.values)

    def apply(self, function: Function, *arguments: Any, threads: int | None = None) -> Iterator[Any]:
        count = min(thread_count(threads), len(self))
        if count < 2:
            yield from (call(function, arguments, value) for value in self.values)
            return
        running = deque(pool(count).submit(call, function, arguments, value) for value in self.values)
        try:
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()

    def changed(self, function: Function, *arguments: Any, each: Sequence[Any] = ()) -> HeldHere:
        own = own_arguments(len(self), arguments, each)
        return HeldHere(tuple(call(function, given, value) for given, value in zip(own, self.values, strict=True)))

    def joined_by(self, value: Any) -> HeldHere:
        return HeldHere((*self.values, value))

    def close(self) -> None:
        """There is nothing to end."""
