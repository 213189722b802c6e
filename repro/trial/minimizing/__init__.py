"""A failing case made small: what it is made of, which elements of its inputs it needs."""
