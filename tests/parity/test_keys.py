"""Keys of `x[...]` that are tuples and lists: those of several dimensions, and those of one."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

import flambeau as fb  # noqa: E402

KEYS = [
    "(0,1),(1,2)",
    "[[0,1],[1,2]]",
    "[[0,1]]",
    "[[0]]",
    "[(0,1),(1,2)]",
    "((0,1),(1,2))",
    "[0,1]",
    "[slice(0,1),1]",
    "(0,1),",
    "(0,1),slice(None)",
    "slice(None),(0,1)",
    "(True,False,True),",
    "[True,False,True]",
    "[]",
    "()",
    "(),",
    "[[],[]]",
    "[[]]",
    "[None,1]",
    "[...,1]",
    "[t.tensor([0,1]),t.tensor([1,2])]",
    "[t.tensor(0),t.tensor(1)]",
    "[np.array([0,1]),np.array([1,2])]",
    "np.array([[0,1],[1,2]])",
    "np.array([0,1]),np.array([1,2])",
    "[[[0,1],[1,2]]]",
    "[[[0,1],[1,2]],[[0,1],[2,3]]]",
    "[range(2),range(2)]",
    "range(2)",
    "(range(2),[0,1])",
    "[[True,False,True]]",
    "[[True,False,True],[0,1]]",
    "[[True,False,True],[True,True,False,False]]",
    "[np.int64(1),2]",
    "[t.tensor(1),2]",
    "[1,t.tensor(2)]",
    "[0]*40",
    "[[0]]*40",
    "[[0,1],slice(None)]",
    "[slice(None),[0,1]]",
    "[None]",
    "[None,None]",
    "((),())",
    "(([0,1],),)",
    "([0,1],[1,2])",
    "[(True,False,True)]",
    "(0,(1,2))",
    "((0,1),1)",
    "(None,(0,1))",
    "(...,(0,1))",
    "[np.array(1),np.array(2)]",
    "(np.array([True,False,True]),1)",
    "[0,[1,2]]",
    "[[0,1],1]",
    "[0,None]",
    "((0,1),[[1],[2]])",
    "(1,(0,1),slice(None))",
    "[[0,1],[1,2],[0,0]]",
]


pytestmark = pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")


def _done(t, key, write):
    x = t.arange(12).reshape(3, 4)
    try:
        found = eval(key, {"t": t, "np": np})
        if write:
            x[found] = -1
        return (x if write else x[found]).tolist()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_selects_what_it_selects_in_pytorch(key):
    assert _done(fb, key, write=False) == _done(torch, key, write=False)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_written_as_in_pytorch(key):
    assert _done(fb, key, write=True) == _done(torch, key, write=True)


def test_a_list_that_stands_for_a_tuple_is_deprecated():
    for t in (torch, fb):
        with pytest.warns(UserWarning, match=r"non-tuple sequence.*use x\[tuple\(seq\)\]"):
            t.zeros(2, 2)[[[0, 1], [1, 0]]]
