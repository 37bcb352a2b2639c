"""The built site is valid, whole, found by its search, and readable on a phone.

`make docs` builds it; without it these tests are skipped. Those with a browser need Chromium or
Chrome, on the path or named by the environment variable ``BROWSER_BINARY``.
"""

from __future__ import annotations

import functools
import html
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "build" / "docs" / "html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "chrome-headless-shell")
WIDTHS = (360, 390, 1300)
SEARCHES = {
    "conv2d": "flambeau.nn.functional.conv2d",
    "cross_entropy": "flambeau.nn.functional.cross_entropy",
    "searchsorted": "flambeau.searchsorted",
    "conformance": "backends/conformance.html",
}

pytestmark = pytest.mark.skipif(
    not (SITE / "searchindex.js").exists(), reason="make docs builds the site"
)


def pages() -> list[Path]:
    return sorted(p for p in SITE.rglob("*.html") if "_static" not in p.parts)


@functools.cache
def anchors(page: Path) -> frozenset[str]:
    return frozenset(html.unescape(name) for name in re.findall(r'\bid="([^"]+)"', read(page)))


@functools.cache
def read(page: Path) -> str:
    return page.read_text("utf-8")


def test_every_internal_link_leads_to_a_page_and_an_anchor():
    broken = []
    for page in pages():
        for target in set(re.findall(r'\b(?:href|src)="([^"]+)"', read(page))):
            parts = urlsplit(html.unescape(target))
            if parts.scheme or parts.netloc:
                continue
            file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            fragment = unquote(parts.fragment)
            if not file.exists() or (
                fragment and file.suffix == ".html" and fragment not in anchors(file)
            ):
                broken.append(f"{page.relative_to(SITE)}: {target}")
    assert broken == []


def test_every_page_is_valid_html():
    html5lib = pytest.importorskip("html5lib")
    found = []
    # The largest pages repeat what the small ones have, and the parser is slow.
    for page in pages():
        if page.stat().st_size < 200_000:
            parser = html5lib.HTMLParser()
            parser.parse(read(page))
            found += [f"{page.relative_to(SITE)}: {error}" for error in parser.errors]
    assert found == []


def test_every_public_name_is_in_the_search_index(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    from reference import Reference

    text = (SITE / "searchindex.js").read_text("utf-8")
    objects = json.loads(text[text.index("{") : text.rindex("}") + 1])["objects"]
    indexed = {
        f"{prefix}.{entry[-1]}" if prefix else entry[-1]
        for prefix, entries in objects.items()
        for entry in entries
    }
    reference = Reference()
    names = {e.name for page in reference.pages for e in page.entries}
    assert len(names) > 1000
    assert sorted(names - indexed) == []
    assert "flambeau.Tensor.softmax" in indexed


def test_examples_stand_on_the_pages_as_they_are_written():
    page = read(SITE / "reference" / "flambeau-layers.html")
    text = html.unescape(re.sub(r"<[^>]+>", "", page))
    assert ">>> fb.softmax(" in text


def test_the_tutorial_lets_its_reader_save_the_program_that_it_runs():
    page = SITE / "backends" / "tutorial.html"
    (target,) = re.findall(r'href="([^"]*/digits\.py)"', read(page))
    assert read(page.parent / target) == read(ROOT / "examples" / "digits.py")


@pytest.fixture(scope="module")
def browser() -> str:
    names = [os.environ["BROWSER_BINARY"]] if "BROWSER_BINARY" in os.environ else BROWSERS
    for name in names:
        if (path := shutil.which(name)) is not None:
            return path
    pytest.skip(f"no browser: none of {', '.join(names)} is on the path")


PROBE = """<!doctype html><meta charset="utf-8"><title>probe</title><pre id="found"></pre><script>
const [pages, searches, widths] = %s;
const found = {seen: 0, wide: [], clipped: [], hidden: [], hits: {}};
function cut(d) {
  const view = d.defaultView, texts = [];
  for (const e of d.querySelectorAll("main *, nav *, header *, footer *")) {
    if (!e.innerText?.trim() || !e.getClientRects().length || e.clientWidth < 2) continue;
    const style = view.getComputedStyle(e);
    if (["hidden", "clip"].includes(style.overflowX) && style.textOverflow !== "ellipsis"
        && e.scrollWidth > e.clientWidth + 1) texts.push(e.innerText);
  }
  for (const text of d.querySelectorAll("svg text")) {
    const [inner, outer] = [text, text.ownerSVGElement].map(e => e.getBoundingClientRect());
    if (inner.width && (inner.left < outer.left - 1 || inner.right > outer.right + 1))
      texts.push(text.textContent);
  }
  return texts;
}
function show(address, done) {
  return new Promise(resolve => {
    const frame = document.createElement("iframe");
    frame.style.cssText = "width:" + widths[0] + "px;height:640px;border:0";
    frame.onload = async () => { await done(frame.contentDocument); frame.remove(); resolve(); };
    frame.src = address;
    document.body.append(frame);
  });
}
(async () => {
  for (const page of pages)
    await show(page, d => {
      found.seen += d.querySelector("h1, #searchbox") !== null;
      for (const width of widths) {
        d.defaultView.frameElement.style.width = width + "px";
        if (d.documentElement.scrollWidth > width) found.wide.push(page + " at " + width);
        for (const code of d.querySelectorAll(".highlight pre"))
          if (code.scrollWidth > code.clientWidth + 1) {
            found.clipped.push(page + " at " + width + ": " + code.textContent.slice(0, 40));
            break;
          }
        for (const text of cut(d))
          found.hidden.push(page + " at " + width + ": " + text.slice(0, 40));
      }
    });
  for (const word of searches)
    await show("search.html?q=" + word, async d => {
      for (let i = 0; i < 100 && !d.querySelector("ul.search li a"); i++)
        await new Promise(wait => setTimeout(wait, 50));
      await new Promise(wait => setTimeout(wait, 300));
      found.hits[word] = [...d.querySelectorAll("ul.search li a")].map(a => a.href);
    });
  document.getElementById("found").textContent = "@@" + JSON.stringify(found) + "@@";
})();
</script>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves the site and, beside it, the page that looks at it."""

    def do_GET(self) -> None:
        if self.path != "/probe.html":
            return super().do_GET()
        shown = [page.relative_to(SITE).as_posix() for page in pages()]
        body = (PROBE % json.dumps([shown, list(SEARCHES), WIDTHS])).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        return None

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(SITE))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def visit(browser: str, address: str, tmp_path_factory) -> tuple[dict, list[str]]:
    """What the probe found, and what the pages wrote to the console."""
    command = [
        browser,
        "--headless=new",
        "--disable-gpu",
        "--no-first-run",
        "--enable-logging=stderr",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
        "--virtual-time-budget=60000",
        "--dump-dom",
        f"{address}/probe.html",
    ]
    if sys.platform == "linux" and os.geteuid() == 0:
        command.insert(1, "--no-sandbox")
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    shown = re.search(r'<pre id="found">@@(.*?)@@', html.unescape(done.stdout), re.DOTALL)
    assert shown, done.stdout[:2000] + done.stderr[-2000:]
    return json.loads(shown[1]), [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


def test_no_page_writes_an_error_to_the_console(visit):
    assert visit[0]["seen"] == len(pages()) > 100
    assert visit[1] == []


def test_no_page_is_wider_than_its_screen(visit):
    assert visit[0]["wide"] == []


def test_no_line_of_code_is_cut_off(visit):
    assert visit[0]["clipped"] == []


def test_no_text_is_cut_off_by_the_box_or_the_picture_it_stands_in(visit):
    assert visit[0]["hidden"] == []


def test_the_first_page_shows_a_program_speed_devices_and_layers():
    page = read(SITE / "index.html")
    assert all(text in page for text in ('class="speed"', 'class="layers"', "quadrants.svg"))
    assert "Sequential" in page and "flambeau-cupy" in page and "copybutton" in page


@pytest.mark.parametrize("word", SEARCHES)
def test_the_search_finds(visit, word):
    assert any(SEARCHES[word] in unquote(hit) for hit in visit[0]["hits"][word])
