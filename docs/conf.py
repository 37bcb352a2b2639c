"""Sphinx: the site is built from ``build/docs/source``, which ``docs/_ext/pages.py`` writes."""

import re
import sys
from pathlib import Path

project = "flambeau"
author = "the flambeau authors"
_version = re.search(
    r'^version = "(.+)"$',
    (Path(__file__).parents[1] / "core" / "pyproject.toml").read_text("utf-8"),
    re.MULTILINE,
)
version = release = _version[1] if _version else ""
html_title = f"flambeau {release}"

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
extensions = ["myst_parser", "sphinx_copybutton", "fast_names"]
source_suffix = {".md": "markdown"}
root_doc = "index"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

python_use_unqualified_type_names = True
maximum_signature_line_length = 88
# The contents of the site stand on every page: thousands of names would be copied into each.
toc_object_entries = False
add_module_names = False

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = html_favicon = "_static/logo.svg"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_use_index = False  # the search knows every name; the page would be the largest of all
html_domain_indices = False
html_theme_options = {"navigation_with_keys": True}

# External addresses are checked on demand (`make links`).
linkcheck_timeout = 20
linkcheck_anchors = True
