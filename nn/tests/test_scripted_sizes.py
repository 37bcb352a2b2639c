"""Sizes for each dimension in scripts."""

import flambeau as fb
from flambeau.nn.modules.utils import _pair, _quadruple, _single, _triple


def test_a_size_stands_for_each_dimension_in_a_script_as_in_a_program():
    @fb.jit.script
    def sizes(x: tuple[int, int], n: int):
        a, b = _pair(x)
        c, d = _pair(n)
        return [a, b, c, d], _single(n), _triple(n), _quadruple(n)

    assert sizes((1, 2), 3) == ([1, 2, 3, 3], [3], [3] * 3, [3] * 4)
