"""What the kit leaves on a machine, found by its own names and labels, and removed when asked to.

Nothing is recognised by its place alone: a file that the kit would not have named is not the kit's.
"""

from repro.cleaning.containers import dead_containers, engine_items, run_goes_on
from repro.cleaning.folder import check_folder, folder_items, links_in
from repro.cleaning.items import Item, Kind, removed

__all__ = [
    "Item",
    "Kind",
    "check_folder",
    "dead_containers",
    "engine_items",
    "folder_items",
    "links_in",
    "removed",
    "run_goes_on",
]
