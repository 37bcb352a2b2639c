"""The processes of the fuzzer tell answers, hangs, deaths and memory apart."""

from __future__ import annotations

from pathlib import Path

from children import GIB, Child

SCRIPT = """
import os, sys, time
sys.path.insert(0, {folder!r})
from children import serve

def work(item):
    if item == "hang":
        time.sleep(60)
    if item == "die":
        os.kill(os.getpid(), 11)
    if item == "print":
        print("[0, 0]", flush=True)
        os.write(1, b"[0, 0]")
    if item == "swell":
        return len(bytearray(b"x") * (200 << 20))
    if item == "burst":
        try:
            bytearray(2 << 30)
        except MemoryError:
            return "refused"
    return [item]

serve(work)
"""


def child(tmp_path: Path) -> Child:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(folder=str(Path(__file__).parent)))
    return Child([str(script)], seconds=1, memory=GIB)


def test_items_are_answered_by_one_process_until_it_ends(tmp_path):
    with child(tmp_path) as asked:
        assert asked.ask("a").value == ["a"]
        assert asked.ask("print").value == ["print"]
        assert asked.ask("burst").value == "refused"
        assert asked.started == 1
        hang = asked.ask("hang")
        assert hang.kind == "hang" and hang.seconds < 5  # it waits, whatever the load is
        assert "in work" in hang.value
        dead = asked.ask("die")
        assert dead.kind == "death" and dead.value.startswith("SIGSEGV")
        assert asked.ask("b").value == ["b"]
        assert asked.started == 3


def test_the_memory_of_an_item_is_its_own(tmp_path):
    with child(tmp_path) as asked:
        asked.seconds = 10
        large, small = asked.ask("swell"), asked.ask("a")
        assert large.value == 200 << 20
        assert small.peak < 50 << 20 <= large.peak or large.peak == 0
