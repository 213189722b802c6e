"""The page: one file, well formed, without scripts and anything from elsewhere; texts stay texts."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest
from report_examples import SEARCH, filled
from report_ledgers import A100, CELLS, SIGNATURE, flake, write_cell

from repro.report import to_html
from repro.report.model import Anatomy, Proof

VOID = {"meta", "br", "rect", "line"}
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
HOSTILE = "</style></script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`&amp;\u202e"


class Page(HTMLParser):
    """Tags, their attributes and the text; fails where tags do not nest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def everything(home, told):
    flake(home)
    write_cell(home, "r", CELLS[1], failing=range(20), trials=20, mode="repeat")
    write_cell(home, "g", CELLS[1], failing=(2,), gpu=A100)
    return filled(told())


def test_one_file_without_scripts(everything):
    page = Page(to_html(everything))
    assert "script" not in page.tags
    assert not {"link", "img", "iframe", "object", "embed", "form", "base"} & set(page.tags)
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    links = [value for tag, name, value in page.attributes if name in ("href", "src", "xlink:href")]
    assert links == [SEARCH.link]
    assert ("meta", "content", POLICY) in page.attributes
    assert "prefers-color-scheme: dark" in to_html(everything)


def test_every_section_and_chart(everything):
    page = Page(to_html(everything))
    heads = (
        "Failure rates",
        "Which cells differ",
        "Since when",
        "Anatomy of the failure",
        "Ruled out",
        "Why",
    )
    for text in (
        *heads,
        "Smallest case that still fails",
        "What to do",
        "sys.exit(1)",
        "Environment",
        "8.2 %",
    ):
        assert text in page.text
    # A bar a cell and a GPU model, two places, one a candidate, the errors, three dimensions, and the jump.
    assert page.tags.count("svg") == 4 + 2 + 2 + 1 + 3 + 1
    assert page.tags.count("title") == 1 + 13


def test_hostile_texts_stay_texts(home, told):
    signature = {**SIGNATURE, "source": HOSTILE, "key": HOSTILE, "file": HOSTILE}
    write_cell(
        home, "b0", HOSTILE, failing=(1,), test=HOSTILE, gpu=HOSTILE, revision=HOSTILE, signature=signature
    )
    write_cell(home, "b1", "other", failing=(1,), test=HOSTILE, revision=HOSTILE)
    report = filled(told())
    cause = replace(report.diagnosis.causes[0], name=HOSTILE, evidence=[HOSTILE])
    tried = [replace(SEARCH.tried[0], label=HOSTILE)]
    report = replace(
        report,
        origin=HOSTILE,
        notes=[HOSTILE],
        elsewhere=[HOSTILE],
        diagnosis=replace(report.diagnosis, causes=[cause], minimized=[HOSTILE], conclusion=[HOSTILE]),
        searches=[replace(SEARCH, axis=HOSTILE, sentence=HOSTILE, link='https://x/"onclick="y', tried=tried)],
        proof=Proof(script=HOSTILE, refused=HOSTILE, printed=HOSTILE),
    )
    page = Page(to_html(report))
    assert not {"script", "img"} & set(page.tags)
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert page.tags.count("style") == 1
    assert "href" not in [name for _, name, _ in page.attributes]
    assert "alert(1)" in page.text


def test_a_report_without_much(home, told):
    write_cell(home, "b0", CELLS[0], failing=(), trials=5, gpu="")
    page = Page(to_html(replace(told(), proof=Proof(refused="no trial has failed"))))
    assert "There is none: no trial has failed." in page.text
    assert page.tags.count("svg") == 1


@pytest.mark.parametrize("ratios", [(0.0, 0.0), (float("inf"), float("nan")), (1e-30, 1e30), (1.0, 1.0)])
def test_errors_of_any_size_can_be_drawn(everything, ratios):
    anatomy = replace(everything.anatomy, passing_ratios=[ratios[0]], failing_ratios=[ratios[1]])
    Page(to_html(replace(everything, anatomy=anatomy)))


def test_no_anatomy_is_no_section(everything):
    assert "Anatomy" not in Page(to_html(replace(everything, anatomy=Anatomy()))).text
