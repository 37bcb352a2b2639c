"""Drawings of the graph of a backward pass."""

from __future__ import annotations

import os
import shutil

import pytest

import flambeau as fb
from flambeau.utils import plot_graph


def graph() -> tuple[fb.Tensor, dict[str, fb.Tensor]]:
    """A tensor that reaches one leaf by two ways, and another by one."""
    leaves = {name: fb.ones(2, 3, device="ref", requires_grad=True) for name in ("a", "b")}
    a, b = leaves.values()
    return ((a * b).exp() + a).sum(), leaves


def test_every_node_and_every_leaf_stands_there_once():
    output, leaves = graph()
    text = plot_graph(output, names=leaves)
    for title in ("SumBackward0", "AddBackward0", "ExpBackward0", "MulBackward0"):
        assert text.count(f'label="{title}"') == 1
    for name in leaves:
        assert text.count(f'label="{name}\\n(2, 3)", shape=box') == 1


def test_arrows_are_the_edges_of_the_engine():
    output, _ = graph()
    lines = plot_graph(output).splitlines()
    arrows = [line for line in lines if "->" in line]
    assert len(arrows) == len(set(arrows)) == 6  # sum, add twice, exp, mul twice
    named = {line.split()[0] for line in lines if "label" in line}
    assert {end for line in arrows for end in line.split() if end != "->"} == named


def test_inputs_that_want_no_gradient_are_left_out():
    w = fb.ones(2, device="ref", requires_grad=True)
    assert plot_graph((w * fb.ones(2, device="ref")).sum()).count("shape=box") == 1


def test_a_tensor_without_history_is_an_error_that_says_so():
    with pytest.raises(RuntimeError, match="no history"):
        plot_graph(fb.ones(1, device="ref", requires_grad=True))


def test_the_text_is_written_where_it_is_wanted(tmp_path):
    text = plot_graph(graph()[0], tmp_path / "graph.dot")
    assert (tmp_path / "graph.dot").read_text() == text + "\n"


def test_without_the_program_that_draws_the_error_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"install graphviz, or name a file that ends in \.dot"):
        plot_graph(graph()[0], tmp_path / "graph.svg")


def test_the_program_gets_the_text_and_the_kind(tmp_path, monkeypatch):
    if os.name != "posix":
        pytest.skip("the stand-in for dot is a shell script")
    dot = tmp_path / "dot"
    dot.write_text('#!/bin/sh\necho "$1 $2" > "$3"\ncat >> "$3"\n')
    dot.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert shutil.which("dot") == str(dot)
    text = plot_graph(graph()[0], tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_text() == f"-Tsvg -o\n{text}"
