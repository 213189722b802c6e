"""pip's configuration, as uv and image builds are told of it."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from repro.engines import indexes
from repro.engines.images import _remote_only
from repro.engines.indexes import Indexes, configured, reachable, without_password


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user's home with a pip.conf; nothing of this machine's own configuration is read."""
    monkeypatch.setattr(indexes.sys, "prefix", str(tmp_path / "prefix"))
    files = indexes._config_files
    monkeypatch.setattr(
        indexes, "_config_files", lambda env: [f for f in files(env) if tmp_path in f.parents]
    )
    folder = tmp_path / "home" / ".config" / "pip"
    folder.mkdir(parents=True)
    return folder / "pip.conf"


def _within(files, folder):
    return [file for file in files if folder in file.parents]


def environment(home, **more):
    return {"HOME": str(home.parents[2]), "XDG_CONFIG_DIRS": "/nowhere", **more}


def test_nothing_configured_means_pypi(home):
    assert configured(environment(home)) == Indexes()


def test_files_and_variables_are_merged_as_pip_does(home, tmp_path):
    home.write_text(
        "[global]\nindex-url = https://mirror.example/simple/\nextra_index_url =\n  file:///a/simple\n"
        "  https://b.example/simple\nfind-links = /one\n"
        "[install]\nfind-links = /two\ntrusted-host = b.example\n"
    )
    cert = tmp_path / "ca.pem"
    cert.write_text("x")
    found = configured(environment(home, PIP_FIND_LINKS="/three /four", PIP_CERT=str(cert)))
    assert found.default == "https://mirror.example/simple"
    assert found.extra == ("file:///a/simple", "https://b.example/simple")
    assert found.find_links == ("/three", "/four")
    assert found.trusted == ("b.example",)
    assert found.environment() == {"SSL_CERT_FILE": str(cert)}


def test_a_file_named_by_the_user_wins_and_devnull_turns_files_off(home, tmp_path):
    home.write_text("[global]\nfind-links = /one\n")
    own = tmp_path / "own.conf"
    own.write_text("[global]\nfind-links = /own\n")
    assert configured(environment(home, PIP_CONFIG_FILE=str(own))).find_links == ("/own",)
    assert configured(environment(home, PIP_CONFIG_FILE="/dev/null")).find_links == ()


def test_a_broken_file_is_left_aside(home):
    home.write_text("no section\n")
    assert configured(environment(home)) == Indexes()


def test_flags_for_uv():
    given = Indexes(
        default="https://d/simple", extra=("https://e/simple",), find_links=("/w",), trusted=("e",)
    )
    assert given.uv_flags() == [
        *("--index-strategy", "unsafe-best-match", "--default-index", "https://d/simple"),
        *("--index", "https://e/simple", "--find-links", "/w", "--allow-insecure-host", "e"),
    ]
    assert Indexes(no_index=True, find_links=("/w",)).uv_flags() == ["--no-index", "--find-links", "/w"]


def test_a_build_sees_no_folder_of_this_machine():
    given = Indexes(
        default="https://d/simple", extra=("file:///a/simple",), find_links=("/w", "https://x/links")
    )
    seen = _remote_only(given)
    assert (seen.default, seen.extra, seen.find_links) == ("https://d/simple", (), ("https://x/links",))
    assert _remote_only(Indexes(default="file:///a/simple")).no_index


def test_indexes_that_do_not_answer_are_left_out(tmp_path):
    here = f"file://{tmp_path}"
    found = Indexes(default="http://127.0.0.1:9/simple", extra=(here,)).only_reachable(["file:///nowhere"])
    assert (found.default, found.extra, found.no_index) == (here, (), False)
    assert Indexes(default="http://127.0.0.1:9/simple").only_reachable().no_index


@pytest.mark.parametrize(("status", "answers"), [(200, True), (404, True), (401, True), (503, False)])
def test_any_answer_but_a_broken_server_counts(status, answers):
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        [why] = reachable([f"http://127.0.0.1:{server.server_port}/simple"])
        server.shutdown()
        thread.join()
    assert (why is None) == answers


def test_passwords_stay_out_of_messages():
    assert without_password("https://user:secret@host.example:8/simple") == "https://host.example:8/simple"
