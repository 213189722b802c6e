#!/usr/bin/env python3
"""Make a triton wheel small enough for a slow link; the image builds of this kit install the result.

    slim_wheel.py IN.whl OUT_FOLDER

Left out: profilers, disassemblers, the AMD backend's libraries, debug symbols. Kernels for NVIDIA GPUs
compile as before. Large files are packed with LZMA, which pip reads; the kit unpacks them for uv by itself.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

LEFT_OUT = (
    "triton/FileCheck",
    "triton/_C/libproton",
    "triton/backends/amd/lib/",
    "triton/backends/nvidia/bin/cuobjdump",
    "triton/backends/nvidia/bin/nvdisasm",
    "triton/backends/nvidia/lib/cupti/",
    "triton/instrumentation/",
    "triton/profiler/",
)
LARGE = 1 << 20


def slim(wheel: Path, folder: Path) -> Path:
    """Write a slim copy of a wheel, under the same name, and return its path."""
    target = folder / wheel.name
    if target.resolve() == wheel.resolve():
        sys.exit("the slim wheel keeps its name: choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(target, "w") as slimmed:
        record = next(name for name in source.namelist() if name.endswith(".dist-info/RECORD"))
        rows = [add(slimmed, name, data) for name, data in kept(source, record)]
        add(slimmed, record, record_text([*rows, (record, "", "")]))
    return target


def kept(source: zipfile.ZipFile, record: str) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files that stay, without debug symbols."""
    for name in source.namelist():
        if name == record or name.endswith("/") or any(part in name for part in LEFT_OUT):
            continue
        data = source.read(name)
        yield name, stripped(data) if name.endswith("/libtriton.so") else data


def stripped(library: bytes) -> bytes:
    """A shared library without the symbols that only debuggers read."""
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(library)
        file.flush()
        subprocess.run(["strip", "--strip-unneeded", file.name], check=True)
        return Path(file.name).read_bytes()


def add(archive: zipfile.ZipFile, name: str, data: bytes) -> tuple[str, str, str]:
    """Put a file into the wheel; its row for RECORD."""
    entry = zipfile.ZipInfo(name)
    program = "/bin/" in name or name.endswith(".so")  # ptxas must stay executable
    entry.external_attr = (0o100755 if program else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_LZMA if len(data) > LARGE else zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return name, f"sha256={digest}", str(len(data))


def record_text(rows: list[tuple[str, str, str]]) -> bytes:
    """RECORD: every file with its hash and size."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(slim(Path(sys.argv[1]), Path(sys.argv[2])))
