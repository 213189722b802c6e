"""The smallest case that still fails: sizes, options, and the few elements of the inputs that matter.

    from repro.minimize import Minimizing, Options

docs/minimize.md says how it works and what it promises.
"""

from repro.minimize.answer import Minimized, to_json
from repro.minimize.minimizing import Minimizing, Options

__all__ = ["Minimized", "Minimizing", "Options", "to_json"]
