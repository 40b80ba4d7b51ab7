"""Tests against a lab whose address is in FAIRLEAD_SERVER. The agent `server-1` serves jobs of kind dc there."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterator

import pytest

import fairlead


@pytest.fixture(scope="session")
def server() -> str:
    """The address of the lab."""
    address = os.environ.get("FAIRLEAD_SERVER", "")
    if not address:
        pytest.exit("FAIRLEAD_SERVER: missing; name a lab with an agent server-1 of kind dc", 2)
    return address.split(",")[0]


@pytest.fixture
def lab(server: str) -> Iterator[fairlead.Lab]:
    """A client of the lab."""
    with fairlead.Lab(server, account="python") as lab:
        yield lab


@pytest.fixture
def suite() -> str:
    """The name of a suite that no other test has."""
    return f"python-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def dead() -> Iterator[str]:
    """An address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
