"""A connection to the container engine, at the address that the docker command would use."""

from __future__ import annotations

import os
from typing import Any

from docker.context import ContextAPI
from docker.errors import DockerException
from docker.utils import kwargs_from_env
from requests.exceptions import RequestException

import docker
from repro.errors import NotReadyError

ANSWER_SECONDS = 60
FAILURES = (DockerException, RequestException)
"""What docker-py raises when the engine refuses, or has gone away."""


def connect(timeout: float = ANSWER_SECONDS) -> docker.DockerClient:
    """A client for DOCKER_HOST or, where that is not set, for the current docker context.

    Raises:
        NotReadyError: no engine answers there.
    """
    try:
        client = docker.DockerClient(version="auto", timeout=int(timeout), **_address())
        client.ping()
    except FAILURES as error:
        raise no_engine(error) from None
    return client


def _address() -> dict[str, Any]:
    """Arguments for the client; docker-py's own `from_env` knows nothing of contexts."""
    if os.environ.get("DOCKER_HOST"):
        found = kwargs_from_env()
        return {"base_url": found["base_url"], "tls": found.get("tls", False)}
    name = os.environ.get("DOCKER_CONTEXT") or None
    context = ContextAPI.get_context(name) if name else ContextAPI.get_current_context()
    if context is None or not context.Host:
        return {"base_url": "unix:///var/run/docker.sock"}
    return {"base_url": context.Host, "tls": context.TLSConfig or False}


def address_text() -> str:
    """The engine's address, for messages."""
    try:
        return str(_address()["base_url"])
    except FAILURES:
        return "unknown"


def no_engine(error: Exception) -> NotReadyError:
    """The error for an engine that does not answer."""
    text = str(error)
    if "Permission denied" in text:
        return NotReadyError(
            f"the Docker engine at {address_text()} refuses this user",
            why="the user is not in the group that may use its socket",
            next_step="sudo usermod -aG docker $USER, then log in again; or use --engine venv",
        )
    return NotReadyError(
        f"no Docker engine answers at {address_text()}",
        why="it is not installed, or not running",
        next_step="start it (sudo systemctl start docker, or dockerd), or use --engine venv",
    )
