# SPDX-License-Identifier: MIT
"""The server begins once, and reads its token again."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from burst.config import HttpSettings
from burst.errors import ConfigError
from burst.http.service import HttpService
from burst.runtime.daemon_state import DaemonState
from burst.runtime.tally import Tally
from tests.http.clients import ask, bearer
from tests.support.ports import free_port

TOKEN, OTHER = "e" * 40, "f" * 40


@pytest.fixture
def service() -> Iterator[HttpService]:
    made = HttpService(DaemonState(Tally()))
    yield made
    made.close()


def write(path: Path, token: str) -> str:
    path.write_text(token)
    path.chmod(0o600)
    return str(path)


def can_read(port: int, token: str) -> bool:
    return ask(port, "/metrics", headers=bearer(token)).status == 200


def test_it_answers_from_the_commit_to_its_end(service: HttpService) -> None:
    service.prepare(HttpSettings())()
    assert service.port == 0
    service.prepare(HttpSettings(listen="127.0.0.1:0"))()
    port = service.port
    assert ask(port, "/healthz").status == 200
    service.close()
    assert service.port == 0
    with pytest.raises(ConnectionRefusedError):
        ask(port, "/healthz")


def test_one_that_was_never_committed_ends_too(service: HttpService) -> None:
    service.prepare(HttpSettings(listen="127.0.0.1:0"))
    port = service.port
    service.close()
    with pytest.raises(ConnectionRefusedError):
        ask(port, "/healthz")


def test_a_token_is_read_again(service: HttpService, tmp_path: Path) -> None:
    path = tmp_path / "token"
    settings = HttpSettings(listen="127.0.0.1:0", token_file=write(path, TOKEN))
    service.prepare(settings)()
    port = service.port
    assert can_read(port, TOKEN)
    write(path, OTHER)
    commit = service.prepare(settings)
    assert can_read(port, TOKEN)
    commit()
    assert service.port == port
    assert can_read(port, OTHER)
    assert not can_read(port, TOKEN)
    os.chmod(path, 0o644)
    with pytest.raises(ConfigError, match=r"http\.token_file: .*others may read it"):
        service.prepare(settings)
    assert can_read(port, OTHER)


def test_a_port_that_another_has_is_told(service: HttpService) -> None:
    port = free_port()
    with (
        socket.create_server(("127.0.0.2", port)),
        pytest.raises(ConfigError, match="in use"),
    ):
        service.prepare(HttpSettings(listen=f"127.0.0.2:{port}"))
    assert service.port == 0


def test_a_place_where_nothing_can_be_made_is_told(
    service: HttpService, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"http\.listen: unix:.*No such file"):
        service.prepare(HttpSettings(listen=f"unix:{tmp_path}/none/s"))
