"""The command line, with pytest alone in every cell: what is tried is the kit, not torch.

python tests/integration/chaos/small_cells.py matrix --engine docker
"""

from __future__ import annotations

import sys
from typing import Any

NAMES = {"pytest", "iniconfig", "pluggy", "packaging", "pygments"}


def small_packages() -> None:
    """Put pytest in the place of all that a cell holds."""
    from repro.engines import packages

    plan = packages.plan

    def small_plan(*args: Any, **options: Any) -> packages.Plan:
        real = plan(*args, **options)
        kept = tuple(pin for pin in real.cell if pin.name.lower() in NAMES)
        return packages.Plan(torch=kept[:1], cell=kept[1:], indexes=real.indexes)

    packages.plan = small_plan  # type: ignore[assignment]


if __name__ == "__main__":
    try:
        from repro.cli import main

        if "docker" in sys.argv:
            small_packages()
    except KeyboardInterrupt:
        sys.exit(130)
    main()
