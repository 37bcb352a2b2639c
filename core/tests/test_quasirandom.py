"""Sobol sequences: even over the cube, wherever one begins."""

from __future__ import annotations

import pytest

import flambeau as fb
from flambeau.quasirandom import SobolEngine


@pytest.mark.parametrize("scramble", [False, True])
def test_the_first_2_to_the_m_points_have_one_in_each_interval_of_each_coordinate(scramble):
    points = SobolEngine(25, scramble, seed=1).draw_base2(6)
    cells = (points * 64).long().sort(0).values
    assert cells.equal(fb.arange(64).unsqueeze(1).expand(64, 25))


def test_points_do_not_depend_on_how_many_are_drawn_at_a_time():
    whole = SobolEngine(5, True, seed=2).draw(23)
    engine = SobolEngine(5, True, seed=2)
    parts = [engine.draw(n) for n in (1, 2, 9)]
    engine.fast_forward(4)
    parts += [whole[12:16], engine.draw(7)]
    assert fb.cat(parts).equal(whole) and engine.num_generated == 23
    assert engine.reset().draw(23).equal(whole)


def test_out_takes_the_shape_and_the_values():
    out = fb.empty(0, dtype=fb.float64)
    result = SobolEngine(2).draw(3, out=out, dtype=fb.float64)
    assert result is out and out.equal(SobolEngine(2).draw(3, dtype=fb.float64))


def test_what_is_no_sequence_is_refused():
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match="dimensionality"):
            SobolEngine(dimension)
    with pytest.raises(ValueError, match="at least one"):
        SobolEngine(1).draw(0)
    with pytest.raises(ValueError, match="2\\*\\*30"):
        SobolEngine(1).fast_forward(2**30 + 1)
    engine = SobolEngine(1)
    engine.draw()
    with pytest.raises(ValueError, match="power of 2"):
        engine.draw_base2(2)
