"""The change-point search beside its peers, on the same simulated outcomes.

    python -m benchmarks.search run --runs 200 --points 'N128 .*'   # adds to docs/search/results.json
    python -m benchmarks.search report                              # docs/search.md's tables and plots

Every candidate of a run has one stream of uniform numbers; a trial fails where the next number is below the
candidate's rate. All methods read the same streams from their start. Needs `git-bayesect` (and its numpy).
"""
