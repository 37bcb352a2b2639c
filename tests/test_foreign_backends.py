"""The backends of examples/backends, which nobody of flambeau had to know, do what they promise."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import flambeau as fb
from flambeau.plugin.host import host

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples/backends"
WHOLE = os.environ.get("FLAMBEAU_TEST_WHOLE", "") not in ("", "0")
JAX = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="jax is not installed: pip install jax"
)


def environment(folder: Path, *examples: str) -> dict[str, str]:
    """Where the examples are as if they were installed: importable, with their entry points."""
    path = [str(folder)]
    for example in examples:
        project = tomllib.loads((EXAMPLES / example / "pyproject.toml").read_text())["project"]
        info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        info.mkdir()
        metadata = (
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        )
        (info / "METADATA").write_text(metadata)
        points = project["entry-points"]["flambeau.backends"].items()
        entries = "".join(f"{name} = {module}\n" for name, module in points)
        (info / "entry_points.txt").write_text(f"[flambeau.backends]\n{entries}")
        path.append(str(EXAMPLES / example / "src"))
    clean = {k: v for k, v in os.environ.items() if not k.startswith("FLAMBEAU_")}
    return {**clean, "PYTHONPATH": os.pathsep.join([*path, *filter(None, sys.path)])}


def run(env: dict[str, str], folder: Path, *arguments: str, seconds: float = 600) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    return done.stdout


@pytest.mark.parametrize("example", ["toy", "jax", "softmax"])
def test_examples_import_nothing_of_flambeau_but_the_plugin_module(example: str) -> None:
    sources = [p.read_text() for p in (EXAMPLES / example / "src").rglob("*.py")]
    found = re.findall(
        r"^\s*(?:from|import) (flambeau(?!_)(?:\.\S+)?)(.*)", "\n".join(sources), re.M
    )
    assert found
    for module, rest in found:
        assert module == "flambeau.plugin" or (module, rest) == ("flambeau", " import plugin")


def test_the_jax_backend_has_at_most_600_lines() -> None:
    sources = [p.read_text() for p in (EXAMPLES / "jax/src").rglob("*.py")]
    assert sum(len(s.splitlines()) for s in sources) <= 600


@pytest.mark.slow
@pytest.mark.parametrize("example", ["toy", "simulated", pytest.param("jax", marks=JAX)])
def test_the_digits_demo_trains_on_a_foreign_device(example: str, tmp_path: Path) -> None:
    script = [str(ROOT / "examples/digits.py"), "--device", example, "--epochs", "2"]
    said = run(environment(tmp_path, example), tmp_path, *script)
    accuracy = re.search(r"accuracy ([\d.]+) %", said)
    assert accuracy
    assert float(accuracy[1]) > 90


LAZILY = """
import flambeau as fb
from flambeau import nn
from flambeau_lazy.graph import LONGEST, Lazy

def losses(device):
    fb.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).to(device)
    optimizer = fb.optim.Adam(model.parameters(), lr=0.1)
    x, y = fb.rand(9, 6).to(device), fb.randint(0, 3, (9,)).to(device)
    found = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss)
    return found

lazy = losses("lazy")
assert lazy[-1]._a.value is None, "computed before anybody looked"
assert [x.item() for x in lazy] == [x.item() for x in losses("toy")]
assert lazy[-1]._a.args == (), "what was computed keeps what it was computed from"

x = fb.zeros(3, device="lazy")
for _ in range(3 * LONGEST):
    x = x + 1
assert x._a.length <= LONGEST
assert x.tolist() == [3.0 * LONGEST] * 3

try:
    x.to(fb.uint16)
except NotImplementedError as error:
    assert "uint16" in str(error)
else:
    raise AssertionError("what the library has no dtype for was promised")
"""


def test_a_lazy_device_computes_once_somebody_looks_and_what_its_library_computes(
    tmp_path: Path,
) -> None:
    run(environment(tmp_path, "lazy", "toy"), tmp_path, "-c", LAZILY)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("examples", "options"),
    [
        (["lazy", "toy"], ["--quick", "--seconds", "0", "-k", "not corners"]),
        (["simulated"], ["--quick", "--seconds", "0"]),
    ],
)
def test_a_first_verdict_on_a_device_that_puts_work_off(
    examples: list[str], options: list[str], tmp_path: Path
) -> None:
    """With FLAMBEAU_TEST_WHOLE=1 all of the kit, by hand."""
    device, *_ = examples
    options = [] if WHOLE else options
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--pyargs"]
    command += ["flambeau.testing.backend", "--device", device, *options]
    env = environment(tmp_path, *examples)
    run(env, tmp_path, *command, "--conformance-json", "result.json", seconds=3600)
    found = json.loads((tmp_path / "result.json").read_text())["devices"][device]
    assert found["reached"] == "training"
    assert found["complete"] == WHOLE
    assert bool(found["badge"]) == WHOLE


# A program for every op and shape fills gigabytes, and few are asked for by later tests.
FORGETS = """
import itertools, jax
count = itertools.count(1)
def pytest_runtest_teardown():
    if next(count) % 150 == 0:
        jax.clear_caches()
"""


@JAX
@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_the_conformance_kit_passes_on_jax(tmp_path: Path) -> None:
    """On the toy it runs as the tutorial's reader runs it, in test_tutorial.py."""
    (tmp_path / "forgets.py").write_text(FORGETS)
    command = ["-m", "pytest", "-q", "-n", "2", "-p", "forgets", "-p", "no:cacheprovider"]
    command += ["-c", os.devnull, "--pyargs", "flambeau.testing.backend", "--device", "jax"]
    env = environment(tmp_path, "jax") | {
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",  # compiling is what takes the time
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "programs"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    run(env, tmp_path, *command, "--conformance-json", "result.json", seconds=5000)
    found = json.loads((tmp_path / "result.json").read_text())["devices"]["jax"]
    assert found["reached"] == "training"
    assert any("composites run decomposed" in hint for hint in found["hints"])


def test_the_environment_prefers_and_blocks_installed_packages(tmp_path: Path) -> None:
    env = environment(tmp_path, "softmax", "toy")
    program = (
        "import flambeau as fb\n"
        "from flambeau.plugin.host import host\n"
        "fb.ones(3).softmax(0)\n"
        "print(host.providers('cpu')['softmax'].partition(' ')[0], 'toy' in host.device_types())\n"
    )

    def said(**variables: str) -> str:
        return run({**env, **variables}, tmp_path, "-c", program).strip()

    fast, native = "flambeau-fast-softmax", "flambeau-native"  # both want to be first
    assert said(FLAMBEAU_BLOCK=native) == f"{fast} True"
    assert said(FLAMBEAU_PREFER=f"cpu={fast}") == f"{fast} True"
    assert said(FLAMBEAU_PREFER="cpu=flambeau-numpy") == "flambeau-numpy True"
    assert said(FLAMBEAU_BLOCK=f"{fast},{native}") == "flambeau-numpy True"
    assert said(FLAMBEAU_BLOCK=f"Flambeau_Toy,{native}") == f"{fast} False"


SCRIPT = """
import sys
import flambeau as torch
device, = sys.argv[1:]
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
model.to(device)
x = torch.randn(16, 4, device=device)
for _ in range(3):
    model(x).log_softmax(1)[:, 0].mean().backward()
print("trained on", x.device)
"""


def test_a_profiled_script_runs_and_its_decomposed_ops_are_ranked(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    env = environment(tmp_path, "toy")
    command = ["-m", "flambeau", "kernels", "toy", "--profile", "script.py", "toy"]
    script, heading, columns, *rows = run(env, tmp_path, *command).splitlines()
    assert script == "trained on toy:0"
    assert heading == "decomposed on 'toy', slowest first:"
    assert columns.split() == ["op", "calls", "time", "share"]
    table = {row.split()[0]: row.split()[1:] for row in rows}
    assert {"linear", "gelu", "log_softmax"} <= table.keys()
    assert "add" not in table
    assert (table["linear"][0], table["gelu"][0]) == ("6", "3")
    times = [float(time) for _, time, *_ in table.values()]
    assert times == sorted(times, reverse=True)


@pytest.fixture
def jax_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    pytest.importorskip("jax", reason="jax is not installed: pip install jax")
    monkeypatch.syspath_prepend(EXAMPLES / "jax/src")
    plugin = importlib.import_module("flambeau_jax.plugin")
    host.register(plugin, name="flambeau-jax", device_types=["jax"])
    yield
    host.unregister("flambeau-jax")


@pytest.mark.usefixtures("jax_device")
def test_composites_are_compiled_and_agree_with_the_cpu() -> None:
    values = [[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]]
    made = []
    for device in ("cpu", "jax"):
        x = fb.tensor(values, device=device, dtype=fb.float64, requires_grad=True)
        y = fb.nn.functional.gelu(x).softmax(1)
        y[:, 0].sum().backward()
        assert x.grad is not None
        made.append(y.tolist() + x.grad.tolist())
    for found, wanted in zip(made[1], made[0], strict=True):
        assert found == pytest.approx(wanted, rel=1e-12)
    assert str(fb.zeros(1, device="jax").device) == "jax"


@pytest.mark.usefixtures("jax_device")
def test_a_composite_is_traced_once_per_shape_and_static_argument() -> None:
    from flambeau_jax.backend import JaxBackend  # type: ignore[import-not-found]

    runs = []

    def decomposition(a, flag):
        runs.append(flag)
        return a * 2 if flag is True else a * 3

    doubled = JaxBackend().compile("doubled", decomposition)
    x, longer = fb.ones(3, device="jax")._a, fb.ones(4, device="jax")._a
    for a, flag, wanted in [(x, True, 2), (x, True, 2), (x, 1, 3), (longer, True, 2)]:
        assert doubled(a, flag).tolist() == [wanted] * len(a)
    assert runs == [True, 1, True]


@pytest.mark.usefixtures("jax_device")
def test_what_looks_at_values_runs_op_by_op() -> None:
    from flambeau_jax.backend import JaxBackend  # type: ignore[import-not-found]

    def decomposition(a):
        return a * 2 if float(a[0]) > 0 else a

    doubled = JaxBackend().compile("doubled", decomposition)
    x = fb.ones(3, device="jax")._a
    assert doubled(x).tolist() == [2.0] * 3
    assert doubled(-x).tolist() == [-1.0] * 3


@pytest.mark.usefixtures("jax_device")
def test_constants_of_a_traced_composite_do_not_leak_into_later_ops() -> None:
    x = fb.ones(3, device="jax", requires_grad=True)
    fb.nn.functional.gelu(x).sum().backward()
    assert (x.detach() * 0.5).tolist() == [0.5] * 3
    assert (x.detach() * 0.044715).tolist() == pytest.approx([0.044715] * 3)


@pytest.mark.usefixtures("jax_device")
def test_a_compiled_step_is_one_program_and_reaches_the_losses_of_its_ops() -> None:
    from flambeau_jax import backend  # type: ignore[import-not-found]

    programs = []

    def losses(compiled: bool) -> list[float]:
        fb.manual_seed(0)
        model = fb.nn.Sequential(fb.nn.Linear(4, 8), fb.nn.Dropout(0.5), fb.nn.Linear(8, 3))
        optimizer = fb.optim.Adam(model.to("jax").parameters(), lr=0.01)
        schedule = fb.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        criterion = fb.nn.CrossEntropyLoss()

        def step(x: fb.Tensor, y: fb.Tensor) -> fb.Tensor:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            schedule.step()
            return loss

        run = fb.compile(step, fullgraph=True) if compiled else step
        x, y = fb.randn(5, 4).to("jax"), fb.tensor([0, 1, 2, 1, 0]).to("jax")
        return [run(x, y).item() for _ in range(5)]

    plainly = losses(False)
    with pytest.MonkeyPatch.context() as patch:
        make = backend._as_one_program
        patch.setattr(backend, "_as_one_program", lambda *a: programs.append(a[0]) or make(*a))
        planned = losses(True)
    assert planned == pytest.approx(plainly, rel=1e-6)
    assert len(set(plainly)) == 5
    assert len(programs) == 1 and len(programs[0].steps) > 50


def test_the_page_on_accelerators_shows_the_plugin_module_as_it_is() -> None:
    page = (ROOT / "docs/backends/accelerators.md").read_text()
    shown = dict(re.findall(r"^`(\S+)`:\n\n```python \1\n(.*?)^```$", page, re.M | re.S))
    assert shown
    for name, text in shown.items():
        assert (EXAMPLES / "softmax" / name).read_text() == text


@pytest.fixture
def softmax_plugin(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(EXAMPLES / "softmax/src")
    return importlib.import_module("flambeau_fast_softmax.plugin")


def provider() -> str:
    return host.providers("cpu")["softmax"]


def test_the_accelerator_comes_first_and_goes_without_a_trace(softmax_plugin: object) -> None:
    x = fb.randn(5, 7)
    host.prefer("cpu", "flambeau-numpy")
    numpy = provider()
    host.prefer("cpu")
    fb.empty(0)  # a change of plugins is taken up when the device is next asked for by name
    before, own = x.softmax(1), provider()
    host.register(softmax_plugin, name="fast", device_types=["cpu"])
    try:
        assert provider() == "flambeau-fast-softmax 0.1"
        for t in (x, x.t(), fb.randn(3, 4, 5).transpose(0, 2), fb.randn(()), fb.zeros(0, 3)):
            for dim in range(max(t.dim(), 1)):
                rest = fb.exp(t - t.amax(dim, True)) if t.numel() else t
                fb.testing.assert_close(t.softmax(dim), rest / rest.sum(dim, keepdim=True))
        y = x.clone().requires_grad_()
        y.softmax(1)[:, 0].sum().backward()
        assert y.grad is not None
        host.prefer("cpu", "flambeau-numpy")
        assert provider() == numpy, "the user has the last word"
        host.prefer("cpu")
        assert provider() == "flambeau-fast-softmax 0.1"
    finally:
        host.prefer("cpu")
        host.unregister("fast")
    assert provider() == own
    fb.empty(0)
    assert x.softmax(1).tolist() == before.tolist()
