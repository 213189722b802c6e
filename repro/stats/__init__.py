"""What recorded trials mean: rates with intervals, comparisons, when to stop. Pure functions of counts."""
