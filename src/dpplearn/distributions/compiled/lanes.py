"""Arithmetic on four numbers at once, one per set, for code that numba's own compiler would not vectorise.

A `Lanes` stands for an LLVM vector while an intrinsic is being written: its operators emit instructions, so a
formula written with them becomes straight-line code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils

from dpplearn.data.blocks import LANES

INT = ir.IntType(64)
ITEM = ir.IntType(32)
VECTOR = ir.VectorType(ir.DoubleType(), LANES)
BITS = ir.VectorType(INT, LANES)

# a multiplication and an addition may become one instruction; NaN and infinity keep their meaning
CONTRACT = ("contract",)

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # the first has 20 trailing zero bits
LOG_SERIES = (  # of (log(1 + f) − f + f²/2)/s in s², where s = f/(2 + f); error below 2⁻⁵⁸ (FreeBSD's e_log.c)
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)
ONE, ROOT_HALF = 0x3FF0000000000000, 0x3FE6A09E667F3BCD  # the bits of 1 and of √½
TWO_TO_52 = 0x4330000000000000  # the bits of 2⁵², whose last bits count in ones
MANTISSA = 0x000FFFFFFFFFFFFF


class Lanes:
    """Four float64, with the arithmetic of one."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def _value(self, other: Lanes | float) -> Any:
        return other.value if isinstance(other, Lanes) else ir.Constant(VECTOR, [float(other)] * LANES)

    def __add__(self, other: Lanes | float) -> Lanes:
        return Lanes(self.builder, self.builder.fadd(self.value, self._value(other), flags=CONTRACT))

    def __sub__(self, other: Lanes | float) -> Lanes:
        return Lanes(self.builder, self.builder.fsub(self.value, self._value(other), flags=CONTRACT))

    def __rsub__(self, other: float) -> Lanes:
        return Lanes(self.builder, self.builder.fsub(self._value(other), self.value, flags=CONTRACT))

    def __mul__(self, other: Lanes | float) -> Lanes:
        return Lanes(self.builder, self.builder.fmul(self.value, self._value(other), flags=CONTRACT))

    def __truediv__(self, other: Lanes) -> Lanes:
        return Lanes(self.builder, self.builder.fdiv(self.value, other.value))

    def __rtruediv__(self, other: float) -> Lanes:
        return Lanes(self.builder, self.builder.fdiv(self._value(other), self.value))

    def at_least(self, bound: Lanes | float) -> Any:
        """A mask, false where a lane is NaN."""
        return self.builder.fcmp_ordered(">=", self.value, self._value(bound))

    def differs(self, other: Lanes) -> Any:
        """Whether any lane does."""
        mask = self.builder.fcmp_unordered("!=", self.value, other.value)
        return self.builder.icmp_unsigned("!=", self.builder.bitcast(mask, ir.IntType(LANES)), ir.IntType(LANES)(0))

    def where(self, mask: Any, other: float) -> Lanes:
        """These lanes where the mask is true, the number elsewhere."""
        return Lanes(self.builder, self.builder.select(mask, self.value, self._value(other)))

    def each(self) -> list[Any]:
        """The four numbers."""
        return [self.builder.extract_element(self.value, ITEM(lane)) for lane in range(LANES)]


def constant(builder: Any, number: float) -> Lanes:
    return Lanes(builder, ir.Constant(VECTOR, [float(number)] * LANES))


def broadcast(builder: Any, number: Any) -> Lanes:
    """One number in every lane."""
    return from_each(builder, [number] * LANES)


def from_each(builder: Any, numbers: Sequence[Any]) -> Lanes:
    value = ir.Constant(VECTOR, ir.Undefined)
    for lane, number in enumerate(numbers):
        value = builder.insert_element(value, number, ITEM(lane))
    return Lanes(builder, value)


def load(builder: Any, array: Any, index: Any) -> Lanes:
    """The four neighbours that are number `index` of the fours of an array."""
    return Lanes(builder, builder.load(_four(builder, array, index), align=8))


def store(builder: Any, array: Any, index: Any, lanes: Lanes) -> None:
    builder.store(lanes.value, _four(builder, array, index), align=8)


def _four(builder: Any, array: Any, index: Any) -> Any:
    return builder.gep(builder.bitcast(array, VECTOR.as_pointer()), [index])


@contextmanager
def loop(builder: Any, start: Any, stop: Any, step: int = 1) -> Iterator[Any]:
    """What is emitted within runs for start, start + step, ... below stop."""
    with cgutils.for_range_slice(builder, start, stop, INT(step), INT) as (index, _):
        yield index


class Sum:
    """A register that a loop adds to."""

    def __init__(self, start: Lanes) -> None:
        self.builder = start.builder
        self.place = cgutils.alloca_once(self.builder, VECTOR)  # type: ignore[no-untyped-call]
        self.set(start)

    def set(self, lanes: Lanes) -> None:
        self.builder.store(lanes.value, self.place)

    def get(self) -> Lanes:
        return Lanes(self.builder, self.builder.load(self.place))


def split(x: Lanes) -> tuple[Lanes, Lanes]:
    """m in [√½, √2) and e whole, with x = m 2ᵉ, for positive normal x."""
    builder = x.builder
    bits = builder.add(builder.bitcast(x.value, BITS), _bits(ONE - ROOT_HALF))
    exponent = builder.or_(builder.lshr(bits, _bits(52)), _bits(TWO_TO_52))
    mantissa = builder.add(builder.and_(bits, _bits(MANTISSA)), _bits(ROOT_HALF))
    e = Lanes(builder, builder.bitcast(exponent, VECTOR)) - (2.0**52 + 1023)
    return Lanes(builder, builder.bitcast(mantissa, VECTOR)), e


def _bits(pattern: int) -> Any:
    return ir.Constant(BITS, [pattern] * LANES)


def log(m: Lanes, e: Lanes) -> Lanes:
    """log(m 2ᵉ) for m in [√½, √2) and e whole, to the last bit or two."""
    f = m - 1.0
    s = f / (f + 2.0)
    z = s * s
    series = _polynomial(z, [constant(m.builder, coefficient) for coefficient in LOG_SERIES])
    half_square = f * f * 0.5
    return e * LN2_HIGH - ((half_square - (s * (half_square + series * z) + e * LN2_LOW)) - f)


def _polynomial(x: Lanes, coefficients: list[Lanes]) -> Lanes:
    """Σ c_i xⁱ, neighbours first: fewer operations have to wait for one another than from the end."""
    if len(coefficients) == 1:
        return coefficients[0]
    pairs = [x * high + low for low, high in zip(coefficients[::2], coefficients[1::2], strict=False)]
    return _polynomial(x * x, pairs + coefficients[len(pairs) * 2 :])
