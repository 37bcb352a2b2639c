"""Documented functions and methods agree with PyTorch; see `op_parity` and docs/parity.md."""

from __future__ import annotations

import random
import re

import pytest

from op_parity_differences import DIFFERENCES
from op_parity_page import PAGE, by_name, judged, missing

BY_NAME = by_name()
PART = 50  # cases of a name that every run checks


def _differing(cases):
    found = [(case, *judged(case)) for case in cases]
    return [f"{case} {what}" for case, what, reason in found if what and reason is None]


@pytest.mark.parametrize("name", BY_NAME)
def test_a_fixed_part_of_the_cases_agrees(name):
    group = BY_NAME[name]
    drawn = random.Random(name).sample(group, min(PART, len(group)))
    assert _differing(drawn) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_NAME)
def test_every_case_agrees(name):
    assert _differing(BY_NAME[name]) == []


def test_every_documented_name_is_called():
    assert missing() == []


def test_the_page_has_the_names_and_numbers_of_cases():
    rows = dict(re.findall(r"^\| `(\S+)` \| (\d+) \|", PAGE.read_text(), re.MULTILINE))
    assert rows == {name: str(len(group)) for name, group in BY_NAME.items()}


def test_the_page_lists_the_reasons_on_record():
    text = PAGE.read_text()
    assert [d.reason for d in DIFFERENCES if d.reason not in text] == []
