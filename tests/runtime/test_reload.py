# SPDX-License-Identifier: MIT
"""A reload happens wholly or not at all, and whoever asked is told what came of it."""

import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from burst.config import Settings, parse
from burst.core.commands import take_down_burst
from burst.errors import BurstError, ConfigError, Refused, Unreadable
from burst.http.service import HttpService
from burst.lead import MayBurst, QueueListener
from burst.model.active_job import ActiveJob, QueuePicture
from burst.model.burst import State
from burst.model.job_record import RecordedEvent, RecordEvent
from burst.model.jobid import JobId
from burst.provider import Provider
from burst.runtime.daemon_state import DaemonState
from burst.runtime.engine_config import RELOAD_S
from burst.runtime.reload import SettingsReloader
from burst.runtime.session import DaemonProcess, Session
from burst.runtime.tally import Tally
from burst.testing import FakeCloud, FakeProvider, FakeSettings
from burst.wakeup import WakeUp
from tests.builders import NODE, whole
from tests.fakes import FakeLead
from tests.support.waiting import HANG_S, wait_until

QUICK = {"cadence": "0.2s"}


class Fakes(Session):
    """Its providers are those that the bench makes."""

    def __init__(self, bench: "Bench", *parts: Any) -> None:
        self.load = bench.load  # type: ignore[method-assign]
        super().__init__(*parts)


class QueueLead(FakeLead):
    """Shows all jobs, of which it has none, and has them recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.record: RecordEvent | None = None
        self.trouble: Unreadable | None = None
        """Raised once jobs are followed in another way."""

    def follow_queue(
        self,
        _listener: QueueListener | None,
        _may_burst: MayBurst | None = None,
        record: RecordEvent | None = None,
    ) -> None:
        self.record = record
        if self.trouble:
            raise self.trouble

    def queue_picture(self) -> QueuePicture:
        return QueuePicture()

    def active_job(self, _number: JobId) -> ActiveJob | None:
        return None

    def records_in(self, path: Path) -> None:
        """Wait until an event that it tells of now is in that file."""
        assert self.record is not None
        size = path.stat().st_size
        event = RecordedEvent(id=JobId(7), timestamp=time.time(), name="start")
        self.record(event)
        wait_until(lambda: path.stat().st_size > size, "the event to be recorded")


class Bench:
    """A session whose providers are fakes, and the file of its settings."""

    def __init__(
        self,
        *names: str,
        lead: FakeLead | None = None,
        reload_limit: float = RELOAD_S,
        **tables: object,
    ) -> None:
        self.tables = {"daemon": QUICK, **tables}
        self.site = {name: {"type": "fake"} for name in names or ("local",)}
        self.cloud = FakeCloud()
        self.made: list[str] = []
        self.failing: dict[str, BaseException] = {}
        self.stuck: dict[str, threading.Event] = {}
        self.lead = lead or FakeLead()
        self.wakeup = WakeUp()
        self.http = HttpService(DaemonState(Tally()))
        self.reloads = SettingsReloader(
            self.read,
            Path("site.toml"),
            self.wakeup,
            lambda settings: self.http.prepare(settings.http),
        )
        process = DaemonProcess(reload_limit=reload_limit)
        self.session = Fakes(
            self, self.lead, self.read(), self.wakeup, self.reloads.ask, process
        )
        self.http.prepare(self.session.settings.http)()
        self.session.start()

    def read(self) -> Settings:
        return parse({**self.tables, "providers": self.site}, "site.toml")

    def load(self, settings: Settings, owner: str) -> Mapping[str, Provider]:
        made = {}
        for name, table in settings.providers.items():
            if table.enabled:
                self.made.append(name)
                if name in self.stuck:
                    self.stuck[name].wait()
                if name in self.failing:
                    raise self.failing[name]
                known = FakeSettings(max_nodes=8, shape=NODE)
                made[name] = FakeProvider(name, known, owner, self.cloud)
        return made

    def tick(self, times: int = 1) -> None:
        for _ in range(times):
            self.reloads.tick(self.session)
            self.meet()
            self.session.tick(0.02)
            self.lead.schedule()

    def meet(self) -> None:
        hosts = {host: rank for rank, host in enumerate(self.lead.known.hosts)}
        self.lead.online |= {hosts[h] for h in self.cloud.followers() if h in hosts}

    def until(self, reached) -> None:
        ends = time.monotonic() + HANG_S
        while not reached():
            assert time.monotonic() < ends
            self.tick()

    def run_job(self):
        """Have a job of four nodes run on a burst; return its id."""
        job = self.lead.submit(whole(4))
        self.until(lambda: self.lead.running() == [job])
        return job

    def reload(self):
        future = self.reloads.ask()
        self.until(future.done)
        return future.result(0)

    def provider(self, name: str = "local") -> FakeProvider:
        found = self.session._config.providers[name]
        assert isinstance(found, FakeProvider)
        return found

    @property
    def bursts(self):
        return list(self.session.engine.snapshot.records.bursts.values())


@pytest.fixture
def bench():
    made: list[Bench] = []

    def make(*names, **tables):
        made.append(Bench(*names, **tables))
        return made[-1]

    yield make
    for one in made:
        for event in one.stuck.values():
            event.set()
        one.http.close()
        one.session.close()


def test_the_answer_is_what_changed(bench):
    one = bench()
    assert one.reload() == {"changed": [], "late": []}
    one.tables["limits"] = {"max_nodes": 3}
    one.site["other"] = {"type": "fake"}

    changed = ["limits.max_nodes", "providers.other"]
    assert one.reload() == {"changed": changed, "late": []}
    assert one.session.settings.limits.max_nodes == 3
    assert one.made == ["local", "other"]


def test_a_reload_whose_caller_gave_up_before_it_began_is_dropped(bench):
    one = bench()
    one.tables["limits"] = {"max_nodes": 3}
    assert one.reloads.ask().cancel()
    one.tick(20)
    assert one.session.settings.limits.max_nodes != 3
    asked = one.reloads.ask()
    one.until(lambda: one.reloads.time_left() is not None)
    assert not asked.cancel()
    one.until(asked.done)
    assert one.session.settings.limits.max_nodes == 3


def test_a_provider_with_other_settings_is_tried_again_at_once(bench):
    one = bench("local", "other", limits={"cooldown": "1h"})
    for name in ("local", "other"):
        one.provider(name).every_provision_error = Refused("no such key")
    one.lead.submit(whole(4))
    one.until(lambda: len(one.bursts) == 2)
    records = one.session.engine
    one.until(lambda: {"local", "other"} <= records.snapshot.records.health.keys())

    one.site["local"] = {"type": "fake", "provision": "1h"}
    one.reload()
    one.until(lambda: "local" not in records.snapshot.records.health)
    assert "other" in records.snapshot.records.health


def test_the_answer_to_a_bad_file_is_what_is_wrong_and_nothing_changes(bench):
    one = bench()
    before = one.session.settings
    one.tables["limits"] = {"max_node": 3}
    with pytest.raises(ConfigError, match="max_node"):
        one.reload()
    one.tables["limits"] = {"max_nodes": 3}
    one.tables["lead"] = {"slots": ["x-[0-1]"]}
    with pytest.raises(ConfigError, match=r"site\.toml: lead\.slots"):
        one.reload()
    one.tables["lead"] = {"uri": "local:///elsewhere"}
    with pytest.raises(ConfigError, match=r"a change of lead\.uri needs a restart"):
        one.reload()

    assert one.session.settings is before
    one.run_job()


@pytest.mark.parametrize("error", [ValueError("a bug"), SystemExit(2)])
def test_whatever_a_constructor_raises_spoils_the_reload_only(bench, error):
    one = bench()
    before = one.provider()
    one.site["bad"] = {"type": "fake"}
    one.failing["bad"] = error
    with pytest.raises(ConfigError, match=type(error).__name__):
        one.reload()

    assert one.provider() is before
    one.run_job()


def test_a_constructor_that_hangs_holds_up_nobody(bench):
    one = bench(reload_limit=0.5)
    one.site["slow"] = {"type": "fake"}
    one.stuck["slow"] = threading.Event()
    future = one.reloads.ask()
    one.run_job()
    one.until(future.done)

    with pytest.raises(ConfigError, match="were not made within 500ms"):
        future.result(0)


def test_a_provider_that_hangs_keeps_no_other_from_new_settings(bench):
    one = bench("good", "bad")
    one.tick(5)
    hung = one.provider("bad")
    hung.hang = one.stuck["hang"] = threading.Event()
    one.until(lambda: one.session._workers.busy("bad"))
    good = one.provider("good")
    one.tables["limits"] = {"max_nodes": 7}
    assert one.reload() == {"changed": ["limits.max_nodes"], "late": []}
    one.site["bad"] = {"type": "fake", "speed": 2}

    assert one.reload() == {"changed": ["providers.bad"], "late": ["bad"]}
    assert one.provider("good") is good
    new = one.provider("bad")
    assert new is not hung
    one.tick(20)
    # Two objects of one provider never work at the same time.
    assert new.calls == []
    calls = len(good.calls)
    hung.hang.set()
    one.until(lambda: bool(new.calls))
    assert len(good.calls) >= calls


def test_commands_on_their_way_and_what_is_known_go_over(bench):
    one = bench()
    one.run_job()
    views = one.session.engine.snapshot.world.providers["local"].offers
    (burst,) = one.bursts
    asked = one.session.engine.post(lambda tx: take_down_burst(tx, burst.id, "enough"))
    one.tables["deadlines"] = {"idle": "1h"}
    making = one.reloads.ask()
    one.until(making.done)
    one.tick()

    assert asked.result(0) is None
    assert one.session.engine.snapshot.world.providers["local"].offers is views
    assert one.bursts[0].state is State.DRAIN


def test_a_provider_with_live_bursts_cannot_be_left_out(bench):
    one = bench()
    one.run_job()
    one.site.clear()
    with pytest.raises(ConfigError, match="provider local has live bursts"):
        one.reload()


def test_who_waits_for_a_reload_is_told_when_the_daemon_stops(bench):
    one = bench()
    one.site["slow"] = {"type": "fake"}
    one.stuck["slow"] = threading.Event()
    first = one.reloads.ask()
    one.tick()
    second = one.reloads.ask()
    one.reloads.cancel()

    for future in (first, second):
        with pytest.raises(BurstError, match="not reloaded: the daemon is stopping"):
            future.result(0)
    assert one.reloads.time_left() is None


def test_a_reload_that_was_refused_puts_off_no_other(bench):
    """Nothing wakes the daemon for the other one, which may wait a cadence long."""
    one = bench()
    one.site["slow"] = {"type": "fake"}
    one.stuck["slow"] = threading.Event()
    one.failing["slow"] = Refused("no such account")
    first = one.reloads.ask()
    one.tick()
    second = one.reloads.ask()
    one.stuck.pop("slow").set()
    wait_until(one.reloads._reload.making.is_due, "the providers to fail")
    one.reloads.tick(one.session)
    with pytest.raises(BurstError, match="no such account"):
        first.result(0)
    assert second.running()
    assert one.reloads.time_left() is not None


def test_a_place_cannot_change_under_live_bursts(bench):
    one = bench()
    one.run_job()
    (burst,) = one.bursts
    assert burst.lease.place == "fake cloud"
    one.cloud, before = FakeCloud(name="elsewhere"), one.cloud
    one.site["local"] = {"type": "fake", "zone": "b"}
    with pytest.raises(ConfigError, match=f"{burst.id}: it was made in"):
        one.reload()
    one.site["local"] = {"type": "other"}
    one.cloud = before
    with pytest.raises(ConfigError, match="in fake cloud, and provider local is now"):
        one.reload()

    assert one.provider().cloud is before
    one.tick(20)
    assert one.bursts[0].state is State.ONLINE
    one.site["local"] = {"type": "fake", "zone": "a"}
    assert one.reload()["changed"] == ["providers.local"]


def answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_another_address_to_listen_at_needs_a_restart(bench):
    one = bench(http={"listen": "127.0.0.1:0"})
    one.tables["http"] = {"listen": "127.0.0.2:0"}
    one.tables["limits"] = {"max_nodes": 3}
    with pytest.raises(ConfigError, match=r"a change of http\.listen needs a restart"):
        one.reload()
    assert one.session.settings.limits.max_nodes == 0
    assert answers(one.http.port)
    del one.tables["http"]
    with pytest.raises(ConfigError, match=r"a change of http\.listen needs a restart"):
        one.reload()
    assert answers(one.http.port)


def test_a_file_that_cannot_be_written_refuses_the_reload_and_all_stays(
    bench, tmp_path
):
    lead = QueueLead()
    first, second = tmp_path / "jobs", tmp_path / "new" / "jobs"
    one = bench(lead=lead, daemon={**QUICK, "record": str(first)})
    one.tables["daemon"] = {**QUICK, "record": str(second)}
    one.tables["limits"] = {"max_nodes": 3}
    with pytest.raises(ConfigError, match=r"daemon\.record: .*new"):
        one.reload()
    assert one.session.settings.limits.max_nodes == 0
    lead.records_in(first)

    second.parent.mkdir()
    assert one.reload()["changed"] == ["daemon.record", "limits.max_nodes"]
    lead.records_in(second)


def test_jobs_that_take_long_to_be_read_again_do_not_refuse_the_reload(bench, tmp_path):
    lead = QueueLead()
    one = bench(lead=lead)
    lead.trouble = Unreadable("reading the journal of jobs: not done within 120s")
    file = tmp_path / "jobs"
    one.tables["daemon"] = {**QUICK, "record": str(file)}

    assert one.reload() == {"changed": ["daemon.record"], "late": []}
    assert one.session.settings.daemon.record == str(file)
    lead.records_in(file)
