"""The benchmarks' page, chart and check, on figures made for the purpose; and that rows run."""

from __future__ import annotations

import copy
import importlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


def on_device(*arguments):
    command = [sys.executable, str(FOLDER / "run.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_without_the_device_its_times_are_refused_with_the_reason():
    done = on_device("--device", "nowhere")
    assert done.returncode == 2 and not done.stdout
    assert "nothing is measured on 'nowhere'" in done.stderr


@pytest.mark.parametrize("name", ["softmax", "gelu", "GPT step"])
def test_rows_of_devices_run_where_they_are_given_a_device(name):
    done = on_device("--device", "cpu", "--quick", "--json", "--rows", name)
    assert done.returncode == 0, done.stderr
    (line,) = json.loads(done.stdout)
    assert line["flambeau"] > 0 and line["bound"] > 0
    if "torch" in line:
        assert line["ratio"] == round(line["flambeau"] / line["torch"], 3)


@pytest.fixture
def report():
    return importlib.import_module("report")


def row(name, threads, ours, torch, **others):
    times = {"flambeau": ours, "torch": torch} | others
    known = {n: t for n, t in times.items() if t is not None and n != "flambeau"}
    return {
        "name": name,
        "threads": threads,
        "microseconds": times,
        "ratio": {
            n: ours / times[n] if n in known and ours else None for n in times if n[0] != "f"
        },
        "spread": dict.fromkeys(known, 0.1),
        "errors": {n: "ValueError: broken" for n, t in times.items() if t is None},
    }


@pytest.fixture
def record():
    """A made-up machine on which everything takes half of torch's time."""
    return {
        "environment": {
            "date": "2030-01-02",
            "processor": "Imaginary 1",
            "processors": 2,
            "load": 0.1,
            "system": "Linux",
            "python": "3.99",
            "flambeau": "0.1.0",
            "torch": "9.0",
            "numpy": "8.0",
            "quick": False,
            "threads": [1, 2],
        },
        "missing": {"jax": "not installed"},
        "rows": [
            row("add", 1, 0.5, 1.0, numpy=0.25),
            row("MLP step, Adam", 1, 500.0, 1000.0),
            row("MLP step, Adam", 2, 400.0, 800.0),
        ],
        "sweep": {"exp": 0.25, "sum": 1.5},
        "sweep mean": 0.5,
        "memory": [
            {
                "name": "MLP step, Adam",
                "megabytes": {"flambeau": [50.0, 100.0], "torch": [150.0, 200.0]},
                "errors": {},
            }
        ],
        "first step": {"flambeau": 300.0, "torch": 1500.0},
        "import": {"flambeau": 80.0, "torch": 1000.0, "numpy": 90.0},
        "megabytes": {"flambeau": [5.0, 200.0], "torch": [700.0, 800.0]},
    }


BUDGETS = {
    "ratio_to_torch": {"add": 0.4, "MLP step, Adam": 0.8, "not measured at all": 1.0},
    "ratio_to_torch_2_threads": {"MLP step, Adam": 0.8},
    "fresh_ratio_to_torch": {"peak memory": 1.0, "import and first step": 0.25},
    "import_milliseconds": {"flambeau": 70},
    "installed_megabytes": {"flambeau": 10},
    "reasons": {
        "add": "a reason from a profile",
        "MLP step, Adam": "not shown: the target is met",
        "sum, 10⁶ elements": "what the memory gives",
        "exp, 10⁶ elements": "not shown: it is faster",
    },
}


def test_equal_figures_are_not_worse(report, record) -> None:
    assert report.worse(record, copy.deepcopy(record)) == []


def test_a_ratio_that_grew_by_a_quarter_is_named_and_one_by_a_tenth_is_not(report, record) -> None:
    now = copy.deepcopy(record)
    now["rows"][0]["ratio"]["torch"] = 0.625
    now["rows"][1]["ratio"]["torch"] = 0.55
    assert report.worse(record, now) == ["add, 1 thread: 0.50 -> 0.62 of torch's, 1.25-fold"]


def test_the_check_looks_at_every_kind_of_figure(report, record) -> None:
    now = copy.deepcopy(record)
    now["sweep"]["exp"] = 0.5
    now["memory"][0]["megabytes"]["flambeau"] = [50.0, 150.0]
    now["first step"]["flambeau"] = 600.0
    now["import"]["flambeau"] = 160.0
    now["megabytes"]["flambeau"] = [5.0, 300.0]
    now["rows"][2]["ratio"]["torch"] = 0.7
    names = [line.partition(":")[0] for line in report.worse(record, now)]
    assert names == [
        "MLP step, Adam, 2 threads",
        "exp, 10⁶ elements",
        "peak memory, MLP step, Adam",
        "import and first step",
        "import",
        "installed size",
    ]


def test_what_got_better_or_is_new_is_not_worse(report, record) -> None:
    then = copy.deepcopy(record)
    record["rows"][0]["ratio"]["torch"] = 0.1
    record["rows"].append(row("new", 1, 9.0, 1.0))
    assert report.worse(then, record) == []


def test_what_fails_or_is_not_measured_any_more_is_named(report, record) -> None:
    now = copy.deepcopy(record)
    now["rows"][0] = row("add", 1, None, 1.0)
    del now["rows"][1]
    assert report.worse(record, now) == [
        "add, 1 thread: recorded 0.50, fails now",
        "MLP step, Adam, 1 thread: recorded 0.50, not measured now",
    ]
    assert report.worse(record, now, everything=False) == [
        "add, 1 thread: recorded 0.50, fails now"
    ]


def test_other_numbers_of_threads_need_not_be_measured(report, record) -> None:
    now = copy.deepcopy(record)
    now["environment"]["threads"] = [1]
    del now["rows"][2]
    assert report.worse(record, now) == []


def test_what_failed_when_it_was_recorded_cannot_get_worse(report, record) -> None:
    then = copy.deepcopy(record)
    then["rows"][0]["ratio"]["torch"] = None
    assert report.worse(then, record) == []


def test_machines_versions_and_load_that_differ_are_said(report, record) -> None:
    now = copy.deepcopy(record)
    assert report.differences(record, now) == []
    now["environment"] |= {"processor": "Other", "torch": "9.1", "load": 3.0, "date": "2031-01-01"}
    assert report.differences(record, now) == [
        "processor: recorded with Imaginary 1, now Other",
        "torch: recorded with 9.0, now 9.1",
        "now on a busy machine: load 3.0",
    ]


@pytest.mark.parametrize(("ratio", "code"), [(0.5, 0), (0.7, 1)])
def test_check_ends_with_1_where_something_got_worse(
    report, record, ratio, code, monkeypatch, tmp_path, capsys
) -> None:
    run = importlib.import_module("run")
    kept = tmp_path / "recorded.json"
    kept.write_text(json.dumps(record))
    now = copy.deepcopy(record)
    now["rows"][0]["ratio"]["torch"] = ratio
    monkeypatch.setattr(report, "RECORD", kept)
    monkeypatch.setattr(run, "libraries", lambda wanted: ({}, {"torch": "not installed"}))
    monkeypatch.setattr(run, "run", lambda options, sides: [])
    monkeypatch.setattr(run, "recorded", lambda *arguments: now)
    assert run.main(["--check", "--rows", "add"]) == code
    printed = capsys.readouterr()
    assert ("worse: add, 1 thread: 0.50 -> 0.70" in printed.err) == bool(code)
    assert "torch: not installed; its columns stay empty" in printed.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--compare", "torch,theano"], "theano not among torch,"),
        (["--write", "--rows", "add"], "--write needs all rows"),
        (["--write", "--compare", "numpy"], "--write needs all rows, and torch"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments, says, capsys) -> None:
    with pytest.raises(SystemExit):
        importlib.import_module("run").main(arguments)
    assert says in capsys.readouterr().err


def test_every_budget_of_what_was_measured_is_judged(report, record) -> None:
    assert report.judge(record, BUDGETS) == [
        ("add, 1 thread, ours/torch", 0.5, 0.4),
        ("MLP step, Adam, 1 thread, ours/torch", 0.5, 0.8),
        ("MLP step, Adam, 2 threads, ours/torch", 0.5, 0.8),
        ("peak memory, MLP step, Adam, ours/torch", 0.5, 1.0),
        ("import and first step, ours/torch", 0.2, 0.25),
        ("import flambeau, ms", 80.0, 70),
        ("flambeau on disk, MB", 5.0, 10),
    ]


def test_budgets_name_rows_that_exist() -> None:
    run, report = (importlib.import_module(name) for name in ("run", "report"))
    budgets = tomllib.loads((FOLDER / "budgets.toml").read_text())
    by_threads = {
        count: {r.name for r in run.rows("") if count in r.threads} | {report.MEAN}
        for count in (1, 2)
    }
    assert set(budgets["ratio_to_torch"]) <= by_threads[1]
    assert set(budgets["ratio_to_torch_2_threads"]) <= by_threads[2]
    assert {"peak memory", "import and first step", "installed size"} == set(
        budgets["fresh_ratio_to_torch"]
    )


def test_the_page_says_what_was_measured_with_what_and_against_which_target(report, record) -> None:
    page = report.page(record, BUDGETS)
    assert "2030-01-02, Imaginary 1, 2 processors, 1 and 2 threads" in page
    assert "flambeau 0.1.0, torch 9.0, numpy 8.0" in page
    assert "Not compared: jax: not installed." in page
    assert "![Ratios to PyTorch](benchmarks.svg)" in page
    assert "| add, 1 thread | 0.50 | 0.4 | missed by 25 %: a reason from a profile |" in page
    assert "| MLP step, Adam, 1 thread | 0.50 | 0.8 | met |" in page
    assert "Slower than PyTorch: sum 1.50.\n\n* sum: what the memory gives\n\n|" in page
    assert "not shown" not in page
    assert "| add | 1 | 0.50 | 0.50 ± 0.05 | 2.00 ± 0.05 |" in page
    assert "| MLP step, Adam | 2 | 400.00 | 0.50 ± 0.05 | – |" in page
    assert "geometric mean of 2 ratios is 0.50. Slower than PyTorch: sum 1.50." in page
    assert "| MLP step, Adam | 100 (50) | 200 (150) | 0.50 |" in page
    assert "| import and first step, ms | 300 | 1500 | – |" in page
    assert "busy" not in page and "--quick" not in page
    assert page.endswith("|\n") and max(map(len, page.split("\n"))) < 400


def test_a_busy_machine_and_short_rounds_are_marked(report, record) -> None:
    record["environment"] |= {"load": 7.5, "quick": True}
    page = report.page(record, BUDGETS)
    assert "**Measured on a busy machine** (load 7.5 on 2 processors" in page
    assert 'make bench ARGS="--quick --write"' in page and "last digit is noise" in page


def test_a_side_that_failed_is_a_dash_and_named(report, record) -> None:
    record["rows"][0] = row("add", 1, 0.5, None)
    record["memory"][0]["megabytes"].pop("torch")
    page = report.page(record, BUDGETS)
    assert "| add | 1 | 0.50 | – |" in page
    assert "Failed: add on torch (ValueError: broken)." in page
    assert "| add, 1 thread | – | 0.4 | not measured: a reason from a profile |" in page
    assert "| MLP step, Adam | 100 (50) | – | – |" in page
    shown = report.text(record, report.judge(record, BUDGETS), ["flambeau", "torch", "numpy"])
    assert "    torch: ValueError: broken" in shown and "not measured add, 1 thread" in shown


def test_a_record_of_few_rows_has_a_page_and_a_text(report, record) -> None:
    few = {name: record[name] for name in ("environment", "missing", "rows")} | {"missing": {}}
    page = report.page(few, BUDGETS)
    assert "Memory" not in page and "Not compared" not in page
    assert "pass" in report.text(few, report.judge(few, BUDGETS), ["flambeau", "torch"])


def test_writing_makes_record_page_and_chart_that_agree(
    report, record, monkeypatch, tmp_path
) -> None:
    for name, file in (("RECORD", "r.json"), ("PAGE", "p.md"), ("CHART", "benchmarks.svg")):
        monkeypatch.setattr(report, name, tmp_path / file)
    report.write(record, BUDGETS)
    assert json.loads((tmp_path / "r.json").read_text()) == record
    assert (tmp_path / "p.md").read_text() == report.page(record, BUDGETS)
    picture = (tmp_path / "benchmarks.svg").read_text("utf-8")
    words = [text.text for text in ElementTree.fromstring(picture).iter(f"{SVG}text")]
    assert words[2:5] == ["Single calls", "add", "0.50"] and "MLP step · 2" in words
    report.write(record, BUDGETS)
    assert (tmp_path / "benchmarks.svg").read_text("utf-8") == picture


def test_the_committed_page_is_that_of_the_committed_record(report) -> None:
    budgets = tomllib.loads((FOLDER / "budgets.toml").read_text())
    record = json.loads(report.RECORD.read_text())
    assert report.PAGE.read_text("utf-8") == report.page(record, budgets)
    assert report.CHART.read_text("utf-8") == report.chart.draw(report.over_torch(record))


@pytest.mark.parametrize("ratios", [{}, {"add, 1 thread": None}, {"a < b & c, 1 thread": 1e-4}])
def test_a_chart_of_few_or_extreme_ratios_is_a_picture(report, ratios) -> None:
    picture = ElementTree.fromstring(report.chart.draw(ratios))
    width = float(picture.get("viewBox").split()[2])
    for bar in picture.iter(f"{SVG}rect"):
        assert float(bar.get("x", 0)) + float(bar.get("width")) <= width


def test_a_row_is_measured_on_every_side_that_has_code_for_it() -> None:
    harness = importlib.import_module("harness")
    import flambeau

    numpy = pytest.importorskip("numpy")
    small = {r.name: r for r in importlib.import_module("small_ops").ROWS}
    sides = {"flambeau": flambeau, "numpy": numpy}
    for name in ("add", "softmax", "x += y"):
        result = harness.measure(small[name], sides, 1, 3, 1e-5)
        assert {n: s.error for n, s in result.sides.items()} == {"flambeau": None, "numpy": None}
        assert result.ratio("numpy")[0] > 0
    chain = harness.measure(small["chain of 30, forward and backward"], sides, 1, 3, 1e-5)
    assert set(chain.sides) == {"flambeau"} and chain.ratio("numpy") is None


def test_bare_numpys_code_computes_what_flambeaus_does() -> None:
    import flambeau

    numpy = pytest.importorskip("numpy")
    for r in importlib.import_module("small_ops").ROWS:
        if "numpy" not in r.others or r.name == "x += y":
            continue
        statement, setup = r.others["numpy"]
        theirs = eval(statement, setup(numpy))
        ours = eval(r.statement, r.setup(flambeau))
        numpy.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-5)


def test_memory_and_first_steps_come_from_processes_of_their_own() -> None:
    installed = importlib.import_module("installed")
    before, after = installed.peak_memory("flambeau", "MLP step, Adam")
    assert 20 < before <= after < 2000
    times = installed.first_step_milliseconds(["flambeau"], 1)
    assert times["flambeau"] > installed.import_milliseconds(["flambeau"], 1)["flambeau"]


def test_what_is_not_installed_is_left_out_with_the_reason() -> None:
    sides = importlib.import_module("sides")
    found, missing = sides.libraries(["no_such_library"])
    assert list(found) == ["flambeau"] and missing == {"no_such_library": "not installed"}
    facts = sides.environment(found)
    assert facts["flambeau"] and facts["processors"] >= 1 and facts["processor"]


def test_ratios_of_threads_are_over_one_process_with_one_thread() -> None:
    threads = importlib.import_module("threads")
    times = {(1, 1): 8.0, (1, 2): 4.0, (2, 1): 8.0, (2, 2): 12.0}
    found = threads.ratios(
        "flambeau", "MLP", 2, 1.0, {}, lambda library, work, p, t, *rest: times[p, t]
    )
    assert found == {"1x1": 8.0, "1x2": 0.5, "2x1": 1.0, "2x2": 1.5}


def test_two_processes_with_two_threads_each_are_measured_together() -> None:
    command = [sys.executable, FOLDER / "threads.py", "--libraries", "flambeau"]
    command += ["--workloads", "pointwise", "--seconds", "0.05", "--processors", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    lines = done.stdout.splitlines()
    assert lines[0].split()[-3:] == ["1x2", "2x1", "2x2"]
    assert all(float(figure) > 0 for figure in lines[-1].split()[-4:])


def test_what_compiling_takes_is_told_apart_from_the_steps_after_it():
    compilers = importlib.import_module("compilers")
    slow, fast = [1.0] * 20 + [0.002] * 5, [0.5] * 20 + [0.001] * 5
    lines = compilers.table("net", {"torch": slow, "flambeau.compile": fast}).splitlines()
    assert lines[1].split() == ["torch", "20.00", "s", "2.00", "ms", "1.00"]
    assert lines[2].split() == ["flambeau.compile", "10.00", "s", "1.00", "ms", "0.50"]


def test_deaths_are_counted_and_starts_too():
    words = ["--engine", "reference", "--ranks", "2", "--kills", "1", "--starts", "1"]
    script = [sys.executable, str(FOLDER / "deaths.py"), *words, "--only", "barrier"]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    killed, started = done.stdout.splitlines()
    assert killed.startswith("barrier") and "1 named" in killed and "0 not named" in killed
    assert started.startswith("1 starts, 0 failures")
