"""Programs that say ``import torch``, run unchanged."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import types
import warnings

import pytest

import flambeau as fb
from flambeau.compat import torch_alias
from flambeau.compat._started import command_with_torch

pytest.importorskip("flambeau.nn")
pytest.importorskip("flambeau_numpy")

TRAINING = """
from __future__ import print_function
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv = nn.Conv2d(1, 4, 3, 1)
        self.dropout = nn.Dropout(0.25)
        self.fc = nn.Linear(4 * 3 * 3, 2)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        x = self.dropout(torch.flatten(x, 1))
        return F.log_softmax(self.fc(x), dim=1)


def train(args, model, device, loader, optimizer, epoch):
    model.train()
    for data, target in loader:
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()


def test(model, device, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data.to(device))
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    return correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--out")
    args = parser.parse_args()
    torch.manual_seed(1)
    device = torch.device("cpu")
    x = torch.randn(64, 1, 8, 8)
    y = (x.mean(dim=(1, 2, 3)) > 0).long()
    x += y.view(-1, 1, 1, 1).float()
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    model = Net().to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    scheduler = StepLR(optimizer, step_size=2, gamma=0.7)
    for epoch in range(args.epochs):
        train(args, model, device, loader, optimizer, epoch)
        scheduler.step()
    torch.save(model.state_dict(), args.out)
    model.load_state_dict(torch.load(args.out))
    print(torch.__version__, "accuracy", test(model, device, loader))


if __name__ == "__main__":
    main()
"""


def run(tmp_path, text, *arguments):
    script = tmp_path / "script.py"
    script.write_text(text)
    command = [sys.executable, "-m", "flambeau", "run", str(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)


def test_a_training_script_runs_unchanged(tmp_path):
    done = run(tmp_path, TRAINING, "--epochs", "6", "--out", str(tmp_path / "net.pt"))
    assert done.returncode == 0, done.stderr
    version, _, accuracy = done.stdout.split()
    assert version.startswith("2.") and version.endswith(f"flambeau{fb.__version__}")
    assert float(accuracy) > 0.9
    assert "conv.weight" in fb.load(tmp_path / "net.pt")


STARTING = """
import sys
import torch
import torch.multiprocessing as mp


def tell(queue, tensor):
    import torch.nn.functional as F

    queue.put((torch.__version__, F.relu(tensor).sum().item()))


if __name__ == "__main__":
    for method in sys.argv[1:]:
        context = mp.get_context(method)
        queue = context.SimpleQueue()
        process = context.Process(target=tell, args=(queue, torch.ones(3)))
        process.start()
        print(method, *queue.get())
        process.join()
"""


def test_processes_that_a_script_starts_mean_the_same_torch(tmp_path):
    done = run(tmp_path, STARTING, "spawn", "forkserver")
    told = f"2.13.0+flambeau{fb.__version__} 3.0"
    assert done.stdout.splitlines() == [f"spawn {told}", f"forkserver {told}"], done.stderr


@pytest.mark.filterwarnings("ignore:load.weights_only=False.:UserWarning")  # once per process
def test_programs_of_the_first_version_load_whole_objects(tmp_path, monkeypatch):
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", raising=False)
    path = tmp_path / "range.pt"
    fb.save(range(3), path)
    for version in ("1.2", "2.13"):
        with torch_alias(version) as torch:
            if version == "2.13":
                with pytest.raises(pickle.UnpicklingError, match="weights_only"):
                    torch.load(path)
            else:
                assert torch.load(path) == range(3)
                with pytest.raises(pickle.UnpicklingError, match="weights_only"):
                    torch.load(path, weights_only=True)
    with pytest.raises(pickle.UnpicklingError, match="weights_only"):
        fb.load(path)


def test_tracebacks_begin_in_the_script(tmp_path):
    done = run(tmp_path, "import torch\ndef f():\n    torch.ones(2).nosuch()\nf()\n")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Traceback")
    assert "script.py" in lines[1] and "line 4" in lines[1]


OPS_BY_NAME = """
import torch

@torch.jit.script
def positive(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.relu(x) + torch.relu(x) + torch.nn.functional.relu(x)

print(positive(torch.tensor([-1.0, 2.0])).tolist())
"""


def test_scripts_find_ops_by_their_names_in_torch(tmp_path):
    done = run(tmp_path, OPS_BY_NAME)
    assert done.stdout.strip() == "[0.0, 6.0]", done.stderr


def test_the_exit_status_and_the_arguments_are_the_scripts(tmp_path):
    text = "import sys, helper; sys.exit(len(sys.argv) + helper.N)"
    (tmp_path / "helper.py").write_text("N = 40")
    assert run(tmp_path, text, "--flag", "x").returncode == 43


def run_module(tmp_path, *arguments):
    command = [sys.executable, "-m", "flambeau", "run", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)


def test_a_module_runs_as_the_main_program_with_its_arguments(tmp_path):
    package = tmp_path / "program"
    package.mkdir()
    (package / "__init__.py").write_text("N = 40")
    (package / "__main__.py").write_text(
        "import sys, torch\nfrom program import N\n"
        "print(__name__, torch.__version__, sys.argv[1:])\nsys.exit(N)"
    )
    done = run_module(tmp_path, "--as", "1.2", "-m", "program", "-m", "--as", "x")
    assert done.returncode == 40
    assert done.stdout.startswith("__main__ 1.2.0")
    assert done.stdout.endswith("['-m', '--as', 'x']\n")


def test_arguments_of_a_script_are_its_own_even_if_they_are_ours(tmp_path):
    done = run(tmp_path, "import sys; print(sys.argv[1:])", "-m", "x", "--as", "1.2")
    assert done.stdout == "['-m', 'x', '--as', '1.2']\n"


def test_tracebacks_begin_in_the_module(tmp_path):
    (tmp_path / "program.py").write_text("import torch\ntorch.ones(2).nosuch()\n")
    lines = run_module(tmp_path, "-m", "program").stderr.splitlines()
    assert lines[0].startswith("Traceback") and "program.py" in lines[1]
    done = run_module(tmp_path, "-m", "nosuch")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ImportError: No module named nosuch"


@pytest.mark.skipif(sys.platform == "win32", reason="no process ends by a signal there")
@pytest.mark.parametrize("command", [["run"], ["run", "-m"], ["trace"]])
def test_an_interrupted_program_ends_by_the_signal_as_it_does_under_python(tmp_path, command):
    path = tmp_path / "program.py"
    path.write_text("import os, signal, torch\nos.kill(os.getpid(), signal.SIGINT)\n")
    ours = [sys.executable, "-m", "flambeau", *command, "program" if "-m" in command else str(path)]
    done = subprocess.run(ours, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == -signal.SIGINT
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Traceback") and "program.py" in lines[1]
    assert lines[-1] == "KeyboardInterrupt" and "flambeau" not in done.stderr
    assert (tmp_path / "trace.json").exists() == (command == ["trace"])


STARTS_ITSELF = """
import os, subprocess, sys
import torch
print(sys.argv[1], torch.__version__[:5], "flambeau" in sys.modules, flush=True)
if sys.argv[1] == "first":
    subprocess.run([sys.executable, "-u", "-W", "error", __file__, "second"], check=True)
    code = "import sys, torch; print(sys.argv[1], torch.__version__[:5], 'flambeau' in sys.modules)"
    subprocess.run(["python", "-c", code, "text"], check=True, env={**os.environ, "PATH": BESIDE})
    subprocess.run([sys.executable, "-m", "program", "module"], check=True)
    subprocess.run([sys.executable, "-I", "-c", "import sys; print('flambeau' in sys.modules)"])
    os.execv(sys.executable, [sys.executable, __file__, "again"])
"""


def test_programs_of_this_python_that_a_program_starts_know_torch(tmp_path):
    beside = os.path.dirname(sys.executable)
    (tmp_path / "program.py").write_text(STARTS_ITSELF.replace("BESIDE", repr(beside)))
    done = run_module(tmp_path, "--as", "1.2", "program.py", "first")
    assert done.returncode == 0, done.stderr
    names = ["first", "second", "text", "module", None, "again"]
    for line, name in zip(done.stdout.splitlines(), names, strict=True):
        assert line == (f"{name} 1.2.0 True" if name else "False")


@pytest.mark.parametrize(
    "words",
    [
        [sys.executable],
        [sys.executable, "-"],
        [sys.executable, "-m", "pip", "list"],
        [sys.executable, "-E", "x.py"],
        [sys.executable, "-sS", "x.py"],
        [sys.executable, "--version"],
        [sys.executable, "-m", "flambeau", "run", "x.py"],
        ["no-such-program", "x.py"],
        ["sh", "-c", "true"],
        f"{sys.executable} x.py",
        [],
    ],
)
def test_other_commands_are_left_alone(words):
    assert command_with_torch(words, "2.13") == words


SHOWS_PATH = """
import os, subprocess, sys
import torch, helper
print([os.path.realpath(p) for p in sys.path])
if len(sys.argv) > 1:
    command = [sys.executable, *sys.argv[2:], os.path.abspath(__file__)]
    sys.exit(subprocess.run(command, cwd=sys.argv[1]).returncode)
"""


@pytest.fixture
def folders(tmp_path):
    """A folder with a script, and one whose files are named as modules that everything imports."""
    own, foreign = tmp_path / "own", tmp_path / "foreign"
    for folder in (own, foreign):
        folder.mkdir()
    (own / "program.py").write_text(SHOWS_PATH)
    (own / "helper.py").write_text("")
    for name in ("flambeau", "pluggy", "json", "argparse", "helper", "random"):
        (foreign / f"{name}.py").write_text("raise SystemExit(9)")
    return own, foreign


def test_scripts_that_a_program_starts_run_no_file_of_the_folder_where_they_are_started(folders):
    own, foreign = folders
    done = run_module(own, "program.py", str(foreign))
    assert done.returncode == 0, done.stderr
    seen = done.stdout.splitlines()
    assert len(seen) == 2 and str(own) in seen[0] and str(foreign) not in seen[1]


def test_what_keeps_a_scripts_folder_from_the_path_does_so_with_torch(folders):
    own, foreign = folders
    done = run_module(own, "program.py", str(foreign), "-P")
    assert done.returncode == 1 and "No module named 'helper'" in done.stderr
    command = [sys.executable, "-P", "-m", "flambeau", "run", str(own / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=foreign, timeout=300)
    assert done.returncode == 1 and "No module named 'helper'" in done.stderr


def test_a_scripts_modules_are_beside_it_and_not_where_it_is_started(folders, tmp_path):
    own, _ = folders
    other = tmp_path / "other"
    other.mkdir()
    (other / "only_here.py").write_text("")
    (own / "program.py").write_text("import helper, only_here")
    done = run_module(other, str(own / "program.py"))
    assert done.returncode == 1 and "No module named 'only_here'" in done.stderr


@pytest.mark.parametrize("words", [["--", "-x"], ["a", "--", "-x"], ["--as", "--", "--"]])
def test_a_script_is_given_its_arguments_as_they_are(tmp_path, words):
    text = "import sys; print(sys.argv[1:])"
    assert run(tmp_path, text, *words).stdout == f"{words}\n"
    assert run_module(tmp_path, "-m", "script", *words).stdout == f"{words}\n"
    assert run_module(tmp_path, "-c", text, *words).stdout == f"{words}\n"


def test_commands_are_those_of_python_after_the_alias():
    before = subprocess.Popen.__init__, os.execv, os.execve
    with torch_alias(), torch_alias("1.2"):
        code = "import torch; print(torch.__version__)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("1.2.0+flambeau"), done.stderr
    assert before == (subprocess.Popen.__init__, os.execv, os.execve)


def test_a_text_runs_as_the_main_program(tmp_path):
    code = "import sys, torch\nprint(__name__, torch.ones(2).sum().item(), sys.argv)\n1 / 0"
    done = run_module(tmp_path, "-c", code, "--as", "x")
    assert done.stdout == "__main__ 2.0 ['-c', '--as', 'x']\n"
    assert done.returncode == 1
    assert done.stderr.splitlines()[1].startswith('  File "<string>", line 3')


def test_nothing_to_run_is_status_2(tmp_path):
    done = run_module(tmp_path)
    assert done.returncode == 2 and "name the script" in done.stderr


def test_a_script_that_is_absent_is_status_2(tmp_path):
    command = [sys.executable, "-m", "flambeau", "run", "nosuch.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 2 and "nosuch.py" in done.stderr


def test_modules_are_the_very_same():
    with torch_alias() as torch:
        import torch.nn.functional as F
        from torch import Tensor, nn
        from torch.utils.data import DataLoader

        assert sys.modules["torch"] is torch
        assert F is fb.nn.functional and nn is fb.nn
        assert DataLoader is fb.utils.data.DataLoader
        assert Tensor is fb.Tensor
        torch.tried = 1
        assert fb.tried == 1
        del torch.tried
    assert fb.nn.__name__ == fb.nn.__spec__.name == "flambeau.nn"
    assert fb.__spec__.name == "flambeau" and fb.__version__ == "0.1.0"


def test_what_flambeau_lacks_is_named():
    with torch_alias() as torch:
        with pytest.raises(AttributeError, match="flambeau has no torch.nosuch"):
            torch.nosuch  # noqa: B018
        with pytest.raises(ImportError, match="flambeau has no torch.nosuch"):
            from torch import nosuch  # noqa: F401
        with pytest.raises(ImportError, match="flambeau has no torch.nosuch"):
            import torch.nosuch.deep
        assert not hasattr(torch, "nosuch")


@pytest.mark.parametrize("present", [True, False])
def test_afterwards_torch_is_what_it_was(present, monkeypatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    before = {"torch": types.ModuleType("torch"), "torch.sub": types.ModuleType("torch.sub")}
    for name, module in before.items() if present else ():
        monkeypatch.setitem(sys.modules, name, module)
    finders = list(sys.meta_path)
    with torch_alias():
        import torch.nn  # noqa: F401

        assert "torch.sub" not in sys.modules
    assert {n: m for n, m in sys.modules.items() if n.partition(".")[0] == "torch"} == (
        before if present else {}
    )
    assert sys.meta_path == finders


def test_programs_of_1_2_are_warned_of_bytes_in_place_of_bools():
    with torch_alias("1.2") as torch:
        x, mask = torch.ones(3), torch.tensor([1, 0, 1], dtype=torch.uint8)
        with pytest.warns(UserWarning, match="masked_fill_ received a mask with dtype torch.uint8"):
            x.masked_fill_(mask, 2.0)
        with pytest.warns(UserWarning, match="masked_scatter_ received a mask"):
            x.masked_scatter_(mask, torch.tensor([5.0, 6.0]))
        assert x.tolist() == [5, 1, 6]
        with pytest.warns(UserWarning, match=r"torch.lt received 'out' parameter"):
            assert torch.lt(x, 2.0, out=torch.empty(3).byte()).tolist() == [0, 1, 0]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            x.masked_fill_(mask.bool(), 2.0)
            torch.lt(x, 2.0, out=torch.empty(3).bool())
