"""The language of scripts as the site shows it: every form of the front end, and what it gives."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "_ext"))
import language

PROGRAMS = {**language.STATEMENTS, **language.EXPRESSIONS}


def test_each_form_that_the_front_end_has_is_shown_and_no_other():
    statements, expressions = language.forms()
    assert statements == sorted(language.STATEMENTS)
    assert expressions == sorted(language.EXPRESSIONS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_form_means_in_a_script_what_it_means_in_python(name):
    assert language.result(PROGRAMS[name]) == language.python_result(PROGRAMS[name])


def test_the_table_of_ops_has_the_documented_ones():
    text = language.builtins(None)
    for name in ("add", "adaptive_avg_pool1d", "addmv_", "conv2d", "lstm", "index_put_"):
        assert f"| `{name}` |" in text
