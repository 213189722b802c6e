"""Where, since when and why a GPU kernel's test fails now and then."""

__version__ = "0.1.0"
