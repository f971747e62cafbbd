# SPDX-License-Identifier: MIT
"""What the daemon waits for before it serves: the lead, and its address."""

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from burst_embedded.lead_client import connect
from click.testing import CliRunner

from burst.cli import group
from burst.config import LeadSettings, Settings, parse
from burst.daemon import Daemon
from burst.doctor.start_gate import require_reachable_address
from burst.errors import ConfigError, LeadError, LeadGone
from burst.flux.bindings import find_program
from burst.lead import Lead
from burst.runtime.connect import with_settings
from tests.builders import identity
from tests.embedded_instance import EmbeddedInstance, embedded_instance


@pytest.fixture(scope="module")
def instance() -> Iterator[EmbeddedInstance]:
    with embedded_instance() as instance:
        yield instance


@pytest.fixture
def closed() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def settings(**tables: Any) -> Settings:
    return parse(tables, "x")


class Door:
    """A lead that comes late, or never. At the last knock the daemon is stopped."""

    def __init__(self, tables: dict[str, Any], knocks: int) -> None:
        self.knocks = 0
        self._last = knocks
        self.daemon = Daemon(lambda: settings(**tables), None, self.open)

    def open(self, uri: str) -> Lead:
        self.knocks += 1
        if self.knocks == self._last:
            self.daemon.stop()
        raise LeadGone(f"{uri}: nobody there", "start it")


def test_without_a_deadline_the_lead_has_to_be_there() -> None:
    door = Door({"lead": {"uri": "local:///x"}}, 0)
    with pytest.raises(LeadGone, match="local:///x: nobody there; start it"):
        door.daemon.run()
    assert door.knocks == 1


def test_with_a_deadline_the_daemon_knocks_until_it_is_there() -> None:
    door = Door({"deadlines": {"lead": "1h"}}, 3)
    door.daemon.run()
    assert door.knocks == 3


def test_past_the_deadline_it_says_what_kept_it() -> None:
    door = Door({"deadlines": {"lead": "0.5s"}}, 0)
    told = r"within 500ms: .*nobody there.*deadlines\.lead"
    with pytest.raises(LeadError, match=told):
        door.daemon.run()


def test_nothing_begins_before_the_address_answers(
    instance: EmbeddedInstance, closed: int
) -> None:
    tables = {"lead": {"uri": instance.uri, "address": "127.0.0.1", "port": closed}}
    daemon = Daemon(lambda: settings(**tables), None, address_limit=0.5)
    with pytest.raises(ConfigError, match=f"{closed}: nothing listens there") as raised:
        daemon.run()
    assert "could not reach the lead within 500ms" in str(raised.value)
    assert "burst doctor" in raised.value.advice


def test_a_daemon_that_waits_for_the_address_can_be_stopped(
    instance: EmbeddedInstance, closed: int
) -> None:
    tables = {"lead": {"uri": instance.uri, "address": "127.0.0.1", "port": closed}}

    def open_and_stop(uri: str) -> Lead:
        lead = connect(uri)
        daemon.stop()
        return lead

    daemon = Daemon(lambda: settings(**tables), None, open_and_stop)
    daemon.run()


def test_an_address_of_others_may_be_out_of_reach_from_here(
    instance: EmbeddedInstance, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(connect(instance.uri)) as lead:
        own = settings(lead={"address": "127.0.0.1"})
        assert require_reachable_address(lead.identity(), own)
        assert not caplog.text
        other = settings(lead={"address": "no-such-host.invalid"})
        assert require_reachable_address(lead.identity(), other)
        assert "cannot be reached from here" in caplog.text


def test_an_address_that_the_cluster_knows_is_not_known_outside_of_a_pod() -> None:
    with pytest.raises(ConfigError, match="runs in no pod with a service account"):
        with_settings(identity(), LeadSettings(address="node"))


def test_beside_a_follower_the_daemon_has_nothing_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "2")
    config = tmp_path / "burst.toml"
    config.write_text("")
    done = CliRunner().invoke(group, ["daemon", "-c", str(config)])
    assert done.exit_code == 0, done.output
    assert "in pod 0" in done.stderr


def test_a_flux_that_a_pod_shares_is_found_where_there_is_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, view = tmp_path / "own", tmp_path / "view"
    for place in (own, view):
        place.mkdir()
        (place / "flux").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(own))
    assert find_program(str(view)) == str(own / "flux")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_program(str(view)) == str(view / "flux")
    assert find_program(str(tmp_path)) == ""
