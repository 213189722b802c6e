"""A test's comparisons, measured: put in the place of a library's own, without a trace in the test."""
