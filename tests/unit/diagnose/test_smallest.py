"""What `repro minimize` left, read back."""

import json
from types import SimpleNamespace

from repro.diagnose.smallest import smallest_case

SUBJECT = SimpleNamespace(test="test_it", revision="r1")
FOUND = {
    **{"test": "test_it", "subject": "r1", "left": 1, "drawn": 640},
    "changes": [{"name": "N", "from": "300", "to": "1"}],
    "elements": [{"draw": 0, "op": "rand", "index": [0, 3], "value": 0.5}],
}


def read(tmp_path, found):
    (tmp_path / "minimized.json").write_text(found if isinstance(found, str) else json.dumps(found))
    return smallest_case(tmp_path, SUBJECT)


def test_a_case_of_this_code(tmp_path):
    assert read(tmp_path, FOUND) == [
        *("N: 1, and 300 at first", "1 of 640 drawn numbers are not 0", "draw 0 (rand) [0, 3] = 0.5")
    ]


def test_what_gradcheck_said_of_it(tmp_path):
    assert read(tmp_path, {**FOUND, "gradients": {"said": ["gradcheck fails"]}})[-1] == "gradcheck fails"
    assert len(read(tmp_path, {**FOUND, "gradients": None})) == 3


def test_a_case_of_other_code_or_none_or_garbage(tmp_path):
    assert smallest_case(tmp_path, SUBJECT) == []
    assert read(tmp_path, {**FOUND, "subject": "r2"}) == []
    assert read(tmp_path, "{") == []
    assert read(tmp_path, "[]") == []
