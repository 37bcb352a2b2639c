"""Points that fill a cube more evenly than random ones do."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.overrides import all_take_as_annotated
from flambeau.quasirandom._directions import MAXBIT, directions

__all__ = ["SobolEngine"]


class SobolEngine:
    """A Sobol sequence of points of the unit cube, plain or scrambled.

    The direction numbers are those of Joe and Kuo (2008).  Scrambled sequences multiply them by
    random lower triangular matrices of bits and flip the bits of all points alike (J. Matoušek,
    On the L2-discrepancy for anchored boxes, 1998); with a `seed` they are PyTorch's.

    Args:
        dimension: coordinates of a point, 1 to 21201.
        scramble: whether to scramble.
        seed: of the scrambling; without one, the default generator is drawn from.

    Attributes:
        num_generated: how many points were drawn or skipped.

    Raises:
        ValueError: a dimension outside of these bounds.

    >>> import flambeau as fb
    >>> fb.quasirandom.SobolEngine(dimension=2).draw(4)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500],
            [0.2500, 0.7500]])
    """

    MAXBIT = MAXBIT
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}], got "
                f"{dimension}"
            )
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = fb.tensor(directions(dimension), dtype=fb.int64, device="cpu")
        self.shift = fb.zeros(dimension, dtype=fb.int64, device="cpu")
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: fb.dtype | None = None) -> Tensor:
        """The next `n` points, of shape ``(n, dimension)``.

        Args:
            n: how many.
            out: a tensor that is given their shape and values.
            dtype: of the points; the default one if None.

        Raises:
            ValueError: less than one point, or more than 2³⁰ in all.

        >>> import flambeau as fb
        >>> engine = fb.quasirandom.SobolEngine(1)
        >>> engine.draw(3).T, engine.draw().item()
        (tensor([[0.0000, 0.5000, 0.7500]]), 0.25)
        """
        dtype = dtype or fb.get_default_dtype()
        first = self.num_generated
        self._advance(n)
        points = self._points(fb.arange(first, first + n, device="cpu"))
        result = points.to(dtype) * 2.0**-MAXBIT
        if first == 0:
            result[0] = self._first_point[0].to(dtype)
        self.quasi = points[-1].clone()
        if out is not None:
            return out.resize_as_(result).copy_(result)
        return result

    def draw_base2(
        self, m: int, out: Tensor | None = None, dtype: fb.dtype | None = None
    ) -> Tensor:
        """The next 2ᵐ points, with which the number of points becomes a power of two.

        Raises:
            ValueError: it would not, and the points would be out of balance.

        >>> import flambeau as fb
        >>> fb.quasirandom.SobolEngine(3).draw_base2(3).mean(0)
        tensor([0.4375, 0.4375, 0.4375])
        """
        if not isinstance(m, int) or not 0 <= m <= MAXBIT:
            raise ValueError(
                f"draw_base2: m must be a whole number from 0 to {MAXBIT}, got {m!r:.80}"
            )
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> SobolEngine:
        """Begin again with the first point."""
        self.quasi = self.shift.clone()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip `n` points.

        Raises:
            ValueError: less than one point, or more than 2³⁰ in all.

        >>> import flambeau as fb
        >>> fb.quasirandom.SobolEngine(1).fast_forward(2).draw()
        tensor([[0.7500]])
        """
        self._advance(n)
        self.quasi = self._points(fb.tensor([self.num_generated - 1], device="cpu"))[0]
        return self

    def _advance(self, n: int) -> None:
        if n < 1 or self.num_generated + n > 2**MAXBIT:
            raise ValueError(
                f"SobolEngine: cannot draw {n} points after {self.num_generated}: at least one is "
                f"drawn at a time, and 2**{MAXBIT} in all"
            )
        self.num_generated += n

    def _points(self, places: Tensor) -> Tensor:
        """The points at some places of the sequence, as integers of `MAXBIT` bits."""
        gray = (places ^ (places >> 1)).unsqueeze(1)
        points = self.shift.expand(len(places), -1).clone()
        for i in range(int(places[-1]).bit_length()):
            points ^= (gray >> i & 1) * self.sobolstate[:, i]
        return points

    def _scramble(self) -> None:
        generator = None if self.seed is None else fb.Generator().manual_seed(self.seed)
        size = self.dimension, MAXBIT
        flips = fb.randint(2, size, device="cpu", generator=generator)
        powers = fb.tensor([1 << i for i in range(MAXBIT)], device="cpu")
        self.shift = (flips * powers).sum(1)
        mixing = fb.randint(2, (*size, MAXBIT), device="cpu", generator=generator).tril()
        mixing.diagonal(dim1=-2, dim2=-1).fill_(1)
        falling = powers.flip(0)
        bits = (self.sobolstate.unsqueeze(1) & falling.unsqueeze(1)) != 0  # (…, bit, number)
        # Sums of at most 30 ones are exact in float32.
        mixed = fb.matmul(mixing.to(fb.float32), bits.to(fb.float32)).to(fb.int64) & 1
        self.sobolstate = (mixed * falling.unsqueeze(1)).sum(1)

    def __repr__(self) -> str:
        told = [f"dimension={self.dimension}"]
        if self.scramble:
            told.append("scramble=True")
        if self.seed is not None:
            told.append(f"seed={self.seed}")
        return f"SobolEngine({', '.join(told)})"


all_take_as_annotated(globals())
