"""Make a base image from a Python of this machine, for hosts that reach no registry.

    base_from_host.py TAG --python /usr/bin/python3.12 [--whole] [--packages] [--docker docker]

The interpreter may belong to a virtual environment, where its packages are wanted.

Without --whole: that interpreter, its standard library, pip, a shell, and the shared objects they need; about
100 MB. With --whole: the machine's /usr too, so that gcc and headers are there for compiling kernels.
--packages keeps what is installed in the interpreter (a torch that could not be had again without a network).
The driver, CUDA toolkits, documentation, keys and passwords never go in.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

TOOLS = (
    "sh", "bash", "ls", "cat", "cp", "mv", "rm", "mkdir", "rmdir", "ln", "chmod", "touch", "env",
    "uname", "sleep", "head", "tail", "grep", "sed", "sort", "tr", "wc", "cut", "id", "test", "true",
    "false", "echo", "printf", "readlink", "dirname", "basename", "ldconfig", "which", "xargs", "find",
    "kill", "date", "mktemp", "expr", "pwd", "tee",
)  # fmt: skip
COMMON_LIBRARIES = (
    "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1",
    "libresolv.so.2", "libnss_files.so.2", "libnss_dns.so.2", "libstdc++.so.6", "libgcc_s.so.1",
    "libz.so.1", "libgomp.so.1",
)  # fmt: skip
LEFT_OUT = ("test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3", "site-packages", "dist-packages")
WHOLE = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
WHOLE_LEFT_OUT = (
    "usr/local/cuda*", "usr/local/nvidia", "usr/local/lib/docker", "usr/share/doc", "usr/share/man",
    "usr/share/icons", "usr/share/fonts", "usr/share/locale", "usr/src", "usr/games",
    "usr/lib/firmware", "usr/lib/modules", "lib/firmware", "lib/modules", "usr/lib/snapd",
    "usr/lib/jvm", "*/libcuda.so*", "*/libnvidia-*", "*/libcudadebugger.so*",
)  # fmt: skip
ETC = ("etc/alternatives", "etc/ld.so.conf", "etc/ld.so.conf.d", "etc/ssl/certs", "etc/nsswitch.conf")
LABEL = "LABEL io.github.repro-kit.step=host"  # `repro clean` knows it by that

PASSWD = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
GROUP = "root:x:0:\nnogroup:x:65534:\n"

_ASK = """
import sys, sysconfig
paths = map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))
print(sys.executable, sys.base_prefix, sys.prefix, *paths, sep="\\n")
"""


class Layout:
    """Where an interpreter keeps its parts."""

    def __init__(self, python: Path) -> None:
        asked = subprocess.run([python, "-I", "-c", _ASK], capture_output=True, text=True, check=True)
        lines = [Path(line) for line in asked.stdout.splitlines()]
        self.called, self.prefix, self.environment = lines[:3]  # `python` may be a script that calls another
        self.program = self.called.resolve()
        self.libraries = list(dict.fromkeys(lines[3:5]))
        self.packages = list(dict.fromkeys(lines[5:7]))

    @property
    def pip(self) -> list[Path]:
        """pip's own folders, wherever this interpreter keeps them."""
        ask = "import pip, pathlib; print(pathlib.Path(pip.__file__).parent)"
        asked = subprocess.run([self.program, "-I", "-c", ask], capture_output=True, text=True)
        folder = Path(asked.stdout.strip()) if asked.returncode == 0 else None
        return [folder, *folder.parent.glob("pip-*.dist-info")] if folder else []


class Image:
    """A tar stream of files under the names that they have here; folders are open to every user."""

    def __init__(self, stream: io.BufferedIOBase) -> None:
        self._tar = tarfile.open(fileobj=stream, mode="w|")  # noqa: SIM115 - closed by close()
        self._seen: set[str] = set()

    def close(self) -> None:
        self._tar.close()

    def folder(self, path: Path, mode: int = 0o755) -> None:
        """A folder and all above it, readable by everyone: a trial does not run as root."""
        for step in [*reversed(path.parents), path]:
            self._entry(step, tarfile.DIRTYPE, mode if step == path else 0o755)

    def link(self, path: Path, target: str) -> None:
        """A symbolic link."""
        self.folder(path.parent)
        self._entry(path, tarfile.SYMTYPE, 0o777, target=target)

    def text(self, path: Path, text: str) -> None:
        """A small file."""
        self.folder(path.parent)
        self._entry(path, tarfile.REGTYPE, 0o644, data=io.BytesIO(text.encode()), size=len(text.encode()))

    def file(self, path: Path, source: Path | None = None) -> None:
        """A file of this machine, links followed, under `path`."""
        source = (source or path).resolve()
        stat = source.stat()
        self.folder(path.parent)
        with source.open("rb") as data:
            mode = 0o755 if stat.st_mode & 0o111 else 0o644
            time = int(stat.st_mtime)  # bytecode is good as long as its source is as old as it says
            self._entry(path, tarfile.REGTYPE, mode, data=data, size=stat.st_size, time=time)

    def tree(self, top: Path, left_out: tuple[str, ...] = ()) -> None:
        """A folder with all in it, less the names in `left_out` and static libraries."""
        self.folder(top)
        for root, names, files in os.walk(top):
            names[:] = sorted(name for name in names if name not in left_out)
            for name in sorted(files):
                path = Path(root, name)
                if path.suffix != ".a" and path.exists():
                    self.file(path)

    def _entry(
        self,
        path: Path,
        kind: bytes,
        mode: int,
        *,
        target: str = "",
        data: object = None,
        size: int = 0,
        time: int = 0,
    ) -> None:
        name = str(path).strip("/")
        if not name or name in self._seen:
            return
        self._seen.add(name)
        info = tarfile.TarInfo(name)
        info.type, info.mode, info.linkname, info.size = kind, mode, target, size
        info.mtime = time
        self._tar.addfile(info, data)  # type: ignore[arg-type]


def merged_folders(image: Image) -> None:
    """The links at the root of a system whose /bin and /lib live in /usr."""
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        top = Path("/", name)
        if top.is_symlink():
            image.link(top, str(top.readlink()))


def shared_objects(paths: list[Path]) -> set[Path]:
    """What the loader would bring in for these programs and libraries."""
    found: set[Path] = set()
    for path in paths:
        listed = subprocess.run(["ldd", str(path)], capture_output=True, text=True).stdout
        for line in listed.splitlines():
            words = line.replace("=>", " ").split()
            found |= {canonical(Path(word)) for word in words if word.startswith("/")}
    return found


def canonical(path: Path) -> Path:
    """The same file by the real name of its folder: /lib/x.so is /usr/lib/x.so where /lib is a link."""
    return path.parent.resolve() / path.name


def minimal(image: Image, layout: Layout) -> None:
    """The interpreter, a shell, and what they load."""
    merged_folders(image)
    programs = [Path(found) for name in TOOLS if (found := shutil.which(name, path=SYSTEM_PATH))]
    elf = [layout.program, *programs]
    for library in layout.libraries:
        elf += library.glob("lib-dynload/*.so")
        image.tree(library, left_out=LEFT_OUT)
    for folder in layout.pip:
        image.tree(folder, left_out=("__pycache__",))
    objects = shared_objects(elf)
    homes = {path.parent for path in objects if path.name.startswith("libc.so")}
    objects |= {home / name for home in homes for name in COMMON_LIBRARIES if (home / name).exists()}
    for path in sorted(objects | {canonical(program) for program in programs}):
        image.file(path)
    interpreter(image, layout)


SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


def interpreter(image: Image, layout: Layout) -> None:
    """The program under its own name and under `python3` and `python`."""
    home = layout.prefix / "bin"
    image.file(home / layout.program.name, layout.program)
    for name in ("python3", "python"):
        if name != layout.program.name:
            image.link(home / name, layout.program.name)


def etc(image: Image) -> None:
    """Accounts of the image's own; of the machine's only how names and libraries are found."""
    image.text(Path("/etc/passwd"), PASSWD)
    image.text(Path("/etc/group"), GROUP)
    image.folder(Path("/tmp"), 0o1777)
    image.folder(Path("/root"))
    for name in ("/etc/nsswitch.conf", "/etc/debian_version", "/etc/os-release"):
        if Path(name).exists():
            image.file(Path(name))


def whole_command(layout: Layout, packages: bool, own: Path) -> list[str]:
    """A tar command for all of /usr, the interpreter, the C compiler where that lives elsewhere, and `own`.

    No path may come twice: the engine refuses such an archive.
    """
    folders = [name for name in (*WHOLE, *ETC) if Path("/", name).exists()]
    cc = Path(shutil.which("gcc") or "/usr/bin/gcc").resolve()
    for folder in dict.fromkeys((layout.prefix, layout.environment, cc.parent.parent)):
        if not folder.is_relative_to("/usr") and folder != Path("/"):
            folders.append(str(folder).strip("/"))
    left_out = list(WHOLE_LEFT_OUT)
    if not packages:
        for library in layout.packages:
            left_out += [
                str(path).strip("/") for path in library.glob("*") if not path.name.startswith("pip")
            ]
    return [
        *("tar", "--mode=u+rw,go+r,a+X", "--owner=0", "--group=0", "--ignore-failed-read"),
        *(f"--exclude={pattern}" for pattern in left_out),
        *("-c", "-C", "/", *folders, "-C", str(own), *own_files(own)),
    ]


def own_files(own: Path) -> list[str]:
    """What the image has of its own, folder by folder, so that none is named that the machine's part has."""
    return sorted(
        str(path.relative_to(own)) for path in own.rglob("*") if not path.is_dir() or not any(path.iterdir())
    )


def lay_out_own(own: Path, layout: Layout) -> Path:
    """Write the image's own accounts below `own`, and find or make the folder to put on PATH.

    That folder is the interpreter's own where `python3` means it there; else one with links to it.
    """
    for name, text in (("passwd", PASSWD), ("group", GROUP)):
        (own / "etc").mkdir(exist_ok=True)
        (own / "etc" / name).write_text(text)
    for name in ("tmp", "root"):
        (own / name).mkdir()
    home = layout.called.parent
    if (home / "python3").exists() and (home / "python3").resolve() == layout.program:
        return home
    links = own / "opt" / "python" / "bin"
    links.mkdir(parents=True)
    for name in ("python3", "python"):
        (links / name).symlink_to(layout.program)
    return Path("/opt/python/bin")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tag")
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--packages", action="store_true")
    parser.add_argument("--docker", default="docker")
    given = parser.parse_args()
    layout = Layout(given.python)
    if given.whole:
        sys.exit(whole(given.docker, given.tag, layout, given.packages))
    importing = start_import(given.docker, given.tag, layout.prefix / "bin")
    assert importing.stdin is not None
    image = Image(importing.stdin)  # type: ignore[arg-type]
    minimal(image, layout)
    etc(image)
    image.close()
    importing.stdin.close()
    sys.exit(importing.wait())


def start_import(docker: str, tag: str, home: Path, source: object = subprocess.PIPE) -> subprocess.Popen:
    """`docker import` with the interpreter's folder first on PATH."""
    path = f"PATH={home}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    command = [docker, "import", "-c", f"ENV {path}", "-c", "ENV LANG=C.UTF-8", "-c", LABEL, "-", tag]
    return subprocess.Popen(command, stdin=source)  # type: ignore[call-overload]


def whole(docker: str, tag: str, layout: Layout, packages: bool) -> int:
    """The machine's /usr and the interpreter by tar, with the few files that are the image's own."""
    with tempfile.TemporaryDirectory() as scratch:
        home = lay_out_own(Path(scratch), layout)
        command = whole_command(layout, packages, Path(scratch))
        packing = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        imported = start_import(docker, tag, home, packing.stdout).wait()
        if packing.stdout is not None:
            packing.stdout.close()
        packed = packing.wait()
    if imported == 0 and packed not in (0, 1):  # 1: a file changed while it was read, such as a log
        print(f"tar failed with status {packed}", file=sys.stderr)
        return packed
    return imported


if __name__ == "__main__":
    main()
