"""The hub: local folders, archives from a server of the test, and weights by URL."""

from __future__ import annotations

import hashlib
import http.server
import io
import os
import stat
import sys
import threading
import zipfile

import pytest

import flambeau as fb
from flambeau import hub
from flambeau.hub import _download
from flambeau.serialization import CheckpointError, _files
from flambeau.utils import model_zoo

HUBCONF = """
import part
dependencies = ["json"]
def number(n, plus=0):
    "A number."
    return part.BASE + n + plus
def _hidden(): pass
"""


class Server(http.server.BaseHTTPRequestHandler):
    files: dict[str, bytes]
    asked: list[tuple[str, str | None]]
    stop_after: int | None

    def do_GET(self):
        wanted = self.headers.get("Range")
        type(self).asked.append((self.path, wanted))
        data = self.files.get(self.path)
        if data is None:
            self.send_error(404)
            return
        start = int(wanted.split("=")[1].rstrip("-")) if wanted else 0
        if wanted and start >= len(data):
            self.send_error(416)
            return
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        body = data[start:]
        self.wfile.write(body if self.stop_after is None else body[: self.stop_after])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    handler = type("Handler", (Server,), {"files": {}, "asked": [], "stop_after": None})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        handler.url = f"http://127.0.0.1:{served.server_port}"
        monkeypatch.setattr(hub, "_ARCHIVES", handler.url)
        monkeypatch.setattr(hub, "_folder", str(tmp_path / "hub"))
        yield handler
        served.shutdown()
        thread.join(60)
        assert not thread.is_alive(), "the server hangs"


def zipped(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for member, text in members.items():
            archive.writestr(member, text)
    return file.getvalue()


def repository(base=10):
    return zipped({"r-1/hubconf.py": HUBCONF, "r-1/part.py": f"BASE = {base}"})


@pytest.fixture(autouse=True)
def forget_part():
    yield
    sys.modules.pop("part", None)


def test_a_local_folder_lists_explains_and_loads(tmp_path):
    (tmp_path / "hubconf.py").write_text(HUBCONF)
    (tmp_path / "part.py").write_text("BASE = 1")
    assert hub.list(str(tmp_path), source="local") == ["number"]
    assert hub.help(str(tmp_path), "number", source="local") == "A number."
    assert hub.load(str(tmp_path), "number", 2, plus=3, source="local") == 6
    with pytest.raises(RuntimeError, match="Cannot find callable nosuch"):
        hub.load(str(tmp_path), "nosuch", source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(str(tmp_path), "number", source="attic")


def test_missing_dependencies_are_named(tmp_path):
    (tmp_path / "hubconf.py").write_text("dependencies = ['nosuch_package']\ndef f(): pass")
    with pytest.raises(RuntimeError, match="Missing dependencies: nosuch_package"):
        hub.load(str(tmp_path), "f", source="local")


@pytest.mark.parametrize("bytecode", ["nowhere", "beside", "elsewhere"])
def test_a_repository_is_fetched_once_and_again_on_demand(server, tmp_path, monkeypatch, bytecode):
    elsewhere = str(tmp_path / "bytecode") if bytecode == "elsewhere" else None
    monkeypatch.setattr(sys, "dont_write_bytecode", bytecode == "nowhere")
    monkeypatch.setattr(sys, "pycache_prefix", elsewhere)
    server.files["/o/r/zipball/main"] = repository()
    assert hub.load("o/r", "number", 1, trust_repo=True) == 11
    assert hub.load("o/r", "number", 2) == 12  # remembered as trusted
    assert len(server.asked) == 1
    del sys.modules["part"]
    server.files["/o/r/zipball/main"] = repository(20)
    assert hub.load("o/r", "number", 1, force_reload=True) == 21


def test_the_default_branch_may_be_master_and_tags_are_asked_for(server):
    server.files["/o/r/zipball/master"] = repository()
    server.files["/o/r/zipball/v1"] = repository()
    assert hub.list("o/r", trust_repo=True) == ["number"]
    assert hub.list("o/r:v1") == ["number"]
    with pytest.raises(ValueError, match="cannot find v2"):
        hub.list("o/r:v2")


@pytest.mark.parametrize("answer", ["", "n", "what"])
def test_a_repository_that_nobody_trusts_is_not_fetched(server, monkeypatch, answer):
    monkeypatch.setattr("builtins.input", lambda text: answer)
    with pytest.raises(RuntimeError, match="not trusted"):
        hub.load("o/r", "number")
    assert server.asked == []


@pytest.mark.parametrize("name", ["r", "../x/y", "o/..", "o/r:../../x", "o/r/s", "/r", "o/"])
def test_names_that_are_no_repositories_are_refused(server, name):
    with pytest.raises(ValueError, match="is no repository"):
        hub.load(name, "number", trust_repo=True)


def link():
    info = zipfile.ZipInfo("r/link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    "members",
    [
        {"r/../../out": "x"},
        {"/r/out": "x"},
        {"r/a\\..\\b": "x"},
        {link(): "/etc"},
        {"r/a": "x", "r/./a": "y"},
        {"r/a": "x", "s/b": "y"},
        {"../r": "x"},
    ],
    ids=["parent", "root", "backslash", "link", "twice", "two folders", "up"],
)
def test_archives_that_would_write_elsewhere_are_refused_whole(tmp_path, members):
    archive = tmp_path / "a.zip"
    archive.write_bytes(zipped(members))
    with pytest.raises(RuntimeError):
        _download.extract(str(archive), str(tmp_path / "in"))
    assert sorted(os.listdir(tmp_path)) == ["a.zip"]


def test_a_download_appears_when_its_hash_is_right(server, tmp_path):
    data = os.urandom(300_000)
    server.files["/x"] = data
    target = tmp_path / "x"
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.download_url_to_file(f"{server.url}/x", target, "00000000", progress=False)
    assert os.listdir(tmp_path) == []
    digest = hashlib.sha256(data).hexdigest()
    hub.download_url_to_file(f"{server.url}/x", target, digest[:8], progress=False)
    assert target.read_bytes() == data


def test_a_download_that_broke_off_goes_on(server, tmp_path):
    data = os.urandom(300_000)
    server.files["/x"] = data
    server.stop_after = 100_000
    target = tmp_path / "x"
    with pytest.raises(RuntimeError, match="100000 of 300000 bytes"):
        hub.download_url_to_file(f"{server.url}/x", target, progress=False)
    assert not target.exists()
    server.stop_after = None
    digest = hashlib.sha256(data).hexdigest()
    hub.download_url_to_file(f"{server.url}/x", target, digest, progress=False)
    assert server.asked[-1] == ("/x", "bytes=100000-")
    assert target.read_bytes() == data


def test_rest_of_another_download_is_replaced(server, tmp_path):
    server.files["/x"] = b"new"
    (tmp_path / ".x.0123.flambeau-partial").write_bytes(b"much longer than new")
    hub.download_url_to_file(f"{server.url}/x", tmp_path / "x", progress=False)
    assert (tmp_path / "x").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.skipif(os.name != "posix", reason="links, and files that are locked")
def test_nobody_can_put_a_file_in_the_way_of_a_download(server, tmp_path):
    server.files["/x"] = b"new" * 10
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "x.partial").symlink_to(victim)
    (tmp_path / ".x.a.flambeau-partial").symlink_to(victim)
    os.link(victim, tmp_path / ".x.b.flambeau-partial")
    os.mkfifo(tmp_path / ".x.c.flambeau-partial")
    hub.download_url_to_file(f"{server.url}/x", tmp_path / "x", progress=False)
    assert (tmp_path / "x").read_bytes() == b"new" * 10
    assert victim.read_bytes() == b"precious"
    made = {_files.unfinished(str(tmp_path), "y")[0] for _ in range(3)}
    assert len(made) == 1 or all(len(os.path.basename(p)) > 25 for p in made)


def test_trust_in_one_repository_is_no_trust_in_another(server, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda text: "n")
    server.files["/a_b/c/zipball/main"] = repository(10)
    server.files["/a/b_c/zipball/main"] = repository(20)
    assert hub.load("a_b/c", "number", 1, trust_repo=True) == 11
    with pytest.raises(RuntimeError, match="a/b_c is not trusted"):
        hub.load("a/b_c", "number", 1)
    sys.modules.pop("part", None)
    assert hub.load("a/b_c", "number", 1, trust_repo=True) == 21  # and its folder is its own
    path = os.path.join(hub.get_dir(), "trusted_list")
    with open(path, encoding="utf-8") as file:
        assert file.read().split() == ["a_b/c", "a/b_c"]
    with open(path, "w", encoding="utf-8") as file:
        file.write("o_r\n")  # as PyTorch writes it
    with pytest.raises(RuntimeError, match="o/r is not trusted"):
        hub.load("o/r", "number", 1)


def test_repositories_have_folders_of_their_own():
    names = [("a_b", "c", "d"), ("a", "b_c", "d"), ("a", "b", "c_d"), ("a", "b", "c/d")]
    names += [("a", "b", "d"), ("a", "b-c", "d"), ("a", "b", "c")]
    made = {hub._folder_name(*name, None) for name in names}
    assert len(made) == len(names)
    assert hub._folder_name("pytorch", "vision", "v0.10.0", None) == "pytorch_vision_v0.10.0"
    assert hub._folder_name("a", "b", "c", "0" * 64) not in made


def test_an_archive_must_have_the_digest_that_the_caller_gives(server):
    data = repository()
    server.files["/o/r/zipball/main"] = data
    digest = hashlib.sha256(data).hexdigest()
    assert hub.load(f"o/r#sha256={digest.upper()}", "number", 1, trust_repo=True) == 11
    server.files["/o/r/zipball/main"] = repository(20)
    sys.modules.pop("part", None)
    assert hub.load("o/r", "number", 1) == 21  # another folder
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.load(f"o/r:main#sha256={digest}", "number", 1, force_reload=True)
    with pytest.raises(ValueError, match="is no SHA-256"):
        hub.load("o/r#sha256=12", "number", 1)


@pytest.mark.parametrize("what", ["bomb", "cut", "flipped", "encrypted"])
def test_a_wrapped_checkpoint_that_is_hostile_or_damaged_is_refused(server, what):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.pth", bytes(100 << 20) if what == "bomb" else bytes(range(256)) * 9)
    data = bytearray(file.getvalue())
    if what == "cut":
        del data[20:120]
    elif what == "flipped":
        data[40] ^= 255
    elif what == "encrypted":
        data[6] |= 1
        data[data.rindex(b"PK\1\2") + 8] |= 1
    server.files["/old.pth"] = bytes(data)
    with pytest.raises(CheckpointError) as info:
        hub.load_state_dict_from_url(f"{server.url}/old.pth", progress=False)
    assert info.value.path.endswith("old.pth")


def test_weights_come_by_url_checked_and_cached(server, tmp_path):
    pytest.importorskip("flambeau_numpy")
    file = io.BytesIO()
    fb.save({"w": fb.ones(2)}, file)
    data = file.getvalue()
    name = f"/m-{hashlib.sha256(data).hexdigest()[:8]}.pth"
    server.files[name] = data
    for load in (hub.load_state_dict_from_url, model_zoo.load_url):
        assert load(server.url + name, progress=False, check_hash=True)["w"].tolist() == [1, 1]
    assert len(server.asked) == 1
    assert os.path.isfile(os.path.join(hub.get_dir(), "checkpoints", name[1:]))
    server.files["/m-00000000.pth"] = data
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.load_state_dict_from_url(
            f"{server.url}/m-00000000.pth", check_hash=True, progress=False
        )


@pytest.mark.filterwarnings("ignore:the format of PyTorch before 1.6:UserWarning")
def test_weights_in_a_zip_file_are_unpacked(server):
    pytest.importorskip("flambeau_numpy")
    file = io.BytesIO()
    fb.save([3], file, _use_new_zipfile_serialization=False)
    server.files["/old.pth"] = zipped({"old.pth": file.getvalue()})
    assert hub.load_state_dict_from_url(f"{server.url}/old.pth", progress=False) == [3]


def test_the_folder_follows_the_environment(monkeypatch):
    monkeypatch.setattr(hub, "_folder", None)
    for name in ("TORCH_HUB_DIR", "TORCH_HUB", "TORCH_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert hub.get_dir() == os.path.expanduser("~/.cache/torch/hub")
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    assert hub.get_dir() == "/c/torch/hub"
    monkeypatch.setenv("TORCH_HOME", "/t")
    assert hub.get_dir() == "/t/hub"
    hub.set_dir("here")
    assert hub.get_dir() == "here"
