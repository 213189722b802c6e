"""A failing trial looked into: operations done once more in float64, derivatives measured."""
