"""What a trial's container is given: the jail's flags, the GPU's devices, and the words of refusals."""

from __future__ import annotations

import json

import pytest
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from requests.exceptions import ConnectionError as RequestsConnectionError

from repro.cells import Cell
from repro.engines import gpu
from repro.engines.base import GpuMode, Job, Limits, Prepared
from repro.engines.container import NOBODY, ContainerRun, arguments, user_for
from repro.engines.docker import DockerEngine, kit_labels, kit_lives
from repro.engines.ending import EVENTS_KEPT
from repro.engines.gpu import GpuAccess
from repro.engines.nvidia import GpuHost
from repro.errors import NotReadyError

CPU = Cell(
    python="3.11", torch="2.13.0", triton="3.7.1", cuda="cpu", pinned_triton="3.7.1", env=(("A", "1"),)
)
GPU = Cell(python="3.11", torch="2.8.0", triton="3.4.0", cuda="cu128", pinned_triton="3.4.0", ptxas="12.6.85")


@pytest.fixture
def job(tmp_path):
    folders = {name: tmp_path / name for name in ("kit", "subject", "records", "cache")}
    for folder in folders.values():
        folder.mkdir()
    return Job(
        name="repro-1", request={"seed": 1}, test_file=tmp_path / "test_own.py", python_path=["."], **folders
    )


def given(cell, job, access=None):
    return arguments(cell, job, image="i", user="1:1", gpu=access or GpuAccess(), labels={})


def test_the_jail(job):
    flags = given(CPU, job)
    assert flags["network_mode"] == "none"
    assert flags["read_only"] is True
    assert flags["cap_drop"] == ["ALL"]
    assert flags["security_opt"] == ["no-new-privileges"]
    assert flags["init"] is True
    assert (flags["mem_limit"], flags["memswap_limit"]) == (8 * 2**30, 8 * 2**30)
    assert flags["pids_limit"] == 512
    assert all(limit["Hard"] <= 20000 for limit in flags["ulimits"])
    assert "volumes" not in flags
    assert "exec" in flags["tmpfs"]["/tmp"]
    assert flags["command"] == ["python3", "-m", "repro_trial", "/records/request.json"]


def test_only_records_and_cache_are_writable(job):
    mounts = {mount["Target"]: mount["ReadOnly"] for mount in given(CPU, job)["mounts"]}
    assert mounts == {
        "/kit": True, "/subject": True, "/records": False, "/cache": False, "/extra/test_own.py": True,
        "/records/request.json": True,
    }  # fmt: skip


def test_no_memory_limit_when_none_is_wanted(job):
    flags = given(CPU, Job(**{**vars(job), "limits": Limits(memory=None)}))
    assert "mem_limit" not in flags


def test_environment_of_cpu_and_gpu_cells(job):
    environment = given(CPU, job)["environment"]
    assert (environment["TRITON_INTERPRET"], environment["A"]) == ("1", "1")
    assert environment["PYTHONPATH"] == "/kit:/subject"
    environment = given(GPU, job)["environment"]
    assert "TRITON_INTERPRET" not in environment
    assert environment["TRITON_PTXAS_PATH"] == "/opt/repro/ptxas/nvidia/cuda_nvcc/bin/ptxas"


@pytest.mark.parametrize(
    ("uid", "rootless", "user"),
    [(1000, False, "1000:100"), (0, False, f"{NOBODY}:{NOBODY}"), (1000, True, "0:0")],
)
def test_who_a_trial_runs_as(uid, rootless, user):
    assert user_for(uid, 100, rootless=rootless) == user


@pytest.fixture
def host(tmp_path):
    """A machine with two GPUs whose driver lies among everything else."""
    dev, libraries = tmp_path / "dev", tmp_path / "lib"
    dev.mkdir()
    libraries.mkdir()
    for name in ("nvidia0", "nvidia3", "nvidiactl", "nvidia-uvm", "nvidia-modeset"):
        (dev / name).touch()
    (libraries / "libcuda.so.550").touch()
    (libraries / "libcuda.so.1").symlink_to("libcuda.so.550")
    return GpuHost(dev=dev, cdi=(tmp_path / "cdi",), libraries={"libcuda.so.1": libraries / "libcuda.so.1"})


def test_plain_devices(host):
    access = gpu.access(GpuMode.DEVICES, 1, host)
    assert access.devices == tuple(
        f"{host.dev}/{name}:{host.dev}/{name}:rw" for name in ("nvidia3", "nvidiactl", "nvidia-uvm")
    )
    assert [mount["Target"] for mount in access.mounts] == [
        "/usr/local/nvidia/lib64/libcuda.so",  # what -lcuda looks for
        "/usr/local/nvidia/lib64/libcuda.so.1",
    ]
    assert all(mount["Source"].endswith("/lib/libcuda.so.550") for mount in access.mounts)
    assert all(mount["ReadOnly"] for mount in access.mounts)
    assert access.environment["LD_LIBRARY_PATH"] == "/usr/local/nvidia/lib64"


def test_toolkit_and_cdi_requests(host):
    [request] = gpu.access(GpuMode.TOOLKIT, 1, host).device_requests
    assert (request["DeviceIDs"], request["Capabilities"]) == (["1"], [["gpu"]])
    [request] = gpu.access(GpuMode.CDI, 1, host).device_requests
    assert (request["Driver"], request["DeviceIDs"]) == ("cdi", ["nvidia.com/gpu=1"])


@pytest.mark.parametrize(
    ("runtimes", "toolkit", "cdi", "expected"),
    [
        ({"nvidia": {}}, False, False, GpuMode.TOOLKIT),
        ({}, True, False, GpuMode.TOOLKIT),
        ({}, False, True, GpuMode.CDI),
        ({}, False, False, GpuMode.DEVICES),
    ],
)
def test_what_auto_comes_to(host, tmp_path, runtimes, toolkit, cdi, expected):
    if cdi:
        (tmp_path / "cdi").mkdir()
        (tmp_path / "cdi" / "nvidia.yaml").write_text("kind: nvidia.com/gpu")
    host = GpuHost(dev=host.dev, cdi=host.cdi, libraries=host.libraries, toolkit=toolkit)
    assert gpu.decide(GpuMode.AUTO, host, runtimes, ["/etc/cdi"]) is expected
    assert gpu.decide(GpuMode.NONE, host, runtimes, []) is GpuMode.NONE
    bare = GpuHost(dev=tmp_path / "none", cdi=())
    assert gpu.decide(GpuMode.AUTO, bare, runtimes if not toolkit else {}, []) is GpuMode.NONE


@pytest.mark.parametrize(
    ("mode", "index", "what", "fix"),
    [
        (
            GpuMode.NONE,
            0,
            "GPU 0 was asked for, and no way to hand one to a container was found",
            "--profile cpu",
        ),
        (GpuMode.DEVICES, 2, "GPU 2 was asked for, and {dev} has 2 NVIDIA device nodes", "nvidia-smi"),
    ],
)
def test_a_gpu_that_is_not_there(host, mode, index, what, fix):
    with pytest.raises(NotReadyError) as caught:
        gpu.access(mode, index, host)
    assert caught.value.what == what.format(dev=host.dev)
    assert fix in caught.value.next_step


class FakeContainer:
    """A container whose state, and the engine's failures, a test decides."""

    id = "c1"

    def __init__(self, state=None, fails=None, start_fails=None, events=None):
        self.attrs = {"State": state, "Created": "2026-11-22T10:00:00.123456789Z"}
        self.client = self.api = self
        self.happened = [event("start")] if events is None else events
        self.fails, self.start_fails = fails, start_fails
        self.removed = False

    def reload(self):
        if self.fails:
            raise self.fails

    def events(self, *, since, until, decode):
        self.between = (float(since), float(until))
        if isinstance(self.happened, Exception):
            raise self.happened
        return iter(self.happened)

    def start(self):
        if self.start_fails:
            raise self.start_fails

    def logs(self, **_):
        return b"line 1\nline 2\n"

    def remove(self, **_):
        self.removed = True

    def kill(self):
        raise DockerException("gone")


def state(**more):
    return {
        "Running": False, "Status": "exited", "ExitCode": 0, "OOMKilled": False, "Error": "",
        "FinishedAt": "2026-11-22T10:00:09.987654321Z", **more,
    }  # fmt: skip


def event(action, *, of="c1", **attributes):
    return {"Type": "container", "Action": action, "Actor": {"ID": of, "Attributes": attributes}}


@pytest.mark.parametrize("code", [143, 137])
@pytest.mark.parametrize(
    ("events", "infra"),
    [
        ([event("start"), event("die")], ""),
        ([event("start"), event("kill", signal="15"), event("die")], "was told to end the container"),
        ([event("kill", signal="15"), event("die")], "was told to end the container"),
        ([event("start"), event("kill", signal="9"), event("die")], ""),
        ([event("start"), event("kill", signal="15", of="c2"), event("start", of="c2")], ""),
        ([event("start", of="c2")], "was started anew"),
        ([], "was started anew"),
        ([event("exec_die", of="c2")] * EVENTS_KEPT, ""),
        (RequestsConnectionError("refused"), "went away"),
    ],
    ids=[
        "itself",
        "shut down",
        "restarted after a kill",
        "killed by a person",
        "another one",
        "restarted",
        "restarted, alone",
        "too much happened to know",
        "gone",
    ],
)
def test_an_engine_that_ends_its_containers_is_told_from_a_test_that_ends_itself(job, events, infra, code):
    container = FakeContainer(state(ExitCode=code), events=events)
    found = ContainerRun(container, job).poll()
    assert infra in found.infra
    assert bool(found.infra) == bool(infra)
    assert found.code == (None if infra else code)
    began, ended = container.between
    assert began <= 1795341600.123 < 1795341609.987 < ended < 1795341612


@pytest.mark.parametrize("ended", [{"ExitCode": 139}, {"ExitCode": 1}, {"ExitCode": 137, "OOMKilled": True}])
def test_the_engine_is_asked_nothing_of_other_endings(job, ended):
    container = FakeContainer(state(**ended), events=RequestsConnectionError("refused"))
    assert ContainerRun(container, job).poll().infra == ""


@pytest.mark.parametrize(
    ("ended", "code", "signal", "memory"),
    [
        (state(), 0, None, False),
        (state(ExitCode=1), 1, None, False),
        (state(ExitCode=137), 137, 9, False),
        (state(ExitCode=137, OOMKilled=True), 137, 9, True),
        (state(ExitCode=139), 139, 11, False),
    ],
)
def test_how_a_trial_ended(job, ended, code, signal, memory):
    with ContainerRun(FakeContainer(ended), job) as running:
        found = running.poll()
    assert (found.code, found.signal, found.out_of_memory, found.infra) == (code, signal, memory, "")
    assert found.detail == "line 1\nline 2"
    assert (job.records / "output.log").read_text() == "line 1\nline 2\n"


@pytest.mark.parametrize(
    ("fails", "text"),
    [(NotFound("no such container"), "was removed"), (DockerException("refused"), "went away: refused")],
)
def test_an_engine_that_fails_is_infrastructure(job, fails, text):
    container = FakeContainer(state(), fails=fails)
    with ContainerRun(container, job) as running:
        running.kill()
        assert text in running.poll().infra
    assert container.removed


class FakeClient:
    """An engine that makes one container, or refuses."""

    def __init__(self, container=None, image=True):
        self.images = self.containers = self
        self.container, self.image = container, image

    def info(self):
        return {"Runtimes": {"nvidia": {}}, "SecurityOptions": []}

    def get(self, name):
        if not self.image:
            raise ImageNotFound(name)

    def create(self, **_):
        return self.container

    def ping(self):
        return True


def start(job, tmp_path, client, mode, index):
    prepared = Prepared(cell=CPU, handle="repro-cell:1", digest="d", built=False, seconds=0)
    engine = DockerEngine(tmp_path / "state", mode, client=client, host=GpuHost(dev=tmp_path))
    return engine.start(prepared, Job(**{**vars(job), "gpu": index}))


def test_a_refused_gpu_names_the_fix_and_leaves_no_container(job, tmp_path):
    refusal = APIError("500", explanation='could not select device driver "" with capabilities: [[gpu]]')
    container = FakeContainer(start_fails=refusal)
    with pytest.raises(NotReadyError) as caught:
        start(job, tmp_path, FakeClient(container), GpuMode.TOOLKIT, 0)
    assert container.removed
    assert caught.value.what == (
        'the engine refused the GPU (toolkit): could not select device driver "" with capabilities: [[gpu]]'
    )
    assert "nvidia-ctk runtime configure" in caught.value.next_step
    assert "--gpu devices" in caught.value.next_step


def test_an_image_that_is_gone(job, tmp_path):
    with pytest.raises(NotReadyError, match="the image repro-cell:1 is gone"):
        start(job, tmp_path, FakeClient(image=False), GpuMode.NONE, None)


def test_the_request_has_the_paths_that_the_container_sees(job, tmp_path):
    container = FakeContainer(state())
    with start(job, tmp_path, FakeClient(container), GpuMode.NONE, None):
        request = json.loads((job.records / "request.json").read_text())
    assert request == {
        "seed": 1, "root": "/subject", "records": "/records", "test_file": "/extra/test_own.py",
        "python_path": ["/subject"], "inputs": None,
    }  # fmt: skip


def test_a_kit_is_told_from_a_later_process_of_the_same_number():
    labels = kit_labels()
    assert kit_lives(labels)
    started = next(name for name in labels if name.endswith(".started"))
    assert not kit_lives({**labels, started: "1"})
    host = next(name for name in labels if name.endswith(".host"))
    assert kit_lives({**labels, started: "1", host: "another machine"})
