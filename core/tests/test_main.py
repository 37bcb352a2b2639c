"""The command line: ``python -m flambeau``, ``kernels DEVICE`` and ``doctor``."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

import flambeau as fb
import flambeau._cli.doctor as doctor
from flambeau.__main__ import main
from flambeau.ops import OPS as DECLARED
from flambeau.plugin import API_VERSION, Backend, KernelSet, float32, hookimpl
from flambeau.plugin.host import PluginHost
from flambeau.plugin.remedies import install_command


class Runtime(Backend):
    array = list

    def __init__(self, device_type, count=1):
        self.device_type, self.count = device_type, count

    def from_host(self, data, shape, dtype, index):
        return list(data)

    def to_host(self, array):
        return bytes(array)

    def dtype_of(self, array):
        return float32

    def device_count(self):
        if self.count is None:
            raise OSError("driver too old")
        return self.count


class Plugin:
    def __init__(self, *ops, backend=None, provider="flambeau-toy 0.1", report=None):
        self.ops, self.backend, self.provider, self.facts = ops, backend, provider, report

    @hookimpl
    def flambeau_backend(self):
        return self.backend

    @hookimpl
    def flambeau_kernels(self):
        return KernelSet(self.provider, dict.fromkeys(self.ops, max))

    @hookimpl
    def flambeau_report(self):
        if isinstance(self.facts, Exception):
            raise self.facts
        return self.facts


def entry(device_type, plugin, dist, version="0.1"):
    def load():
        if isinstance(plugin, Exception):
            raise plugin
        return plugin

    return SimpleNamespace(
        name=device_type,
        value="module",
        dist=SimpleNamespace(name=dist, version=version),
        load=load,
    )


OPS = {
    name: SimpleNamespace(name=name, tier=tier, overridable=True, why_not="")
    for name, tier in {
        "add": "primitive",
        "erf": "primitive",
        "softmax": "composite",
        "gelu": "composite",
    }.items()
}


def host_of(*entries, ops=OPS, **environ):
    made = PluginHost(entry_points=lambda: entries, environ=environ)
    made.op_table = lambda: ops
    return made


def toy(*ops, **options):
    return entry("toy", Plugin(*ops, backend=Runtime("toy"), **options), "flambeau-toy")


def cpu(*ops, count=1, **options):
    plugin = Plugin(*ops, backend=Runtime("cpu", count), provider="flambeau-numpy 0.1", **options)
    return entry("cpu", plugin, "flambeau-numpy")


def run(capsys, host, *argv):
    status = main(list(argv), plugins=host)
    output = capsys.readouterr()
    return status, output.out, output.err


def squeezed(text):
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.fixture
def nn_installed(monkeypatch):
    monkeypatch.setattr(doctor, "nn_version", lambda: "0.1")


@pytest.mark.parametrize("argv", [[], ["devices"]])
def test_overview_shows_provider_version_and_coverage_per_device(capsys, argv):
    host = host_of(toy("add", "softmax", "add_", report={"library": "9.9"}))
    status, text, _ = run(capsys, host, *argv)
    lines = squeezed(text)
    assert status == 0
    assert lines[0].startswith("flambeau-core ")
    assert f"plugin API {API_VERSION}" in lines[0]
    assert lines[2:] == [
        "toy: 1 device",
        f"backend flambeau-toy:toy ({Runtime.__module__}.Runtime)",
        "kernels flambeau-toy 0.1: 3",
        "primitives 1 of 2, missing: erf",
        "composites 1 native, 1 decomposed",
        "in-place 1 native",
        "library 9.9",
    ]


def test_overview_lists_every_provider_of_a_device(capsys):
    host = host_of(cpu("add"), entry("cpu", Plugin("gelu", provider="fast 2"), "flambeau-fast"))
    _, text, _ = run(capsys, host)
    assert {"kernels flambeau-numpy 0.1: 1", "kernels fast 2: 1"} <= set(squeezed(text))


def test_overview_shows_broken_devices_beside_working_ones(capsys):
    host = host_of(
        toy("add", report=ValueError("no version")),
        entry("cuda", ImportError("libcudart.so.12"), "flambeau-cupy"),
        entry("toy", ImportError("no compiler"), "flambeau-fast"),
    )
    status, text, _ = run(capsys, host)
    lines = squeezed(text)
    assert status == 0
    assert "cuda: not usable" in lines
    assert any("ImportError: libcudart.so.12" in line for line in lines)
    assert any(line.startswith("left out") and "no compiler" in line for line in lines)
    assert "report failed: ValueError: no version" in lines


def test_overview_without_ops_and_without_backends_still_works(capsys):
    status, text, _ = run(capsys, host_of(toy("add"), ops={}))
    assert status == 0
    assert "primitives" not in text
    status, text, _ = run(capsys, host_of(ops={}))
    assert status == 0
    assert install_command("flambeau-numpy") in text


def test_overview_says_when_devices_cannot_be_counted(capsys):
    _, text, _ = run(capsys, host_of(cpu(count=None)))
    assert "cpu: devices cannot be counted: OSError: driver too old" in text


def test_kernel_table_names_the_provider_of_every_op(capsys):
    host = host_of(
        cpu("add", "add_", "assign"), entry("cpu", Plugin("gelu", provider="fast 2"), "fast")
    )
    status, text, _ = run(capsys, host, "kernels", "cpu")
    assert status == 0
    assert squeezed(text) == [
        "op tier provider",
        "add primitive flambeau-numpy 0.1",
        "add_ in-place flambeau-numpy 0.1",
        "assign strided flambeau-numpy 0.1",
        "erf primitive MISSING",
        "gelu composite fast 2",
        "softmax composite decomposition",
    ]


def test_kernel_table_of_an_unknown_device_is_an_error(capsys):
    status, text, error = run(capsys, host_of(toy()), "kernels", "tox")
    assert (status, text) == (1, "")
    assert "Did you mean 'toy'?" in error


@pytest.mark.usefixtures("nn_installed")
def test_doctor_is_content_with_a_complete_installation(capsys):
    status, text, _ = run(capsys, host_of(cpu("add", "erf"), toy("add", "erf")), "doctor")
    lines = squeezed(text)
    assert status == 0
    assert "ok cpu: flambeau-numpy 0.1, 1 device" in lines
    assert "ok toy: flambeau-toy 0.1, 1 device" in lines
    assert lines[-1] == "no problem found"


@pytest.mark.usefixtures("nn_installed")
def test_doctor_tells_how_to_install_what_a_backend_says_is_not_installed(capsys):
    facts = {"flambeau-onednn": "not installed: slower", "driver": "not found", "threads": "2"}
    text = run(capsys, host_of(cpu("add", "erf", report=facts)), "doctor")[1]
    told = text[text.index("note     cpu: ") :].splitlines()
    assert told[0] == "note     cpu: flambeau-onednn: not installed: slower"
    assert "remedy: pip install " in told[1] and "cpu_onednn" in told[1]
    assert told[2:] == ["note     cpu: driver: not found", "no problem found"]


@pytest.mark.usefixtures("nn_installed")
def test_doctor_notes_gaps_and_absent_hardware_without_failing(capsys):
    absent = entry("cuda", Plugin("add", "erf", backend=Runtime("cuda", 0)), "flambeau-cupy")
    status, text, _ = run(capsys, host_of(cpu("add"), absent), "doctor")
    assert status == 0
    assert "note     cpu: required primitives without a kernel (1): erf" in text
    assert "this machine has no such device" in text


@pytest.mark.usefixtures("nn_installed")
def test_doctor_explains_a_broken_plugin_with_cause_and_remedy(capsys):
    error = ImportError("cannot load cupy")
    error.__cause__ = OSError("libcudart.so.12: not found")
    host = host_of(cpu("add", "erf"), entry("cuda", error, "flambeau-cupy", "0.3"))
    status, text, _ = run(capsys, host, "doctor")
    lines = squeezed(text)
    assert status == 1
    assert (
        "problem cuda: backend 'flambeau-cupy:cuda' for device 'cuda' failed to load: "
        "ImportError: cannot load cupy"
    ) in lines
    assert "flambeau-cupy 0.3" in lines
    assert "caused by OSError: libcudart.so.12: not found" in lines
    assert any(
        line.startswith("remedy:") and "FLAMBEAU_BLOCK=flambeau-cupy" in line for line in lines
    )
    assert lines[-1] == "1 problem found"
    assert "Traceback" not in text


@pytest.mark.usefixtures("nn_installed")
def test_doctor_names_kernels_that_do_not_take_the_arguments_of_their_op(capsys):
    class Kernels(Plugin):
        @hookimpl
        def flambeau_kernels(self):
            kernels = {
                "add": lambda a: a,
                "add_": lambda a, b, out: None,
                "erf": lambda a, *rest, precise=False: a,
                "gelu": min,  # says nothing of its arguments
                "normal_": lambda dst, mean, std, generator: None,
                "uniform_": lambda shape, low, high, dtype, generator: None,
            }
            return KernelSet("flambeau-toy 0.1", kernels)

    params = {"add": ("self", "other"), "erf": ("self",), "gelu": ("self", "approximate")}
    ops = {n: SimpleNamespace(**{**vars(op), "params": params.get(n)}) for n, op in OPS.items()}
    ops |= {name: DECLARED[name] for name in ("normal", "uniform")}
    host = host_of(cpu(), entry("toy", Kernels(backend=Runtime("toy")), "flambeau-toy"), ops=ops)
    status, text, _ = run(capsys, host, "doctor")
    found = [line for line in squeezed(text) if "does not take" in line]
    assert status == 1
    assert found == [
        "problem toy: the kernel of flambeau-toy 0.1 for 'add' does not take the arguments "
        "(self, other): too many positional arguments",
        "problem toy: the kernel of flambeau-toy 0.1 for 'add_' does not take the arguments "
        "(self, other): missing a required argument: 'out'",
        "problem toy: the kernel of flambeau-toy 0.1 for 'uniform_' does not take the arguments "
        "(dst, low, high, generator): missing a required argument: 'generator'",
    ]


@pytest.mark.usefixtures("nn_installed")
def test_doctor_finds_every_kernel_that_is_installed_to_take_its_arguments(capsys):
    main(["doctor"])  # whatever else it says of this machine
    text = capsys.readouterr().out
    assert "cpu: " in text and "does not take" not in text


@pytest.mark.usefixtures("nn_installed")
def test_doctor_goes_on_where_a_report_fails_or_is_no_text(capsys):
    host = host_of(cpu("add", "erf", report=OSError("gone")), toy("add", "erf", report={"n": 3}))
    status, text, _ = run(capsys, host, "doctor")
    assert status == 1
    assert "problem cpu: flambeau_report failed: OSError: gone" in squeezed(text)
    assert "ok toy: flambeau-toy 0.1, 1 device" in squeezed(text)


@pytest.mark.usefixtures("nn_installed")
def test_doctor_shows_tracebacks_on_request(capsys):
    host = host_of(cpu("add", "erf"), entry("toy", ImportError("no"), "t"))
    _, text, _ = run(capsys, host, "doctor", "--traceback")
    assert "| Traceback (most recent call last):" in text
    assert "| ImportError: no" in text


@pytest.mark.usefixtures("nn_installed")
def test_doctor_explains_an_api_version_mismatch(capsys):
    old = Plugin(backend=Runtime("toy"))
    old.api_version = "0.5"
    status, text, _ = run(
        capsys, host_of(cpu("add", "erf"), entry("toy", old, "flambeau-toy")), "doctor"
    )
    assert status == 1
    assert "was written for plugin API 0.5" in text
    assert "remedy: pip install -U flambeau-toy" in text


@pytest.mark.usefixtures("nn_installed")
def test_doctor_reports_a_left_out_accelerator(capsys):
    host = host_of(cpu("add", "erf"), entry("cpu", ImportError("no gcc"), "flambeau-native"))
    status, text, _ = run(capsys, host, "doctor")
    assert status == 1
    assert "ok       cpu: flambeau-numpy 0.1, 1 device" in text
    assert "ImportError: no gcc" in text


@pytest.mark.usefixtures("nn_installed")
def test_doctor_explains_conflicting_owners(capsys):
    host = host_of(cpu(), entry("cpu", Plugin(backend=Runtime("cpu")), "flambeau-rival"))
    status, text, _ = run(capsys, host, "doctor")
    assert status == 1
    assert "'flambeau-numpy:cpu' and 'flambeau-rival:cpu'" in text
    assert "FLAMBEAU_PREFER=" in text


@pytest.mark.usefixtures("nn_installed")
def test_doctor_misses_the_cpu_backend(capsys):
    status, text, _ = run(capsys, host_of(toy("add", "erf")), "doctor")
    assert status == 1
    assert install_command("flambeau-numpy") in text


def test_doctor_misses_flambeau_nn(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "nn_version", lambda: None)
    status, text, _ = run(capsys, host_of(cpu("add", "erf")), "doctor")
    assert status == 1
    assert f"remedy: {install_command('flambeau-nn')}" in text


@pytest.mark.usefixtures("nn_installed")
def test_doctor_reports_a_driver_that_cannot_count_devices(capsys):
    status, text, _ = run(capsys, host_of(cpu("add", "erf", count=None)), "doctor")
    assert status == 1
    assert "OSError: driver too old" in text


@pytest.mark.usefixtures("nn_installed")
def test_doctor_reads_the_environment(capsys):
    host = host_of(
        cpu("add", "erf"),
        toy("add"),
        FLAMBEAU_PREFER="cpu=flambeau-numba",
        FLAMBEAU_BLOCK="flambeau-toy",
    )
    status, text, _ = run(capsys, host, "doctor")
    assert status == 0
    assert "flambeau-numba is preferred for cpu, but it is not installed" in text
    assert "flambeau-toy is installed but blocked" in text
    status, text, _ = run(capsys, host_of(cpu(), FLAMBEAU_PREFER="cpu"), "doctor")
    assert status == 1
    assert "remedy: correct or unset FLAMBEAU_PREFER" in text


def test_unknown_command_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["cure"])
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert (
        "usage: python -m flambeau [-h] [--version] [devices | kernels | new-backend | doctor |"
        in said
    )
    assert "argument COMMAND: invalid choice: 'cure'" in said


@pytest.mark.parametrize("ending", ["", "raise SystemExit(3)"])
def test_trace_writes_when_each_op_of_a_script_ran(capsys, tmp_path, ending):
    script, output = tmp_path / "script.py", tmp_path / "seen.json"
    script.write_text(
        "import sys, torch\n"
        "x = torch.ones(2, 3, device='ref', requires_grad=True)\n"
        f"(x * len(sys.argv)).sum().backward()\n{ending}\n"
    )
    try:
        status = main(["trace", "--output", str(output), str(script), "--some", "argument"])
    except SystemExit as left:
        status = left.code
    assert status == (3 if ending else 0)
    names = {event["name"] for event in json.loads(output.read_text())["traceEvents"]}
    assert {"mul", "sum", "SumBackward0"} <= names
    assert f"events in {output}" in capsys.readouterr().out


def test_trace_of_a_script_that_is_not_there_is_an_error(capsys, tmp_path):
    assert main(["trace", str(tmp_path / "absent.py")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_trace_writes_what_ran_before_somebody_stopped_the_script(monkeypatch, tmp_path):
    script, output = tmp_path / "script.py", tmp_path / "seen.json"
    script.write_text("import torch\ntorch.ones(2) * 2\nraise KeyboardInterrupt\n")
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # which is told where programs begin
    with pytest.raises(KeyboardInterrupt):
        main(["trace", "--output", str(output), str(script)])
    names = {event["name"] for event in json.loads(output.read_text())["traceEvents"]}
    assert "mul" in names


@pytest.mark.parametrize("place", [".", "absent/seen.json"])
def test_trace_says_that_it_cannot_write_before_the_script_runs(capsys, tmp_path, place):
    script = tmp_path / "script.py"
    script.write_text("print('it ran')\n")
    assert main(["trace", "--output", str(tmp_path / place), str(script)]) == 2
    said = capsys.readouterr()
    assert "it ran" not in said.out
    assert said.err.startswith(f"cannot write {tmp_path / place}: ")


def test_trace_of_a_script_that_is_not_there_leaves_the_file_as_it_was(capsys, tmp_path):
    output = tmp_path / "seen.json"
    for before in (None, "of yesterday"):
        if before is not None:
            output.write_text(before)
        assert main(["trace", "--output", str(output), str(tmp_path / "absent.py")]) == 2
        assert (output.read_text() if output.exists() else None) == before


def test_trace_without_a_script_asks_for_that_alone(capsys):
    with pytest.raises(SystemExit):
        main(["trace"])
    assert capsys.readouterr().err.endswith("arguments are required: SCRIPT\n")


def test_version_is_printed(capsys):
    with pytest.raises(SystemExit) as exit:
        main(["--version"])
    assert exit.value.code == 0
    assert capsys.readouterr().out == f"flambeau {fb.__version__}\n"


def test_module_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "flambeau"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("flambeau-core ")
