"""Sphinx configuration: ``sphinx-build -W --keep-going docs docs/_build/html``.

Every example and every output on a page is computed by the build; nothing is asked of the
network.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "_ext"), str(DOCS.parent)]

import matplotlib
from matplotlib import font_manager

import gputree

project = "gputree"
author = "gputree developers"
project_copyright = author
version = release = gputree.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "computed",
    "mathml",
    "repository",
    "units",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "examples", "zh/tutorial", "**/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
html_theme = "furo"
html_title = f"gputree {version}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
# Fences that only a terminal or a container understands have no colours.
suppress_warnings = ["misc.highlighting_failure", "config.cache"]

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections have the types
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Chinese labels of the pictures: docs/zh/labels.py makes the font.
font_manager.fontManager.addfont(DOCS / "zh" / "labels.otf")
os.environ.setdefault("MPLBACKEND", "agg")
matplotlib.use("agg")
warnings.filterwarnings("error", message="Glyph .* missing")

sphinx_gallery_conf = {
    "examples_dirs": ["examples", "zh/tutorial"],
    "gallery_dirs": ["gallery", "zh/steps"],
    "filename_pattern": r"[\\/]plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "capture_repr": (),
    "write_computation_times": False,  # its page asks for scripts of the network
    "plot_gallery": "True",
    "remove_config_comments": True,
    "reset_modules": ("matplotlib",),
    "backreferences_dir": None,
}


def is_elsewhere(app, what, name, obj, skip, options):
    """Leave out what estimators inherit from other packages; their pages have it."""
    obj = getattr(obj, "fget", None) or getattr(obj, "func", obj)  # what a property is made of
    home = getattr(obj, "__module__", None) or getattr(type(obj), "__module__", "")
    return True if what == "class" and not home.startswith("gputree") else None


def quote_sizes(app, what, name, obj, options, lines):
    """Shapes such as (n_features_in_,) are names, not references."""
    lines[:] = [re.sub(r"(?<![`\w.])([a-z]\w*_)(?=[,)])", r"`\1`", line) for line in lines]


def setup(app):
    app.connect("autodoc-skip-member", is_elsewhere)
    app.connect("autodoc-process-docstring", quote_sizes, priority=100)  # before numpydoc
