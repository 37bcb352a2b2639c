"""A run of the conformance kit: its options, its summary, and how it reads expectations."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = """
from flambeau.plugin import Expectations, KernelSet, hookimpl
from flambeau.plugin.host import host
from flambeau.testing.reference import KERNELS
from flambeau.testing.reference.array import RefArray
from flambeau.testing.reference.backend import RefBackend


class ToyBackend(RefBackend):
    device_type = "toy"


def exp_of_a_double_is_off(a):
    result = KERNELS["exp"](a)
    if a.dtype.name != "float64":
        return result
    return RefArray(result.shape, result.dtype, tuple([v * 1.5 for v in result.data]))


class Plugin:
    @hookimpl
    def flambeau_backend(self, device_type):
        return ToyBackend()

    @hookimpl
    def flambeau_kernels(self, device_type):
        return KernelSet("toy 0.1", {**KERNELS, "exp": exp_of_a_double_is_off})

    @hookimpl
    def flambeau_expectations(self, device_type):
        return Expectations(**EXPECTATIONS)

    @hookimpl
    def flambeau_report(self, device_type):
        return {"toys": "7.1"}


host.register(Plugin(), name="toy", device_types=["toy"])
"""
BROKEN = {
    f"test_samples_agree[exp-float64-{layout}]": "the toy's exp is half as much again"
    for layout in ("contiguous", "transposed", "sliced", "expanded", "offset", "empty", "scalar")
} | {"test_corners_agree[exp-float64]": "the toy's exp is half as much again"}


def kit(tmp_path: Path, *arguments: str, **expectations: object) -> tuple[int, str]:
    """Exit status and output of a run over the tests of ``exp``, with the plugin above."""
    (tmp_path / "toyplugin.py").write_text(PLUGIN.replace("**EXPECTATIONS", f"**{expectations!r}"))
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "toyplugin", "-q"),
            *("-c", os.devnull, "--rootdir", str(tmp_path), *arguments),
        ],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


PRIMITIVES = ("--pyargs", "flambeau.testing.backend.test_primitives", "-k", "exp-")


def test_a_run_says_which_devices_there_are_if_none_is_named(tmp_path: Path) -> None:
    status, output = kit(tmp_path, "--pyargs", "flambeau.testing.backend.test_laziness")
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "--device TYPE" in output
    assert "ref, toy" in output


def test_a_result_that_could_not_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    where = ("--conformance-json", "absent/result.json")
    status, output = kit(tmp_path, *PRIMITIVES, "--device", "ref", *where)
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "--conformance-json absent/result.json: there is no such folder" in output


def test_an_unknown_device_is_refused_with_the_hosts_words(tmp_path: Path) -> None:
    status, output = kit(tmp_path, *PRIMITIVES, "--device", "tyo")
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "--device tyo: " in output
    assert "toy" in output


def test_the_summary_shows_levels_and_the_header_versions(tmp_path: Path) -> None:
    status, output = kit(
        tmp_path, "--pyargs", "flambeau.testing.backend.test_laziness", "-v", "--device", "ref"
    )
    assert status == pytest.ExitCode.OK
    assert "ref: memory      passed   3 passed" in output
    assert "ref: primitives  not run" in output
    assert "ref: level reached: memory, by a part of the kit (single files): no badge" in output
    assert "ref: badge" not in output
    _, output = kit(tmp_path, *PRIMITIVES, "-vv", "--device", "toy", "--device", "ref")
    assert "device toy: toy 0.1 (" in output
    assert "toys 7.1" in output
    assert "toy: primitives  FAILED   8 failed, " in output
    assert "toy: level reached: none" in output
    assert "ref: primitives  passed" in output


KIT = ("--pyargs", "flambeau.testing.backend", "--device", "ref", "--level", "memory")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ((), ""),
        (("-k", "laziness", "-m", "not slow"), "-k, -m"),
    ],
)
def test_only_a_run_of_the_whole_kit_earns_a_badge(options, why, tmp_path: Path) -> None:
    status, output = kit(tmp_path, *KIT, *options, "--conformance-json", "result.json")
    assert status == pytest.ExitCode.OK
    result = json.loads((tmp_path / "result.json").read_text())["devices"]["ref"]
    assert result["reached"] == "memory"
    assert result["complete"] is (not why)
    assert ("ref: badge: ![flambeau ref: memory]" in output) == bool(result["badge"]) == (not why)
    assert (f"by a part of the kit ({why}): no badge" in output) == bool(why)


def test_a_run_that_the_first_failure_ends_earns_no_badge(tmp_path: Path) -> None:
    whole = ("--pyargs", "flambeau.testing.backend", "--device", "toy", "-x", "-p", "failing")
    (tmp_path / "failing.py").write_text(
        "import pytest\n"
        "@pytest.hookimpl(trylast=True)\n"
        "def pytest_collection_modifyitems(items):\n"
        "    items.sort(key=lambda i: 'corners_agree[toy-exp-float64]' not in i.name)\n"
    )
    status, output = kit(tmp_path, *whole)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "by a part of the kit (stopped early): no badge" in output


def test_what_the_time_does_not_reach_is_counted_and_earns_no_badge(tmp_path: Path) -> None:
    options = ("-k", "exp-float32 or host_copies", "--device", "toy", "--seconds", "1e-9")
    options += ("--conformance-json", "result.json")
    whole = "--pyargs", "flambeau.testing.backend"
    status, output = kit(tmp_path, *whole, *options)
    assert status == 0, output
    (said,) = re.findall(r"level reached: (\w+), by a part of the kit \((.*)\): no badge", output)
    found = re.fullmatch(r"-k, (\d+) of (\d+) tests run in 1e-09 s", said[1])
    assert found, said
    ran, every = map(int, found.groups())
    assert ran == 1 and every > 10, "the first begins before the time is over"
    result = json.loads((tmp_path / "result.json").read_text())["devices"]["toy"]
    counts = [level["outcomes"] for level in result["levels"].values()]
    assert sum(c.get("not reached", 0) for c in counts) == every - 1
    assert len(result["tests"]["not reached"]) == every - 1
    assert not result["complete"]
    assert "passed" not in result["levels"]["training"]["outcomes"]
    assert result["levels"]["training"]["verdict"] == "not run"
    status, output = kit(tmp_path, *whole, *options[:4], "--seconds", "0", "--level", "memory")
    assert status == 0, output
    assert "not reached" not in output and "tests run in" not in output


def test_a_quick_run_begins_with_memory_and_takes_the_other_parts_in_turns(tmp_path: Path) -> None:
    options = ("--pyargs", "flambeau.testing.backend", "--device", "toy", "--quick")
    status, output = kit(tmp_path, *options, "--collect-only", "-k", "not plans")
    assert status == 0, output
    names = re.findall(r"::(test_\w+)\[", output)
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    memory = {name for name in places if places[name][0] < 60}
    assert "test_from_host_copies" in memory
    assert max(places["test_from_host_copies"]) < min(places["test_samples_agree"])
    for name in ("test_samples_agree", "test_corners_agree", "test_composite_corners_agree"):
        middle = sum(places[name]) / len(places[name])
        rest = [p for n in places for p in places[n] if p > max(places["test_from_host_copies"])]
        assert abs(middle - sum(rest) / len(rest)) < len(rest) / 10


def test_the_result_for_programs_names_the_tests_that_did_not_pass(tmp_path: Path) -> None:
    known = {"test_corners_agree[exp-float64]": "the toy's exp is half as much again"}
    where = ("--conformance-json", "result.json")
    status, _ = kit(tmp_path, *PRIMITIVES, *where, "--device", "toy", known_failures=known)
    assert status == pytest.ExitCode.TESTS_FAILED
    result = json.loads((tmp_path / "result.json").read_text())["devices"]["toy"]
    assert result["tests"]["xfailed"] == ["test_corners_agree[toy-exp-float64]"]
    assert "test_samples_agree[toy-exp-float64-sliced]" in result["tests"]["failed"]
    assert len(result["tests"]["failed"]) == result["levels"]["primitives"]["outcomes"]["failed"]


CHEATS = """
import flambeau
flambeau.set_cpu_fallback(True)
"""


def test_no_test_passes_because_the_cpu_stood_in(tmp_path: Path) -> None:
    kernels = '{**KERNELS, "exp": exp_of_a_double_is_off}'
    lacking = PLUGIN.replace(kernels, "{n: k for n, k in KERNELS.items() if n != 'exp'}")
    lacking = lacking.replace('"toy"', '"cheat"').replace("**EXPECTATIONS", "")
    (tmp_path / "cheats.py").write_text(lacking + CHEATS)
    status, output = kit(tmp_path, *PRIMITIVES, "-p", "cheats", "--device", "cheat")
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "an op of the device ran on the CPU" in output
    where = ("--pyargs", "flambeau.testing.backend.test_laziness", "--device", "cheat")
    _, output = kit(tmp_path, *where, "-p", "cheats")
    assert "test_no_cpu_fallback_is_switched_on[cheat]" in output


def test_known_failures_must_fail_and_are_none_of_the_runs(tmp_path: Path) -> None:
    status, output = kit(tmp_path, *PRIMITIVES, "--device", "toy", known_failures=BROKEN)
    assert status == pytest.ExitCode.OK
    assert "8 xfailed" in output


def test_a_known_failure_that_passes_is_an_error(tmp_path: Path) -> None:
    working = {**BROKEN, "test_samples_agree[exp-float32-sliced]": "fixed long ago"}
    status, output = kit(tmp_path, *PRIMITIVES, "--device", "toy", known_failures=working)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "fixed long ago" in output
    assert "1 failed" in output


def test_a_known_failure_that_is_no_test_is_an_error(tmp_path: Path) -> None:
    misspelt = {**BROKEN, "test_samples_agree[exp-float63-sliced]": "no such dtype"}
    status, output = kit(tmp_path, *PRIMITIVES, "--device", "toy", known_failures=misspelt)
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "no tests of the kit: test_samples_agree[exp-float63-sliced]" in output


def test_expectations_that_cannot_be_read_are_told_before_anything_runs(tmp_path: Path) -> None:
    status, output = kit(tmp_path, *PRIMITIVES, "--device", "toy", unsupported_dtypes={"float61"})
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "--device toy: flambeau_expectations failed: ValueError" in output
    assert "float61" in output


def test_unsupported_dtypes_are_skipped_with_the_reason(tmp_path: Path) -> None:
    status, output = kit(
        tmp_path, *PRIMITIVES, "-rs", "--device", "toy", unsupported_dtypes={"float64"}
    )
    assert status == pytest.ExitCode.OK
    assert "device 'toy' does not support float64" in output


def test_a_tolerance_of_the_plugin_widens_the_kits(tmp_path: Path) -> None:
    status, _ = kit(
        tmp_path,
        *("--pyargs", "flambeau.testing.backend.test_primitives", "-k", "samples and exp-"),
        *("--device", "toy"),
        tolerances={("exp", "float64"): 0.6},
    )
    assert status == pytest.ExitCode.OK


def test_a_tolerance_of_no_op_is_an_error(tmp_path: Path) -> None:
    misspelt = {("expp", "float64"): 0.6}
    status, output = kit(tmp_path, *PRIMITIVES, "--device", "toy", tolerances=misspelt)
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "tolerances of what is no op: expp" in output


def test_other_projects_may_have_a_device_option_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--device', default='mine')\n"
    )
    (tmp_path / "test_own.py").write_text(
        "def test_own(request):\n    assert request.config.getoption('--device') == 'mine'\n"
    )
    status, output = kit(tmp_path, "test_own.py")
    assert status == pytest.ExitCode.OK, output
