"""Every image that a build may begin with is named by its digest."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from docker.errors import ImageNotFound

from repro.cells import Cell
from repro.engines import bases
from repro.engines.builders import Builder, BuilderKind
from repro.stacks import stacks

ROOT = Path(__file__).parents[2]
DIGEST = r"sha256:[0-9a-f]{64}"
PLACES = ("repro", "docker", ".ci", "Makefile", "docs", "README.md", "benchmarks")
PUBLIC = re.compile(
    r"\b(?:python|debian|ubuntu|alpine|busybox|nvidia/cuda|pytorch/pytorch|nvcr\.io/[\w./-]+|docker\.io/[\w./-]+)"
    r":[\w{][\w.{}-]*(?P<digest>@\S+)?"
)


def pythons():
    """Python versions that a cell can have."""
    known = stacks()
    return [minor for minor in known.known("python") if minor not in known.refused]


def test_the_dockerfile_begins_with_images_that_it_is_given():
    lines = (ROOT / "docker" / "Dockerfile").read_text().splitlines()
    begins = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert begins
    assert set(begins) == {"${PARENT}"}
    assert "ARG PARENT" in lines, "without a default, so that nothing unpinned slips in"


def test_every_python_has_a_digest_of_its_own():
    assert set(bases.PINNED) >= set(pythons())
    assert all(re.fullmatch(DIGEST, digest) for digest in bases.PINNED.values())
    assert len(set(bases.PINNED.values())) == len(bases.PINNED)


@pytest.mark.parametrize("minor", pythons())
def test_the_pinned_image_is_asked_for_first(minor, monkeypatch, tmp_path):
    """A registry that has everything is only asked for the digest."""
    pulled = []
    monkeypatch.delenv(bases.BASE_IMAGE_VARIABLE, raising=False)
    monkeypatch.setattr(bases, "_registry_has", lambda reference: True)
    monkeypatch.setattr(bases, "_pull", lambda builder, reference, *_: not pulled.append(reference))
    cell = Cell(python=minor, torch="2.8.0", triton="3.4.0", cuda="cpu", pinned_triton="3.4.0")
    builder = Builder(program="docker", kind=BuilderKind.CLASSIC)
    root = bases.find_root(
        EMPTY, builder, cell, tag="repro-host:0", log=tmp_path / "log", timeout=1, say=lambda _: None
    )
    assert pulled == [root.image]
    assert re.fullmatch(rf"python:{re.escape(minor)}-slim-bookworm@{DIGEST}", root.image)


def test_a_tag_that_stands_in_for_a_digest_is_announced(monkeypatch, tmp_path):
    said = []
    monkeypatch.delenv(bases.BASE_IMAGE_VARIABLE, raising=False)
    monkeypatch.setattr(bases, "_registry_has", lambda reference: "@" not in reference)
    monkeypatch.setattr(bases, "_pull", lambda *_: True)
    cell = Cell(python="3.12", torch="2.8.0", triton="3.4.0", cuda="cpu", pinned_triton="3.4.0")
    builder = Builder(program="docker", kind=BuilderKind.CLASSIC)
    bases.find_root(
        EMPTY, builder, cell, tag="repro-host:0", log=tmp_path / "log", timeout=1, say=said.append
    )
    assert said == ["pulling python:3.12-slim-bookworm: the tag as it is now, with no digest to hold it to"]


def _no_image(reference):
    raise ImageNotFound(reference)


EMPTY = SimpleNamespace(images=SimpleNamespace(get=_no_image))
"""An engine without images."""


def test_no_other_public_image_is_named_without_a_digest():
    paths = [path for place in PLACES for path in ((ROOT / place).rglob("*"), [ROOT / place])]
    files = [path for group in paths for path in group if path.is_file()]
    texts = {
        path: path.read_text(errors="ignore") for path in files if path.suffix in CODE or path.name in NAMED
    }
    named = {
        (path.relative_to(ROOT).as_posix(), found[0])
        for path, text in texts.items()
        for found in PUBLIC.finditer(text)
        if not re.fullmatch(f"@{DIGEST}", found["digest"] or "")
    }
    assert len(texts) > 100
    # A format and the sentence about it; the test above looks at what comes of them.
    assert named == {
        ("repro/engines/bases.py", "python:VERSION-slim-bookworm"),
        ("repro/engines/bases.py", "python:{minor}-slim-bookworm"),
    }


CODE = {".py", ".md", ".sh", ".yaml", ".yml"}
NAMED = {"Dockerfile", "Makefile", "run"}
