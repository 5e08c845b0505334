# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of Sphinx; `make docs` and docs.ros.org (rosdoc2.yaml) build the documentation."""

from importlib import import_module
import os
from pathlib import Path
import sys
from xml.etree import ElementTree

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

generate = import_module('generate')

_package = ElementTree.parse(generate.ROOT / 'package.xml').getroot()
project = _package.findtext('name')
release = version = _package.findtext('version')
author = 'The rbd_ros authors'
project_copyright = f'2026 {author}'

# Those that docs.ros.org has.
extensions = ['myst_parser', 'sphinx.ext.autodoc', 'sphinx.ext.autosummary', 'sphinx.ext.napoleon',
              'sphinx.ext.viewcode']
# Besides programs: what docs.ros.org adds.
exclude_patterns = ['*.py', 'index.rst', '[A-Z_]*']
source_suffix = {'.md': 'markdown', '.rst': 'restructuredtext'}

# Commands in prose and tables are copied: their quotes must stay plain.
smartquotes = False

# Anchors of headings down to this level, for links within and between pages.
myst_heading_anchors = 3

# A name in backquotes in a docstring is a link if its target exists.
default_role = 'py:obj'
add_module_names = False
autodoc_member_order = 'bysource'
# Docstrings describe each argument; type hints in the signature would repeat them.
autodoc_typehints = 'none'
# Docstrings are in the style of numpydoc; attributes are listed as parameters are.
napoleon_google_docstring = False
napoleon_use_ivar = True
# Parameters that are documented together stay together.
napoleon_use_param = False
napoleon_use_rtype = False
# The name of an attribute may be that of several things; it need not be a link.
suppress_warnings = ['ref.python']

html_theme = 'alabaster'
html_theme_options = {
    'description': ' '.join(_package.findtext('description').split(':')[0].split()),
    'fixed_sidebar': True,
    'body_max_width': '920px',
    'page_width': '1240px',
    'sidebar_width': '260px',
}

# Lines of 99 characters fit; of equal names, search finds those at the top of rbd_ros first.
html_static_path = ['static']
html_css_files = ['style.css']
html_search_scorer = str(HERE / 'static/scorer.js')

linkcheck_timeout = 20
linkcheck_anchors = False

generate.main()


def _include_from_root(app, name, source):
    """Find included files of the repository from a copy of this folder, too."""
    root = os.path.relpath(generate.ROOT, HERE / 'generated')
    source[0] = source[0].replace('{literalinclude} ../../', f'{{literalinclude}} {root}/')


def setup(app):
    """Connect the preparation of pages, and of docstrings before napoleon reads them."""
    app.connect('source-read', _include_from_root)
    app.connect('autodoc-process-docstring', generate.mark_literal_blocks, priority=100)
    app.connect('autodoc-skip-member', generate.skip_fields)
