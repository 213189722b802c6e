"""`repro clean`: what is the kit's own goes, and nothing else; results stay unless they are named."""

import json
import re
import shlex
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from docker.errors import APIError
from subject_folders import write

from repro import cli
from repro.cleaning import containers
from repro.cleaning.folder import _PLACES
from repro.cli import clean, status
from repro.cli.workspace import only_run
from repro.engines.docker import kit_labels
from repro.errors import ExitCode, NotReadyError
from repro.store import Ledger

STAMP = "20260101T000000-0123abcd"
HEX12, HEX16, HEX64 = "0123456789ab", "0123456789abcdef", "0123456789abcdef" * 4
LEFT = (
    *("tmp/context-x/Dockerfile", "subjects/2/.draft-1/op.py", f"blocks/{STAMP}/tmp/home/x"),
    *("ledger.sqlite.rebuild", "merged/.1234.part", f"inputs/.{HEX64}.pt.12", "report/.report.md.part"),
    *(f"looks/{STAMP}/tmp/x",),
)
CACHES = (
    *(f"subjects/2/content-{HEX12}/op.py", f"subjects/content-{HEX12}/op.py", "subjects/notes-2/x.json"),
    *(f"mirrors/kernels-{HEX12}/HEAD", f"test-files/{HEX12}/test_it.py", f"cache/{HEX12}/rev/x"),
    *("cache/factor-tf32/x", "kernels/cache/20260101T000000-abcdef/k.ptx", f"venvs/{HEX16}/bin/python"),
    *(f"diagnosis/cache/{HEX12}/rev/x", "diagnosis/cache/factor-tf32/x"),
    *(f"venvs/{HEX16}.lock", "kit/0.1.0/repro_trial/block.py", "locks/repro-cell-0123"),
)
RESULTS = (
    *(f"blocks/{STAMP}/records.jsonl", f"blocks/{STAMP}/request.json", "builds.jsonl", "diagnosis.json"),
    *("minimized.json", f"searches/{HEX12}.json", f"merged/{HEX16}.sqlite"),
    *(f"set-aside/20260101T000000/{STAMP}/x", f"inputs/{HEX64}.pt", "report/report.md", "report/script.py"),
    *("logs/build-torch.log", f"looks/{STAMP}/x", f"diagnosis/{STAMP}/records.jsonl"),
    *("diagnosis/ledger.sqlite", f"diagnosis/blocks/{STAMP}/records.jsonl"),
    *(f"kernels/{STAMP}/records.jsonl", f"scripts/{STAMP}/script.py"),
)
FOREIGN = (
    *("notes.txt", "tmp/mine.txt", "cache/mine/x", "kit/mine.py", "inputs/mine.pt", "subjects/mine/x"),
    *("venvs/mine/x", "report/mine.md", "blocks/mine/tmp/x", "looks/mine/x", "mirrors/mine/x"),
    *("logs/mine.log", "ledger.sqlite.old"),
)
WITH_FOLDERS = ("blocks", "looks", "mirrors", "subjects", "venvs", "cache")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A results folder with everything that the kit writes, and things that it never would."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(clean, "connect", no_engine)
    monkeypatch.setattr(containers, "_output", lambda command: "")
    folder = tmp_path / ".repro"
    Ledger.open(folder / "ledger.sqlite").close()
    write(folder, dict.fromkeys((*LEFT, *CACHES, *RESULTS, *FOREIGN), "x"))
    (folder / f"subjects/2/content-{HEX12}/op.py").chmod(0o444)
    (folder / f"subjects/2/content-{HEX12}").chmod(0o555)
    return folder


def no_engine(timeout):
    raise NotReadyError("no Docker engine answers")


@pytest.fixture
def repro(capsys):
    def run(*arguments):
        code = cli._guarded(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()} - {"lock"}


def test_caches_and_leftovers_go_and_results_stay(repro, home):
    code, out, err = repro("clean")
    assert (code, err) == (0, "")
    assert files(home) == {*RESULTS, *FOREIGN, "ledger.sqlite"}
    assert "containers and images were not looked at: no Docker engine answers" in out
    assert not (home / "locks").exists(), "a folder that holds nothing any more goes, too"
    assert repro("clean")[1].endswith("there is nothing to remove\n")


def test_results_go_when_they_are_named(repro, home):
    assert repro("clean", "--results")[0] == 0
    assert files(home) == set(FOREIGN)


def test_a_folder_of_the_kit_alone_goes_as_a_whole(repro, home):
    for name in FOREIGN:
        (home / name).unlink()
    for name in ("blocks/mine/tmp", *(f"{name}/mine" for name in WITH_FOLDERS)):
        (home / name).rmdir()
    assert repro("clean", "--results")[0] == 0
    assert not home.exists()


@pytest.mark.parametrize("more", [[], ["--results"]])
def test_a_dry_run_removes_nothing_and_lists_what_would_go(repro, home, more):
    (home / "venvs" / HEX16 / "big").write_bytes(b"x" * 3_000_000)
    before = files(home)
    code, out, _ = repro("clean", "--dry-run", "--json", *more)
    told = json.loads(out)
    assert (code, files(home), told["removed"]) == (0, before, False)
    sizes = {item["name"]: item["bytes"] for item in told["items"] if item["kind"] == "cache"}
    assert sizes["venvs"] > 3_000_000 > sizes["cache"] > 0
    wanted = {*LEFT, *CACHES} | ({*RESULTS, "ledger.sqlite"} if more else set())
    assert {item["name"] for item in told["items"]} == {name.partition("/")[0] for name in wanted}
    assert "would remove " in repro("clean", "--dry-run", *more)[1]


def test_links_are_not_followed(repro, home, tmp_path):
    """Neither a link in a cache, nor one in the place of a folder of the kit's."""
    outside = tmp_path / "outside"
    write(outside, {f"venvs/{HEX16}/x": "mine", "code/op.py": "mine"})
    (home / f"subjects/2/content-{HEX12}").chmod(0o755)
    (home / f"subjects/2/content-{HEX12}/link").symlink_to(outside / "code")
    (home / f"cache/{HEX12}/link").symlink_to(outside / "code" / "op.py")
    for name in (f"venvs/{HEX16}/bin/python", f"venvs/{HEX16}.lock", "venvs/mine/x"):
        (home / name).unlink()
    for name in (f"venvs/{HEX16}/bin", f"venvs/{HEX16}", "venvs/mine", "venvs"):
        (home / name).rmdir()
    (home / "venvs").symlink_to(outside / "venvs")
    before = files(outside)
    _, out, _ = repro("clean", "--results")
    assert files(outside) == before
    assert "note: venvs is a link, and is left as it is\n" in out
    assert not (home / "cache" / HEX12).exists()


def test_a_results_folder_behind_a_link(repro, home, tmp_path):
    home.rename(tmp_path / "elsewhere")
    home.symlink_to(tmp_path / "elsewhere")
    assert repro("clean")[0] == 0
    assert files(tmp_path / "elsewhere") == {*RESULTS, *FOREIGN, "ledger.sqlite"}


def test_a_folder_that_no_run_had_is_refused(repro, tmp_path, home):
    write(tmp_path / "work", {f"cache/{HEX12}/x": "mine", "tmp/context-1/x": "mine"})
    code, out, err = repro("clean", "--state", "work")
    assert (code, out) == (ExitCode.USAGE, "")
    assert err == (
        "error: work is no results folder\n"
        "  why:  there is no ledger in it\n"
        "  next: name the folder that the runs had: repro clean --state DIR\n"
    )
    assert len(files(tmp_path / "work")) == 2
    assert not (tmp_path / "work" / "lock").exists()


def test_a_run_that_works_is_left_alone(repro, home):
    before = files(home)
    with only_run(home):
        code, _, err = repro("clean", "--results")
        assert "a run works here now\n" in repro("status")[1]
    assert code == ExitCode.NOT_READY
    assert err.startswith("error: another run works in .repro (process ")
    assert files(home) == before


def test_no_folder_at_all(repro, tmp_path, home):
    code, out, _ = repro("clean", "--state", "nowhere")
    assert (code, (tmp_path / "nowhere").exists()) == (0, False)
    assert out.endswith("there is nothing to remove\n")


def test_what_cannot_be_removed_is_said(repro, home, monkeypatch):
    def refuse(path):
        raise OSError(13, "Permission denied", str(path))

    monkeypatch.setattr("repro.cleaning.items.shutil.rmtree", refuse)
    code, out, _ = repro("clean")
    assert code == ExitCode.NOT_READY
    assert "note: venvs is still there: " in out
    assert "Permission denied" in out


def test_status_names_what_killed_runs_left(repro, home):
    line = repro("status")[1].splitlines()[-1]
    assert line.startswith("left behind by killed runs: contexts of image builds (1 in tmp), ")
    assert line.endswith("; `repro clean` removes them")
    repro("clean")
    assert "left behind" not in repro("status")[1]


def test_every_folder_that_the_kit_writes_is_known():
    """Names below the results folder in the sources; a new one needs a line in `repro.cleaning.folder`."""
    sources = (path.read_text() for path in Path(cli.__file__).parents[1].rglob("*.py"))
    texts = [text for text in sources if "state" in text]
    named = {name for text in texts for name in re.findall(r'state(?:\.resolve\(\))? / "([\w.-]+)"', text)}
    asides = {name for text in texts for name in re.findall(r'aside="([\w-]+)"', text)}
    known = {re.split(r"[/\\]", place.folder)[0] for place in _PLACES}
    single = [re.compile(place.name) for place in _PLACES if place.folder == "."]
    missing = {name for name in (named | asides) - known if not any(one.fullmatch(name) for one in single)}
    assert missing <= {"lock"}
    assert len(named | asides) > 15


# The engine --------------------------------------------------------------------------------------------


class Thing(SimpleNamespace):
    """A container, image, volume or network of a fake engine."""

    def remove(self, **_):
        self.engine.removed.append(self.name)


class Engine:
    """A fake engine: lists things by label, as a real one does."""

    def __init__(self, things):
        self.removed, self.in_use = [], set()
        for thing in things:
            thing.engine = self
        for kind in ("containers", "images", "volumes", "networks"):
            mine = [thing for thing in things if thing.kind == kind]
            setattr(self, kind, SimpleNamespace(list=self._lister(mine), remove=self._remove))

    def _lister(self, things):
        return lambda filters, **_: [thing for thing in things if filters["label"] in thing.labels]

    def _remove(self, tag):
        if tag in self.in_use:
            raise APIError("conflict", explanation="image is being used by running container 0123")
        self.removed.append(tag)


def thing(kind, name, *, tags=(), **labels):
    named = {f"{containers.LABEL}.{key}": value for key, value in labels.items()}
    return Thing(kind=kind, name=name, labels=named, tags=list(tags), attrs={"Size": 5_000_000})


@pytest.fixture
def engine(home, monkeypatch):
    mine = {name.rpartition(".")[2]: value for name, value in kit_labels().items()}
    dead = {**mine, "pid": "999999999"}
    made = Engine(
        [
            thing("containers", "repro-dead", state="0", **dead),
            thing("containers", "repro-alive", state="0", **mine),
            thing("containers", "repro-elsewhere", state="0", **{**dead, "host": "another"}),
            thing("containers", "repro-foreign"),
            thing("images", "base", tags=[f"repro-base:{HEX16}"], step="base"),
            thing("images", "cell", tags=[f"repro-cell:{HEX16}", "mine:1"], step="cell"),
            thing("images", "torch", tags=[f"repro-torch:{HEX16}"], step="torch"),
            thing("images", "built on a cell", tags=["mine:2", "repro-cell:latest"], step="cell"),
            thing("images", "of the same name", tags=["repro-cell:" + HEX16[::-1]]),
            thing("volumes", "repro-volume", state="0"),
            thing("volumes", "mine"),
            thing("networks", "repro-network", state="0"),
            thing("networks", "mine"),
        ]
    )
    monkeypatch.setattr(clean, "connect", lambda timeout: made)
    return made


def test_while_a_run_goes_on_images_stay(repro, engine):
    """A run of another folder: between two of its trials no container holds the images."""
    code, out, _ = repro("clean")
    assert code == 0
    assert engine.removed == ["repro-dead", "repro-volume", "repro-network"]
    assert "note: container repro-alive belongs to a run that goes on\n" in out
    assert "note: 3 images left: the run that goes on may need them next\n" in out
    assert "built again" not in out


@pytest.fixture
def quiet(engine):
    """No run goes on here."""
    there = engine.containers.list({"label": containers.STATE_LABEL})
    alive = next(thing for thing in there if thing.name == "repro-alive")
    alive.labels[f"{containers.LABEL}.pid"] = "999999999"
    return engine


@pytest.mark.parametrize("words", [[], ["--dry-run"]])
def test_it_says_that_other_folders_share_the_images(repro, quiet, words):
    note = (
        "note: images belong to this machine, not to one results folder: whichever needs one again builds it"
    )
    assert note in repro("clean", *words)[1]
    assert "images belong" not in repro("clean", "--no-images", *words)[1]


def test_the_step_after_a_dry_run_removes_the_same(repro, quiet, home, tmp_path):
    home.rename(tmp_path / ".repro of mine")
    _, out, _ = repro("clean", "--state", ".repro of mine", "--results", "--no-images", "--dry-run")
    step = out.rpartition("next: ")[2].strip()
    assert step == "repro clean --state '.repro of mine' --results --no-images"
    assert repro(*shlex.split(step)[1:])[0] == 0
    assert files(tmp_path / ".repro of mine") == set(FOREIGN)
    assert quiet.removed == []


def test_only_labelled_and_unused_things_go(repro, quiet):
    engine = quiet
    code, out, _ = repro("clean")
    assert code == 0
    assert engine.removed == [
        "repro-dead",
        "repro-alive",
        *(f"repro-{step}:{HEX16}" for step in ("cell", "torch", "base")),
        "repro-volume",
        "repro-network",
    ]
    assert "note: container repro-elsewhere belongs to a run that goes on\n" in out


def test_an_image_in_use_stays_and_is_named(repro, quiet):
    quiet.in_use = {f"repro-torch:{HEX16}"}
    code, out, _ = repro("clean", "--json")
    told = {item["name"]: item["still_there"] for item in json.loads(out)["items"]}
    assert code == ExitCode.NOT_READY
    assert told[f"repro-torch:{HEX16}"] == "image is being used by running container 0123"
    assert told[f"repro-base:{HEX16}"] is None


@pytest.mark.parametrize("words", [["--dry-run"], ["--no-images"]])
def test_the_engine_is_left_alone(repro, engine, words):
    assert repro("clean", *words)[0] == 0
    assert engine.removed == []


def test_status_asks_for_containers_of_killed_runs(repro, home, monkeypatch):
    labels = {f"{containers.LABEL}.state": "0", **kit_labels()}
    dead = {**labels, f"{containers.LABEL}.pid": "999999999"}
    shown = [
        {"Name": "/repro-1", "Config": {"Labels": dead}},
        {"Name": "/repro-2", "Config": {"Labels": labels}},
    ]
    monkeypatch.setattr(containers.shutil, "which", lambda name: name)
    monkeypatch.setattr(containers, "_output", lambda c: "1 2" if c[1] == "ps" else json.dumps(shown))
    assert "container repro-1;" in repro("status")[1]
    assert status.is_held(home) is False
