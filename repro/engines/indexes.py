"""Where packages come from: what the user told pip, in terms that uv and image builds understand too."""

from __future__ import annotations

import configparser
import os
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from pip._internal.models.index import PyPI

PYPI = PyPI.simple_url
"""The index that pip asks where nothing is configured, by its own word."""
PYTORCH = "https://download.pytorch.org/whl"
"""PyTorch's own index, one folder a build: `cpu`, `cu126` ..."""

PROBE_SECONDS = 4.0


@dataclass(frozen=True, kw_only=True)
class Indexes:
    """Package indexes and folders of wheels, in the order of preference.

    Args:
        default: the index that stands for PyPI.
        extra: further indexes; `file:` ones are folders in the layout of an index.
        find_links: folders or pages with wheels.
        cert: bundle of certificate authorities, or None for the system's.
        trusted: hosts whose certificate is not looked at.
        no_index: whether indexes are left aside and folders of wheels alone count.
    """

    default: str = PYPI
    extra: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    cert: Path | None = None
    trusted: tuple[str, ...] = ()
    no_index: bool = False

    @property
    def urls(self) -> tuple[str, ...]:
        """Every index, the default one last, as uv ranks them."""
        return () if self.no_index else (*self.extra, self.default)

    def only_reachable(self, more: Sequence[str] = ()) -> Indexes:
        """These indexes and `more`, less the ones that do not answer; uv would try each for seconds."""
        wanted = [*more, *self.urls]
        answers = dict(zip(wanted, reachable(wanted, self.cert), strict=True))
        kept = [url for url in wanted if answers[url] is None]
        if not kept:
            return Indexes(find_links=self.find_links, cert=self.cert, trusted=self.trusted, no_index=True)
        return Indexes(
            default=kept[-1],
            extra=tuple(kept[:-1]),
            find_links=self.find_links,
            cert=self.cert,
            trusted=self.trusted,
        )

    def uv_flags(self) -> list[str]:
        """Flags for uv's `pip` commands with pip's meaning: the best version anywhere wins."""
        flags = ["--index-strategy", "unsafe-best-match"]
        if self.no_index:
            flags = ["--no-index"]
        else:
            flags += ["--default-index", self.default]
            for url in self.extra:
                flags += ["--index", url]
        for place in self.find_links:
            flags += ["--find-links", place]
        for host in self.trusted:
            flags += ["--allow-insecure-host", host]
        return flags

    def environment(self) -> dict[str, str]:
        """Environment variables that uv needs besides the flags."""
        return {} if self.cert is None else {"SSL_CERT_FILE": str(self.cert)}


def configured(environment: Mapping[str, str] | None = None) -> Indexes:
    """What pip's configuration files and `PIP_*` variables say, as pip itself reads them."""
    env = os.environ if environment is None else environment
    options = _file_options(env)
    for name, value in env.items():
        if name.startswith("PIP_") and value:
            options[name[4:].lower().replace("_", "-")] = value
    cert = options.get("cert") or env.get("SSL_CERT_FILE") or env.get("REQUESTS_CA_BUNDLE")
    return Indexes(
        default=(options.get("index-url") or env.get("UV_DEFAULT_INDEX") or PYPI).rstrip("/"),
        extra=tuple(url.rstrip("/") for url in options.get("extra-index-url", "").split()),
        find_links=tuple(options.get("find-links", "").split()),
        cert=Path(cert) if cert and Path(cert).is_file() else None,
        trusted=tuple(options.get("trusted-host", "").split()),
        no_index=options.get("no-index", "").lower() in ("1", "true", "yes", "on"),
    )


def _file_options(env: Mapping[str, str]) -> dict[str, str]:
    """Options of pip's files; a later file wins over an earlier one, `[install]` over `[global]`."""
    if env.get("PIP_CONFIG_FILE") == os.devnull:
        return {}
    merged: dict[str, dict[str, str]] = {"global": {}, "install": {}}
    for path in _config_files(env):
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue
        for section, options in merged.items():
            if parser.has_section(section):
                options.update({name.replace("_", "-"): value for name, value in parser.items(section)})
    return {**merged["global"], **merged["install"]}


def _config_files(env: Mapping[str, str]) -> list[Path]:
    home = Path(env.get("HOME") or Path.home())
    folders = [Path(folder) for folder in env.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":") if folder]
    files = [folder / "pip" / "pip.conf" for folder in folders]
    files += [Path("/etc/pip.conf"), home / ".pip" / "pip.conf"]
    files.append(Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf")
    files.append(Path(sys.prefix) / "pip.conf")
    if env.get("PIP_CONFIG_FILE"):
        files.append(Path(env["PIP_CONFIG_FILE"]))
    return files


def reachable(urls: Sequence[str], cert: Path | None = None) -> list[str | None]:
    """For each index None where it answers, else why it does not; all are asked at the same time."""
    if not urls:
        return []
    with ThreadPoolExecutor(len(urls)) as pool:
        return list(pool.map(lambda url: _probe(url, cert), urls))


@lru_cache(maxsize=64)
def _probe(url: str, cert: Path | None) -> str | None:
    parts = urlsplit(url)
    if parts.scheme == "file":
        return None if Path(parts.path).is_dir() else "no such folder"
    context = ssl.create_default_context(cafile=str(cert) if cert else None)
    request = urllib.request.Request(without_password(url) + "/pip/", method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=PROBE_SECONDS, context=context):
            return None
    except urllib.error.HTTPError as error:
        error.close()
        return None if error.code < 500 else f"HTTP status {error.code}"
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error))


def without_password(url: str) -> str:
    """The address without the user and password that it may carry: fit for a message."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=host))
