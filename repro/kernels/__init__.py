"""What Triton made of a test's kernels in a cell, and how it differs between two cells.

    from repro.kernels import collect, compare

docs/kernels.md says what is normalised and what is counted.
"""

from repro.kernels.artefacts import Kernel, collect
from repro.kernels.comparing import Comparison, compare

__all__ = ["Comparison", "Kernel", "collect", "compare"]
