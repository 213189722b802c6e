"""Every mistake in matrix.yaml has its own message, with its line and what would be right."""

import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.config import ConfigError, Matrix, load
from repro.errors import ExitCode

SUBJECT = "subject: {path: ., test_file: t.py, test: test_a}\n"
PROFILE = 'profiles:\n  a:\n    python: "3.12"\n    torch: "2.8.0"\n'


def problems(folder: Path, content: str | bytes) -> list[str]:
    path = folder / "matrix.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert caught.value.exit_code is ExitCode.USAGE
    return [f"{each.line}: {each.wrong} | {each.right}" for each in caught.value.problems]


def axis(folder: Path, line: str) -> list[str]:
    """The mistakes of one more line in a profile; it stands on line 6."""
    return problems(folder, SUBJECT + PROFILE + f"    {line}\n")


def test_all_mistakes_at_once_in_one_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("matrix.yaml").write_text(
        "subjekt: {}\n"
        "trials: {count: many}\n"
        "profiles:\n"
        "  gpu:\n"
        "    python: 3.10\n"
        '    torch: ["2.8", "2.8.0"]\n'
        "    exclude:\n"
        '      - {triton: ">=3.7"}\n'
    )
    with pytest.raises(ConfigError) as caught:
        load(Path("matrix.yaml"))
    assert str(caught.value) == (
        "6 mistakes in matrix.yaml:\n"
        "matrix.yaml:1: unknown key `subjekt` in matrix.yaml\n"
        "    did you mean `subject`?\n"
        "matrix.yaml:1: matrix.yaml has no `subject`\n"
        "    say what is tested: subject: {path: ., test_file: ..., test: ...}\n"
        "matrix.yaml:2: `count` is text (many)\n"
        "    write a whole number from 1 to 1000000\n"
        "matrix.yaml:5: `python`: 3.10 without quotes is the number 3.1\n"
        '    put it in quotes: "3.10"\n'
        "matrix.yaml:6: `torch`: there is no version `2.8`\n"
        "    did you mean `2.8.0`? the kit knows `2.4.0` to `2.15.0`; "
        "a newer one is a row in repro/stacks.yaml\n"
        "matrix.yaml:8: a rule of profile gpu.exclude has no `reason`\n"
        '    say why, in words: reason: "..."'
    )
    assert caught.value.next_step == "edit matrix.yaml, then `repro plan` shows what it means"


@pytest.mark.parametrize(
    ("line", "wrong", "right"),
    [
        ("pyton: x", "unknown key `pyton` in profile a", "did you mean `python`?"),
        (
            "zzz: x",
            "unknown key `zzz` in profile a",
            "the keys are `python`, `torch`, `triton`, `cuda`, `ptxas`, `env`, "
            "`include`, `exclude`, `trials`",
        ),
        ("triton: 3.7", "`triton`: 3.7 without quotes is a number, not a version", 'put it in quotes: "3.7"'),
        ("triton: 3.10", "`triton`: 3.10 without quotes is the number 3.1", 'put it in quotes: "3.10"'),
        (
            "triton: newest",
            "`triton`: `newest` is no version",
            'write a version such as "3.7.1" or `pinned`',
        ),
        (
            "triton: 3.4.1",
            "`triton`: there is no version `3.4.1`",
            "did you mean `3.4.0`, `3.5.0`? the kit knows `3.0.0` to `3.9.0`; "
            "a newer one is a row in repro/stacks.yaml",
        ),
        (
            "triton: 9.9.9",
            "`triton`: there is no version `9.9.9`",
            "the kit knows `3.0.0` to `3.9.0`; a newer one is a row in repro/stacks.yaml",
        ),
        ('triton: ">=3.x"', "`triton`: `>=3.x` is no version range", 'write a range such as ">=3.7.1"'),
        (
            'triton: ">4"',
            "`triton`: no known version is within `>4`",
            "the kit knows `3.0.0` to `3.9.0`; a newer one is a row in repro/stacks.yaml",
        ),
        ("triton: []", "`triton` is an empty list", 'write such as ["3.7.1"]'),
        ("triton: [3.6.0, 3.6.0]", "`triton`: `3.6.0` is there twice", "keep one"),
        ("triton: {a: b}", "`triton`: one of its values is a mapping", 'write text such as "3.7.1"'),
        ("triton: true", "`triton`: one of its values is true or false (true)", 'write text such as "3.7.1"'),
        (
            "cuda: cu999",
            "`cuda`: there is no build `cu999`",
            "builds are `default`, `cpu`, `cu118`, `cu121`, `cu124`, `cu126`, `cu128`, "
            "`cu129`, `cu130`, `cu132`",
        ),
        (
            "env: [{A: }]",
            "`env`: `A` is empty",
            'write such as A: "1"',
        ),
        ("env: [{A-B: 1}]", "`env`: `A-B` is no name of a variable", "use letters, digits and _"),
        (
            "env: [A]",
            "`env`: one of its values is text (A)",
            "write a mapping such as {TRITON_DEFAULT_FP_FUSION: 0}",
        ),
        ("env: [{A: 1}, {A: 1}]", "`env`: the same variables are there twice", "keep one"),
        ("env: []", "`env` is an empty list", "leave it out, or write [{}, {NAME: value}]"),
        ("include: x", "`include` is text (x)", "write a list of rules: `- torch: ...`"),
        (
            "exclude: [{reason: none}]",
            "a rule of profile a.exclude names no axis",
            "write one of `python`, `torch`, `triton`, `cuda`, `ptxas`, `env`",
        ),
        (
            "trials: {half_width: 5}",
            "`half_width` is a number (5)",
            "write a number between 0 and 1, such as 0.95",
        ),
    ],
)
def test_axes_and_rules(tmp_path: Path, line: str, wrong: str, right: str):
    assert axis(tmp_path, line) == [f"6: {wrong} | {right}"]


def test_a_profile_without_cells(tmp_path: Path):
    wrong = "profile a has no cells left | all 1 are left out: torch 2.8.0 has no cu118 build; it has "
    assert axis(tmp_path, "cuda: cu118") == [f"3: {wrong}cpu, cu128, cu126, cu129"]


def test_the_same_cell_twice_by_name(tmp_path: Path):
    assert axis(tmp_path, 'triton: [pinned, "3.4.0"]') == [
        "3: profile a has the same cell twice: torch 2.8.0, triton 3.4.0, cu128, Python 3.12 | "
        "keep one; `pinned` or `default` may name it already"
    ]


def test_the_same_cell_twice_by_a_rule(tmp_path: Path):
    assert axis(tmp_path, 'include: [{torch: "2.8.0", env: [{}], reason: again}]')[0].startswith(
        "6: profile a has the"
    )


def test_many_cells_twice_are_counted(tmp_path: Path):
    found = axis(
        tmp_path, "env: [{A: 1}, {A: 2}, {A: 3}, {A: 4}, {A: 5}, {A: 6}]\n    triton: [pinned, 3.4.0]"
    )
    assert len(found) == 5
    assert "A=1 (and 5 more such cells)" in found[0]


def test_too_many_cells(tmp_path: Path):
    text = (
        f"{SUBJECT}profiles:\n"
        '  b: {python: ">3", torch: ">2", triton: ">3.0.0",\n'
        "    cuda: [cpu, cu118, cu121, cu124, cu126, cu128, cu130], env: ["
        + ", ".join(f"{{A: {number}}}" for number in range(10))
        + "]}\n"
    )
    assert problems(tmp_path, text) == [
        "3: profile b stands for 105,840 cells | stay below 50,000: fewer values, or `include` rules"
    ]


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("{test_file: t.py, test: a}", "subject has no `path` | name a folder, or a repository with `git`"),
        (
            "{path: ., git: x, test_file: t.py, test: a}",
            "subject has both `path` and `git` | keep the folder or the repository",
        ),
        (
            "{path: ., test: a}",
            "subject has no `test_file` | name the file with the test, relative to the subject",
        ),
        (
            "{path: ., test_file: t.py}",
            "subject has no `test` | name the test as pytest does, such as test_a[float32] or TestA::test_b",
        ),
        ("{path: 5, test_file: t.py, test: a}", '`path` is a number (5), not text | put it in quotes: "5"'),
        ("{path: , test_file: t.py, test: a}", "`path` is empty | write text"),
        (
            '{path: "a\\nb", test_file: t.py, test: a}',
            "`path` has a line break or control character in it | write plain text",
        ),
        (
            "{path: ., test_file: ../t.py, test: a}",
            "`test_file`: `../t.py` leaves the subject | write a path relative to the subject",
        ),
        (
            "{path: ., test_file: t.py, test: a, requirements: [a b]}",
            '`requirements`: `a b` is no pip requirement | write such as "einops>=0.8"',
        ),
        (
            "[a]",
            "`subject` is a list | write keys under it: `path`, `git`, `rev`, `files`, `python_path`, "
            "`test_file`, `test`, `requirements`, `signature`, `adapter`",
        ),
        (
            "{path: ., test_file: t.py, test: a, signature: {error: X}}",
            "unknown key `error` in subject.signature | the keys are `exception`",
        ),
    ],
)
def test_subject(tmp_path: Path, subject: str, expected: str):
    assert problems(tmp_path, f"subject: {subject}\n{PROFILE}") == [f"1: {expected}"]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("memory: lots", "`memory` is text (lots) | write a size such as 8g or 512m"),
        ("trial_timeout: 0", "`trial_timeout` is a number (0) | write a time such as 90s, 20m or 1h"),
        ("pids: -1", "`pids` is a number (-1) | write a whole number from 1 to 1000000"),
    ],
)
def test_limits(tmp_path: Path, limit: str, expected: str):
    assert problems(tmp_path, f"limits: {{{limit}}}\n{SUBJECT}{PROFILE}") == [f"1: {expected}"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "0: empty | write a subject and a profile: the README shows a short one"),
        (b"a:\n \xff\xfe\x00", "2: not UTF-8 text: byte 0xff | save it as UTF-8"),
        ("a: [b", "1: not YAML: did not find expected ',' or ']' | check quotes, colons and indentation"),
        ("a:\n \x01", "2: not YAML: a character that cannot be printed | take it out"),
        ("a: &x [b]\nc: *x", "1: a YAML anchor or alias (`&name`, `*name`) | write the value out"),
        (
            "a: !!python/name:os.system x",
            "1: a YAML tag (`tag:yaml.org,2002:python/name:os.system`) | write the plain value",
        ),
        ("a: 1\n---\nb: 2", "2: a second YAML document | keep one document; take out the `---`"),
        ("[" * 1000, "1: nested more than 20 levels deep | no key of matrix.yaml is that deep"),
        (b"#" * 1_000_001, "0: larger than 1,000,000 bytes | name the matrix.yaml, not a data file"),
    ],
)
def test_files_that_are_no_matrix(tmp_path: Path, content: str | bytes, expected: str):
    assert problems(tmp_path, content) == [expected]


def test_repeated_and_odd_keys(tmp_path: Path):
    found = problems(tmp_path, SUBJECT + PROFILE + '    torch: "2.9.1"\n? [a]\n: b\n')
    assert found == [
        "6: `torch` a second time; it stands on line 5 | keep one",
        "7: a key that is no single word | write `name: value`",
    ]


@pytest.mark.parametrize("profiles", ["{}", "[]", "x"])
def test_no_profiles(tmp_path: Path, profiles: str):
    (found,) = problems(tmp_path, f"{SUBJECT}profiles: {profiles}\n")
    assert found.startswith("2: `profiles` is ")
    assert found.endswith(" | write a name and its axes: cpu: {python: ..., torch: ...}")


def test_a_profile_with_a_bad_name_and_no_axes(tmp_path: Path):
    assert problems(tmp_path, f"{SUBJECT}profiles: {{a b: {{}}}}\n") == [
        "2: `a b` is no name for a profile | use letters, digits, - and _",
        '2: profile a b has no `python` | write such as python: "3.12"',
        '2: profile a b has no `torch` | write such as torch: ["2.12.1", "2.13.0"]',
    ]


def test_a_missing_file_and_a_folder(tmp_path: Path):
    with pytest.raises(ConfigError) as missing:
        load(tmp_path / "other.yaml")
    (problem,) = missing.value.problems
    assert (problem.line, problem.wrong) == (0, "cannot be read: No such file or directory")
    assert problem.right == "name another one with --matrix, or write one: the README shows a short one"
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_without_permission(tmp_path: Path):
    path = tmp_path / "matrix.yaml"
    path.write_text(SUBJECT)
    path.chmod(0)
    with pytest.raises(ConfigError, match="cannot be read: Permission denied"):
        load(path)


WORDS = st.sampled_from(
    ["subject", "profiles", "trials", "python", "torch", "triton", "env", "include", "exclude", "reason"]
) | st.sampled_from(
    ["path", "test", "cuda", "ptxas", "memory", "3.12", "2.8.0", ">=2.8", "pinned", "cpu", "8g"]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS | st.dates()
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=25,
)


def load_or_refuse(folder: Path, content: bytes) -> Matrix | ConfigError:
    path = folder / "matrix.yaml"
    path.write_bytes(content)
    try:
        return load(path)
    except ConfigError as error:
        return error


@settings(max_examples=150, deadline=None)
@given(value=VALUES)
def test_any_yaml_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, value: object):
    load_or_refuse(tmp_path_factory.mktemp("any"), yaml.safe_dump(value, allow_unicode=True).encode())


@settings(max_examples=150, deadline=None)
@given(content=st.binary(max_size=60) | st.text("-:[]{}&*!|>'\"%@`#,? \n\tab1.", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes):
    assert isinstance(load_or_refuse(tmp_path_factory.mktemp("any"), content), ConfigError)


@settings(max_examples=100, deadline=None)
@given(position=st.integers(0, 10**6), junk=st.sampled_from(list("{}[]:#'\"&*! \n,x0")))
def test_one_slip_in_a_good_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, position: int, junk: str
):
    shipped = (Path(__file__).parents[2] / "matrix.yaml").read_text(encoding="utf-8")
    at = position % len(shipped)
    load_or_refuse(tmp_path_factory.mktemp("any"), (shipped[:at] + junk + shipped[at + 1 :]).encode())
