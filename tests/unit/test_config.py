"""matrix.yaml as it should be: values, defaults, units, profiles."""

from pathlib import Path

import pytest

from repro.config import Limits, Signature, Trials, load

WHOLE = """\
subject:
  git: https://example.org/kernels.git
  rev: v1
  files: [src/kernels, ./tests/]
  python_path: [src]
  test_file: tests/test_a.py
  test: TestA::test_b[float32]
  requirements: ["einops>=0.8", numpy]
  signature: {exception: RuntimeError}
trials: {count: 40, confidence: 0.9, half_width: 0.1, block: 10}
limits: {memory: 512m, pids: 64, trial_timeout: 20m, startup_timeout: 90, build_timeout: 1h}
profiles:
  gpu:
    python: "3.12"
    torch: ["2.8.0", "2.9.1"]
    trials: {count: 7}
  cpu:
    python: "3.11"
    torch: "2.13.0"
    cuda: cpu
    env: [{}, {A: 0, B: "x y"}]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "matrix.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_value_arrives(tmp_path: Path):
    matrix = load(write(tmp_path, WHOLE))
    subject = matrix.subject
    assert (subject.base, subject.path, subject.git, subject.rev) == (
        tmp_path,
        None,
        "https://example.org/kernels.git",
        "v1",
    )
    assert subject.files == ("src/kernels", "tests")
    assert subject.python_path == ("src",)
    assert (subject.test_file, subject.test) == ("tests/test_a.py", "TestA::test_b[float32]")
    assert subject.requirements == ("einops>=0.8", "numpy")
    assert subject.signature == Signature(exception="RuntimeError")
    assert matrix.trials == Trials(count=40, confidence=0.9, half_width=0.1, block=10)
    assert matrix.limits == Limits(
        memory=512 * 2**20, pids=64, trial_timeout=1200.0, startup_timeout=90.0, build_timeout=3600.0
    )


def test_a_profile_says_of_trials_only_what_differs(tmp_path: Path):
    profiles = load(write(tmp_path, WHOLE)).profiles
    assert profiles["gpu"].trials == Trials(count=7, confidence=0.9, half_width=0.1, block=10)
    assert profiles["cpu"].trials.count == 40


def test_variables_are_text_as_written(tmp_path: Path):
    assert load(write(tmp_path, WHOLE)).profiles["cpu"].axes.env == ((), (("A", "0"), ("B", "x y")))


@pytest.mark.parametrize(("gpu", "name"), [(True, "gpu"), (False, "cpu")])
def test_default_profile_fits_the_machine(tmp_path: Path, gpu: bool, name: str):
    assert load(write(tmp_path, WHOLE)).default_profile(gpu=gpu).name == name


def test_one_profile_is_the_default_everywhere(tmp_path: Path):
    text = WHOLE[: WHOLE.index("  cpu:\n")]
    assert load(write(tmp_path, text)).default_profile(gpu=False).name == "gpu"


def test_defaults(tmp_path: Path):
    text = (
        'subject: {path: ., test_file: t.py, test: test_a}\nprofiles: {a: {python: "3.12", torch: "2.8.0"}}\n'
    )
    matrix = load(write(tmp_path, text))
    assert matrix.trials == Trials()
    assert matrix.limits == Limits()
    assert matrix.subject.signature.exception == "AssertionError"
    assert matrix.profiles["a"].axes.env == ((),)


def test_loading_touches_nothing(tmp_path: Path):
    path = write(tmp_path, WHOLE)
    load(path)
    assert list(tmp_path.iterdir()) == [path]


def test_the_shipped_matrix_covers_every_release_line():
    from repro.cells import expand
    from repro.stacks import stacks

    matrix = load(Path(__file__).parents[2] / "matrix.yaml")
    gpu, cpu = expand(matrix, "gpu"), expand(matrix, "cpu")
    lines = {release.rpartition(".")[0] for release in stacks().torch}
    assert {cell.torch.rpartition(".")[0] for cell in gpu.cells if not cell.crossed} == lines
    assert sum(cell.crossed for cell in gpu.cells) >= 6
    assert [cell.triton for cell in cpu.cells] == ["3.6.0", "3.7.1", "3.8.0"]
    assert not gpu.excluded
    assert not cpu.excluded
    assert matrix.default_profile(gpu=False).name == "cpu"
