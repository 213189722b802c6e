"""Texts that identify people and machines, wherever they stand: how each is found, and what is left of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_URL = r"(?P<url>\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s<>\"'`|\\)\]}]+)"
_UUID = r"(?P<uuid>\b(?:GPU|MIG)-(?:GPU-)?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?:/\d+)*)"
_TOKEN = (
    r"(?P<token>\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16}"
    r"|xox[abprs]-[\w-]{10,}|sk-[\w-]{20,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+)"
    r"|(?i:\b(?:bearer|token|password|passwd|secret|api[_-]?key)(?:\s*[=:]\s*|\s+(?=\S{16,}))[^\s,;\"'&]{6,}))"
)
_EMAIL = r"(?P<email>\b(?!git@)[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b)"
_PATH = (
    r"(?P<path>(?<!<path>)(?:(?<=-[A-Za-z])|(?<![\w./~&;-]))/(?:[\w.@%+=,~-]+/)+[\w.@%+=,~-]*"
    r"|(?<!<path>)(?<![\w./])/(?:home|Users|root)\b/?[\w.-]*)"
)
_HOME = r"(?P<home>(?<![\w/])~[\w.-]*/(?:[\w.@%+=,-]+/)*[\w.@%+=,-]*)"
_WINDOWS = r"(?P<windows>\b[A-Za-z]:\\\\?(?:[^\\\s\"'<>|]+\\\\?)*[^\\\s\"'<>|]*)"
PATTERN = re.compile("|".join((_URL, _UUID, _TOKEN, _EMAIL, _PATH, _HOME, _WINDOWS)))
"""All of them; the group that matched names the kind."""

_SUSPECTS = (
    "/",
    "@",
    "\\",
    "GPU-",
    "MIG-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "hf_",
    "glpat-",
    "sk-",
    "AKIA",
    "xox",
    "eyJ",
)
_WORDS = ("token", "passw", "secret", "bearer", "api")
"""What a text must hold for a pattern to match: a look for these is many times quicker than the pattern."""

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]*@")
_QUERY = re.compile(
    r"(?i)(?<=[?&;])((?:access_|private_|auth_|id_)?(?:token|key|sig|signature|secret|password|passwd|auth"
    r"|api[_-]?key|credential|x-amz-[a-z-]+))=[^&#]+"
)
_KEPT_TAIL = ("site-packages/", "dist-packages/")


def may_match(text: str) -> bool:
    """Whether a text may hold what `PATTERN` finds."""
    if any(mark in text for mark in _SUSPECTS):
        return True
    lower = text.lower()
    return any(word in lower for word in _WORDS)


def shorter_path(text: str, folder: str = "") -> str:
    """The last part of a path stays, and what follows `site-packages`; of a home folder nothing does."""
    text = text.removeprefix(folder)
    if folder and not text:
        return "<path>"
    for tail in _KEPT_TAIL:
        if tail in text:
            return f"<path>/{tail}{text.split(tail, 1)[1]}"
    parts = [part for part in text.split("/") if part]
    if not folder and (len(parts) < 2 or parts[:1] == ["root"]) and not text.startswith("~"):
        return "<path>" if len(parts) < 2 else f"<path>/{parts[-1]}"
    if not parts or (parts[0] in ("home", "Users") and len(parts) < 3):
        return "<path>"
    return f"<path>/{parts[-1]}" + ("/" if text.endswith("/") else "")


def _windows(text: str) -> str:
    last = text.rstrip("\\").rpartition("\\")[2]
    return f"<path>\\{last}" if "\\" in text.rstrip("\\") else text


def _url(text: str) -> str:
    if text.startswith("file:"):
        return "file://<path>"
    return _QUERY.sub(r"\1=<token>", _CREDENTIALS.sub("", text))


def _token(text: str) -> str:
    name = re.match(r"(?i)[a-z_-]+(?:\s*[=:]\s*|\s+)", text)
    return f"{name[0]}<token>" if name and not text.startswith(("sk-", "xox")) else "<token>"


REPLACE: Mapping[str, Callable[[str], str]] = {
    "url": _url,
    "uuid": lambda _: "<gpu-uuid>",
    "token": _token,
    "email": lambda _: "<e-mail>",
    "path": shorter_path,
    "home": shorter_path,
    "windows": _windows,
}
"""What is left of a match, by its kind."""
