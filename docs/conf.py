"""Sphinx: the site is built from ``build/docs/source``, which ``docs/_ext/pages.py`` writes."""

import sys
from pathlib import Path

project = "flambeau"
author = "the flambeau authors"
html_title = "flambeau"

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
extensions = ["myst_parser", "fast_names"]
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
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_use_index = False  # the search knows every name; the page would be the largest of all
html_domain_indices = False
html_theme_options = {"navigation_with_keys": True}

# External addresses are checked on demand (`make links`).
linkcheck_timeout = 20
linkcheck_anchors = True
