"""What runs inside a cell: a pytest plugin and the records it writes.

This folder is copied into the run's folder as the package `repro_trial` and put on the cell's
PYTHONPATH. It imports the standard library, pytest and (where the cell has it) torch, and nothing of
the kit; it runs on Python 3.9 and later.

The modules of this folder run a block; each sub-package is one thing that a block can do besides.
"""

import os

FOLDER = os.path.dirname(__file__)  # noqa: PTH120 - code objects' file names begin with it, as it is
"""Where the plugin lies: frames of its code are no part of a test."""
