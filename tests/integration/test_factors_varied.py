"""`repro factors` over real processes: a variable that the matrix names makes the test fail."""

from __future__ import annotations

import json

import pytest
from command_line import Kit

pytestmark = pytest.mark.slow

MATRIX = """\
subject: {path: subject, test_file: test_planted.py, test: test_it}
limits: {memory: 600m, trial_timeout: 20s, startup_timeout: 3m}
profiles:
  cpu: {python: "3.11", torch: "2.13.0", triton: ["3.7.1"], cuda: cpu, env: [{}, {PLANTED: "1"}]}
"""


def test_a_variable_of_the_matrix(tmp_path):
    kit = Kit(tmp_path, tmp_path / "state")
    kit.plant("import os\ndef test_it():\n    assert seed() % 3 or os.environ.get('PLANTED') != '1'\n")
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    said = kit.complaint("factors", "--vary", "NOTHING", "--engine", "host", status=2)
    assert "no factor is called NOTHING" in said
    assert "PYTHONHASHSEED" in said
    planted = kit.run("factors", "--engine", "host", "--trials", 30, "--vary", "PLANTED")
    assert "changes the failure rate: PLANTED=1" in planted
    told = json.loads(kit.run("factors", "--engine", "host", "--trials", 30, "--json"))
    verdicts = {one["factor"]: one["verdict"] for one in told["factors"]}
    assert verdicts["PLANTED=1"] == "matters"
    assert verdicts["PYTHONHASHSEED=0"] == "unseen"
    assert verdicts["TRITON_DEFAULT_FP_FUSION=0"] == "untried"
