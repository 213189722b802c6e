"""Nothing that identifies people or machines is left, and what a maintainer needs stays."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_examples import PROOF, filled
from report_ledgers import CELLS, flake, write_cell

from repro.report import Redactor, redacted_report, to_html, to_markdown
from repro.report.redact import Names, said

NAMES = Names(
    home="/home/Ana Bell",
    user="anabell",
    hosts=("gpubox07.corp.example", "gpubox07"),
    folders=("/srv/My Code",),
)
UUID = "GPU-5ad3f1ee-12ab-34cd-56ef-0123456789ab"

REPLACED = [
    ("/home/carol/work/op.py:12: error", "<path>/op.py:12: error"),
    ("cd /home/carol", "cd <path>"),
    ("cd /root/x/y.py", "cd <path>/y.py"),
    ("in /Users/carol/kernels", "in <path>/kernels"),
    ("'/tmp/tmpz9/main.c', '-I/opt/include'", "'<path>/main.c', '-I<path>/include'"),
    ("/opt/v/lib/python3.12/site-packages/triton/x.py", "<path>/site-packages/triton/x.py"),
    ("/home/Ana Bell/secret plan/a.py", "<path>/secret plan/a.py"),
    ("/srv/My Code/deep/a.py and /srv/My Code", "<path>/a.py and <path>"),
    ("~/kernels/secret/op.py", "<path>/op.py"),
    ("~carol/op.py", "<path>/op.py"),
    (r"C:\Users\carol\op.py", r"<path>\op.py"),
    ("file:///home/carol/op.py", "file://<path>"),
    ("anabell ran it on gpubox07", "<user> ran it on <host>"),
    ("gpubox07.corp.example:8080", "<host>:8080"),
    (f"device {UUID} lost", "device <gpu-uuid> lost"),
    ("MIG-5ad3f1ee-12ab-34cd-56ef-0123456789ab", "<gpu-uuid>"),
    ("carol.d@example.org wrote", "<e-mail> wrote"),
    ("https://carol:hunter2@example.org/k.git@v1", "https://example.org/k.git@v1"),
    ("https://example.org/x?a=1&token=abc#z", "https://example.org/x?a=1&token=<token>#z"),
    ("https://s3.example.org/x?X-Amz-Signature=abc&X-Amz-Credential=d", None),
    ("ghp_0123456789abcdefghij0123", "<token>"),
    ("token=deadbeefcafe", "token=<token>"),
    ("Authorization: Bearer abcdefghijklmnopqrst", "Authorization: Bearer <token>"),
    ("hf_abcdefghijklmnopqrstuvwxyz", "<token>"),
]
KEPT = [
    "torch 2.11.0+cu130, driver 580.159.04, cudnn 9.1.0.70, ptxas 12.8",
    "test_backward[float32-border-False] at tests/suite/test_op.py:62",
    "34/400 of 1/2, and/or, 0/768000",
    "https://github.com/triton-lang/triton/compare/v3.5.1...v3.6.0",
    "git@github.com:owner/name.git",
    "torch2.11.0-triton3.6.0-cu130-py312",
    "root user, worker 3, ubuntu 24.04",
    "assert_close(a @ b, c)",
    "the token of a loop, secret sauce",
    "img@sha256:0123456789abcdef",
    "a / b / c",
    "<path>/op.py",
]


@pytest.mark.parametrize(("text", "clean"), REPLACED)
def test_replaced(text, clean):
    told = Redactor(names=NAMES).text(text)
    if clean is not None:
        assert told == clean
    for secret in (
        "carol",
        "anabell",
        "Ana Bell",
        "gpubox07",
        "hunter2",
        "5ad3f1ee",
        "abc&",
        "=d",
        "deadbeef",
    ):
        assert secret not in told


@pytest.mark.parametrize("text", KEPT)
def test_kept(text):
    assert Redactor(names=NAMES).text(text) == text


@pytest.mark.parametrize(("text", "clean"), REPLACED)
def test_twice_is_once(text, clean):
    redactor = Redactor(names=NAMES)
    assert redactor.text(redactor.text(text)) == redactor.text(text)


@given(
    st.text(alphabet="abcXYZ019_-.", min_size=3, max_size=12).filter(lambda name: name[0].isalpha()),
    st.sampled_from(
        ["/home/{}", "/Users/{}", "/home/{}/k/a.py", "/mnt/{}/k/a.py", "~{}/a.py", "-L/home/{}/lib"]
    ),
    st.sampled_from(["", " ", '"', "'", "(", "[", "=", ",", "\n"]),
)
def test_no_folder_above_a_file_survives(name, where, before):
    name = f"qq{name}qq"
    assert name not in Redactor(names=Names()).text(f"x{before} {before}{where.format(name)} and more")


def test_switched_off():
    assert Redactor(names=NAMES, enabled=False).text("/home/carol/x") == "/home/carol/x"


def test_names_that_say_nothing_stay():
    redactor = Redactor(names=Names(home="/root", user="root", hosts=("localhost",)))
    assert redactor.text("root of localhost in /root/k/op.py") == "root of localhost in <path>/op.py"


def test_what_was_replaced_is_counted():
    redactor = Redactor(names=NAMES)
    redactor.text("anabell and anabell in /home/carol/x.py")
    assert said(redactor.found.items()) == [
        ("path", "/home/carol/x.py", "<path>/x.py", "1"),
        ("user", "anabell", "<user>", "2"),
    ]


def test_a_whole_report(home, told):
    leak = f"/home/carol/op.py on gpubox07 by anabell <carol@example.org> {UUID} https://u:pw@example.org"
    write_cell(
        home, "b9", leak, failing=(1,), message=leak, facts={"env": {"HOME": "/home/carol"}, "x": leak}
    )
    flake(home)
    report = filled(told())
    clean = redacted_report(report, Redactor(names=NAMES))
    for text in (to_markdown(clean), to_html(clean), json.dumps([row.series.cell for row in clean.rates])):
        for secret in ("carol", "anabell", "gpubox07", "5ad3f1ee", "pw@"):
            assert secret not in text
    assert clean.proof == PROOF
    assert [row.rate for row in clean.rates] == [row.rate for row in report.rates]
    assert clean.rates[0].series.mode is report.rates[0].series.mode


def test_a_script_that_had_to_be_changed_says_so(home, told):
    from dataclasses import replace

    flake(home, cells=CELLS[:1])
    report = replace(told(), proof=replace(PROOF, script="open('/home/carol/data.pt')"))
    clean = redacted_report(report, Redactor(names=NAMES))
    assert not clean.proof.shown
    assert "not the one that ran" in clean.proof.refused
