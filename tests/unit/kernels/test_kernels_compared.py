"""Generated code, normalised, counted and compared."""

import json
import sys
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from fake_engine import FakeEngine, bench, cell, subject
from generated_code import APART, llir, ptx, sass, stages, ttir, write

from repro.cli.kernels import kernels
from repro.errors import NotReadyError, NotReproducedError, UsageError
from repro.kernels import collect, compare
from repro.kernels.answer import lines, said, to_json, untold
from repro.kernels.comparing import resources
from repro.kernels.counting import count_ptx
from repro.kernels.normal import normal
from repro.kernels.running import Compiled, Wanted, compile_in
from repro.run import Target
from repro.store import Ledger
from repro.trial.kernels.compiled import launches, summary
from repro.trial.kernels.nsight import nsight, parse


@pytest.mark.parametrize(
    ("stage", "one", "other"),
    [
        ("ttir", ttir(), ttir(path="/b/op.py", name="c256_i32")),
        ("llir", llir(), llir(number=21, a=30, b=41)),
        ("ptx", ptx(), ptx(version="9.0", path="/b/op.py", a=3, b=7, c=8, label=14)),
        ("sass", sass(), sass(a=20, b=23, label=7)),
    ],
)
def test_what_makes_no_difference(stage, one, other):
    assert one != other
    assert normal(stage, one) == normal(stage, other)


@pytest.mark.parametrize(
    ("stage", "one", "other"),
    [
        ("ttir", ttir(), ttir(value=128)),
        ("llir", llir(), llir(fast="contract ")),
        ("ptx", ptx(), ptx(order="acq_rel")),
        ("ptx", ptx(a=10, b=11), ptx(a=11, b=11)),
        ("sass", sass(), sass(a=9, b=9)),
    ],
)
def test_what_makes_a_difference(stage, one, other):
    assert normal(stage, one) != normal(stage, other)


def test_counts():
    counts = count_ptx(normal("ptx", ptx()))
    assert counts == {
        "global": {"ld.global.v4.b32": 1},
        "fma": {"fma.rn.f32": 1},
        "convert": {"cvt.rn.bf16x2.f32": 1},
        "atomic": {"red.global.gpu.relaxed.add.f32": 1},
        "spill": {"st.local.b32": 1},
        "barrier": {"bar.sync": 1},
    }


def test_identical(tmp_path):
    ours = collect(write(tmp_path / "a", stages()))
    theirs = collect(write(tmp_path / "b", stages(ptx=ptx(path="/c/op.py")), digest="OTHER"))
    (one,) = compare(ours, theirs)
    assert (one.identical, one.first_difference, one.counts()) == (True, None, [])
    assert said([one]) == "identical: 1 of 1 kernel, down to machine code"
    assert resources(ours[0]) == {
        "num_warps": 4, "num_stages": 3, "shared": 0, "arch": 90, "registers": 16, "spills": 1
    }  # fmt: skip


def test_the_first_stage_that_differs(tmp_path):
    ours = collect(write(tmp_path / "a", stages(), enable_fp_fusion=True))
    theirs = collect(
        write(
            tmp_path / "b", stages(ptx=ptx(arithmetic=APART), sass=sass(registers=40)), enable_fp_fusion=False
        )
    )
    (one,) = compare(ours, theirs)
    assert (one.identical, one.first_difference) == (False, "ptx")
    assert one.facts == {"enable_fp_fusion": (True, False)}
    assert ("ptx", "fma", "fma.rn.f32", 1, 0) in one.counts()
    assert ("ptx", "multiply", "mul.rn.f32", 0, 1) in one.counts()
    assert any(line.startswith("-fma.rn.f32") for line in one.difference("ptx"))
    assert not one.difference("ttir")
    told = "\n".join(lines(one))
    assert "differs from ptx on, and is equal again in sass" in told
    assert "registers: 16 / 40" in told
    assert said([one]) == "1 of 1 kernel differs, none of them in machine code"


def test_kernels_of_one_name_are_paired_by_their_source(tmp_path):
    """Two types of one kernel, listed in another order on the other side, and one that is there alone."""
    small, wide = stages(ttir=ttir(value=64)), stages(ttir=ttir(value=128), ptx=ptx(arithmetic=APART))
    for side, digests in (("a", ("A", "B")), ("b", ("Y", "X"))):
        for digest, held in zip(digests, (small, wide), strict=True):
            write(tmp_path / side, held, digest=digest)
    write(tmp_path / "b", stages(), digest="Z")
    compared = compare(collect(tmp_path / "a"), collect(tmp_path / "b"))
    assert [one.identical for one in compared] == [True, True, False]
    assert "on side B only" in "\n".join(lines(compared[2]))


def test_without_machine_code(tmp_path):
    held = {stage: text for stage, text in stages().items() if stage != "sass"}
    one, other = (collect(write(tmp_path / side, held)) for side in "ab")
    assert said(compare(one, other)) == "identical: 1 of 1 kernel, down to what is there (ptx at last)"
    assert resources(one[0])["registers"] is None
    assert said([]) == "no kernel was compiled on either side"


def test_a_trial_compiles_into_a_cache_of_its_own(tmp_path):
    """Two cells, one trial each: whatever lies in the cell's usual cache plays no part."""

    def trial(cell, seed):
        arithmetic = {"arithmetic": APART} if cell.triton == "3.8.0" else {}
        write(engine.jobs[-1].cache / "triton", stages(ptx=ptx(**arithmetic)))
        return "PASSED"

    engine = FakeEngine(trial=trial)
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        kit = bench(tmp_path, ledger, engine)
        sides = []
        for version in ("3.7.1", "3.8.0"):
            target = Target(cell=cell(version, cuda="cu130"), subject=subject(tmp_path))
            prepared = kit.runner.prepare(target)
            sides.append(compile_in(kit.runner, target, prepared, Wanted(env=(("A", "1"),))))
        assert not kit.outcomes
    assert [len(side.kernels) for side in sides] == [1, 1]
    assert engine.jobs[0].cache != engine.jobs[1].cache
    assert engine.jobs[0].env["A"] == "1"
    told = json.loads(json.dumps(to_json(sides, compare(sides[0].kernels, sides[1].kernels))))
    assert told["identical"] is False
    assert told["compared"][0]["first_difference"] == "ptx"


NVDISASM = """#!/bin/sh
echo "$@" >> {said}
printf '%s' '{text}'
"""


@pytest.fixture
def nvdisasm(tmp_path, monkeypatch):
    """A program of that name on PATH, and what it was asked."""
    program, said = tmp_path / "bin" / "nvdisasm", tmp_path / "asked"
    program.parent.mkdir()
    program.write_text(NVDISASM.format(said=said, text=sass().replace("'", "")))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return SimpleNamespace(program=program, asked=lambda: said.read_text() if said.exists() else "")


@pytest.mark.parametrize(
    ("engine", "named", "runs"), [("docker", False, False), ("docker", True, True), ("venv", False, True)]
)
def test_machine_code_of_a_container_meets_no_program_of_the_host(tmp_path, nvdisasm, engine, named, runs):
    """Unless the user names one; under the other engines a trial could run anything anyway."""

    def trial(cell, seed):
        held = {stage: text for stage, text in stages().items() if stage != "sass"}
        (write(fake.jobs[-1].cache / "triton", held) / "HASH" / "add_kernel.cubin").write_bytes(b"\x7fELF")
        return "PASSED"

    fake = FakeEngine(trial=trial, name=engine)
    wanted = Wanted(disassembler=str(nvdisasm.program) if named else None)
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        kit = bench(tmp_path, ledger, fake)
        target = Target(cell=cell("3.7.1", cuda="cu130"), subject=subject(tmp_path))
        side = compile_in(kit.runner, target, kit.runner.prepare(target), wanted)
    assert ("add_kernel.cubin" in nvdisasm.asked()) == runs
    assert ("sass" in side.kernels[0].stages) == runs
    assert to_json([side], [])["cells"][0]["without_text"] == (not runs)
    assert ("--nvdisasm PROGRAM" in untold(side)) == (not runs)


def test_machine_code_of_a_cache_is_read_where_a_program_is_named(tmp_path, nvdisasm):
    held = {stage: text for stage, text in stages().items() if stage != "sass"}
    cache = write(tmp_path / "cache", held)
    (cache / "HASH" / "add_kernel.cubin").write_bytes(b"\x7fELF")
    unasked = CliRunner().invoke(kernels, ["--cache", str(cache)])
    assert (unasked.exit_code, nvdisasm.asked()) == (0, "")
    assert "1 of 1 kernel has no text" in " ".join(unasked.output.split())
    asked = CliRunner().invoke(kernels, ["--cache", str(cache), "--nvdisasm", "nvdisasm", "--json"])
    assert json.loads(asked.output)["cells"][0]["kernels"][0]["resources"]["registers"] == 16
    wrong = CliRunner().invoke(kernels, ["--cache", str(cache), "--nvdisasm", "no-such-program"])
    assert isinstance(wrong.exception, UsageError)


@pytest.mark.parametrize(
    "options",
    [
        ["--cell", "*"],
        ["--arch", "sm_90"],
        ["--measure"],
        ["--seed", "0"],
        ["--env", "A=1"],
        ["--engine", "host"],
    ],
    ids=lambda options: options[0],
)
def test_what_says_what_to_compile_does_not_go_with_a_cache(tmp_path, options):
    cache = write(tmp_path / "cache", stages())
    result = CliRunner().invoke(kernels, ["--cache", str(cache), *options])
    assert isinstance(result.exception, UsageError)
    assert result.exception.what == f"--cache does not go together with {options[0]}"
    assert result.exception.next_step.startswith("leave it out; or leave --cache out")


def test_a_cache_is_compared_with_a_cache(tmp_path):
    one, other = (write(tmp_path / side, stages()) for side in "ab")
    alone = CliRunner().invoke(kernels, ["--against-cache", str(other)])
    assert isinstance(alone.exception, UsageError)
    assert alone.exception.next_step == "name the other folder, too: --cache DIR"
    both = ["--cache", str(one), "--against-cache", str(other), "--show", "ptx", "--state", str(tmp_path)]
    assert "identical: 1 of 1 kernel" in CliRunner().invoke(kernels, both).output


def test_a_cell_that_interprets_compiles_nothing(tmp_path):
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        kit = bench(tmp_path, ledger, FakeEngine())
        with pytest.raises(NotReadyError, match="nothing is compiled") as refused:
            compile_in(kit.runner, kit.target(), kit.runner.prepare(kit.target()), Wanted())
    assert "--cache DIR" in refused.value.next_step
    assert not kit.engine.jobs


def test_a_test_that_is_not_there(tmp_path):
    missing = {"event": "missing", "reason": "absent", "outcome": "TEST_MISSING", "message": "no test_it"}
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        kit = bench(tmp_path, ledger, FakeEngine(begin=lambda cell: missing))
        target = Target(cell=cell(cuda="cu130"), subject=subject(tmp_path))
        with pytest.raises(NotReproducedError, match="no test_it"):
            compile_in(kit.runner, target, kit.runner.prepare(target), Wanted())


def test_one_side_alone():
    assert to_json([Compiled(cell="a", kernels=[])], [])["identical"] is None


def test_what_a_profiler_saw():
    """A kernel's bandwidth is known where every launch was seen; other kernels have none."""
    kernel = {"cat": "kernel", "name": "add_kernel", "dur": 10.0, "args": {"registers per thread": 32}}
    events = [kernel, {**kernel, "dur": 30.0}, {**kernel, "name": "other", "dur": 5.0}, {"cat": "cpu_op"}]
    add, other = summary(events, {"add_kernel": [4_000_000, 4_000_000]})
    assert (add["launches"], add["microseconds"], add["registers"]) == (2, 40.0, 32)
    assert add["gigabytes_per_second"] == pytest.approx(200.0)
    assert other["gigabytes_per_second"] is None


def test_launches_through_triton_and_past_it_are_seen(monkeypatch):
    """A kernel that a library has compiled and kept is launched without `JITFunction.run`."""
    torch = pytest.importorskip("torch")

    class JITFunction:
        fn = SimpleNamespace(__name__="add_kernel")

        def run(self, *args, grid):
            return ("through", grid)

    class CompiledKernel:
        metadata = SimpleNamespace(name="kept_kernel")

        def __getitem__(self, grid):
            return lambda *args: ("past", grid)

    monkeypatch.setitem(sys.modules, "triton.runtime.jit", SimpleNamespace(JITFunction=JITFunction))
    monkeypatch.setitem(
        sys.modules, "triton.compiler.compiler", SimpleNamespace(CompiledKernel=CompiledKernel)
    )
    before, (x, y) = (JITFunction.run, CompiledKernel.__getitem__), (torch.zeros(8), torch.zeros(2).double())
    with launches(torch) as sizes:
        assert JITFunction().run(x, y, x, 7, grid=(1,)) == ("through", (1,))
        assert CompiledKernel()[(2, 1, 1)](y, 3) == ("past", (2, 1, 1))
    assert sizes == {"add_kernel": [32 + 16], "kept_kernel": [16]}
    assert (JITFunction.run, CompiledKernel.__getitem__) == before


CSV = """==PROF== Connected to process 7
"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"
"0","add_kernel","GPU Speed Of Light Throughput","DRAM Throughput","%","61.2"
"0","add_kernel","Launch Statistics","Registers Per Thread","register/thread","32"
"1","add_kernel","GPU Speed Of Light Throughput","DRAM Throughput","%","60.9"
"""


NCU = """#!{python}
import subprocess, sys
command = sys.argv[sys.argv.index(sys.executable) :]
done = subprocess.run(command, capture_output=True, text=True)
open("{folder}/ran", "w").write(done.stdout + done.stderr)
print(open("{folder}/answer").read())
"""
"""Runs what it is given, as ncu does, and prints an answer that was written before."""


def test_nsight_compute_is_asked_where_it_is(tmp_path, monkeypatch):
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"records": "/records", "profile": True}))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert nsight(request) == {"nsight": [], "reason": "ncu is not on PATH"}
    (tmp_path / "answer").write_text(CSV)
    program = tmp_path / "ncu"
    program.write_text(NCU.format(python=sys.executable, folder=tmp_path))
    program.chmod(0o755)
    told = nsight(request)
    metrics = {"DRAM Throughput": "61.2 %", "Registers Per Thread": "32 register/thread"}
    assert told == {"nsight": [{"name": "add_kernel", "launches": 2, "metrics": metrics}], "reason": ""}
    assert "bad request: root" in (tmp_path / "ran").read_text(), "the block's own program read the request"
    (tmp_path / "answer").write_text("==ERROR== ERR_NVGPUCTRPERM\n")
    assert nsight(request) == {"nsight": [], "reason": "==ERROR== ERR_NVGPUCTRPERM"}
    assert parse("") == []
