"""One build step, run by the image's own Python: `step.py base` or `step.py install`.

What to do lies beside it in order.json. Standard library alone; Python 3.9 and later.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

KIT = Path(__file__).resolve().parent
CACHE = Path("/var/cache/repro")
FOLDERS = ("kit", "subject", "records", "cache", "extra", "opt/repro")


def main() -> None:
    order = json.loads((KIT / "order.json").read_text())
    environment = dict(os.environ, **order["environment"])
    if (KIT / "ca.pem").exists():
        environment["SSL_CERT_FILE"] = str(KIT / "ca.pem")
    if sys.argv[1] == "base":
        base(order, environment)
    else:
        for batch in order["batches"]:
            install(batch, order, environment)


def base(order: dict, environment: dict) -> None:
    """Check the Python, bring a C compiler where kernels are compiled, make the folders of a trial."""
    found = "{}.{}".format(*sys.version_info)
    if found != order["python"]:
        wanted = order["python"]
        sys.exit(f"error: the base image has Python {found}, the cell asks for {wanted}")
    if order["compiler"]:
        compiler(environment)
    for name in FOLDERS:
        Path("/", name).mkdir(parents=True, exist_ok=True)
    Path("/tmp").mkdir(exist_ok=True)
    Path("/tmp").chmod(0o1777)


def compiler(environment: dict) -> None:
    """Triton compiles a launcher in C for each kernel: gcc and Python.h must be there."""
    if shutil.which("gcc") is None:
        if shutil.which("apt-get") is None:
            sys.exit("error: the base image has no gcc, and no apt-get to install it with")
        quiet = dict(environment, DEBIAN_FRONTEND="noninteractive")
        subprocess.run(["apt-get", "update", "-q"], check=True, env=quiet)
        packages = ["gcc", "libc6-dev"]
        subprocess.run(
            ["apt-get", "install", "-qy", "--no-install-recommends", *packages], check=True, env=quiet
        )
        shutil.rmtree("/var/lib/apt/lists", ignore_errors=True)
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.exists():
        sys.exit(f"error: the base image has no {header}, which Triton needs to compile kernels")


def install(batch: dict, order: dict, environment: dict) -> None:
    """Install exact pins with uv, without looking at what they depend on."""
    command = [str(KIT / "uv"), "pip", "install", "--python", sys.executable, "--no-deps", "--no-config"]
    command += ["--target", batch["target"]] if batch["target"] else ["--break-system-packages"]
    command += ["--cache-dir", str(CACHE)] if CACHE.exists() else ["--no-cache"]
    command += ["--compile-bytecode", "--link-mode", "copy", *order["uv_flags"]]
    command += [local(pin) for pin in batch["pins"]]
    print("$", " ".join(command), flush=True)
    code = subprocess.run(command, env=environment).returncode
    if code != 0:
        sys.exit(code)


def local(pin: str) -> str:
    """A pin as it is, or the path of a wheel that came with the context."""
    return str(KIT / pin) if pin.startswith("wheels/") else pin


if __name__ == "__main__":
    main()
