# SPDX-License-Identifier: MIT
"""The daemon: connects to the lead, ticks, reloads, stops.

Its decisions are made in `burst.core`.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from burst import __version__, log
from burst.config import Settings
from burst.core.burst_actions import take_down
from burst.core.commands import held_jobs
from burst.core.records import Records, Transaction
from burst.core.report import burst_row
from burst.doctor.start_gate import require_reachable_address
from burst.errors import (
    BurstError,
    ConfigError,
    LeadError,
    LeadGone,
    NoDaemon,
    ServiceTaken,
    Unreadable,
)
from burst.http.service import HttpService
from burst.lead import Lead, OrderlyEnd, ServiceRequest
from burst.model.fsd import format_fsd
from burst.model.lead import LeadIdentity
from burst.runtime.bursts_left import RECONNECT_S, BurstsLeft
from burst.runtime.call_line import CallLines
from burst.runtime.connect import connect
from burst.runtime.daemon_state import AliveFile, DaemonState, Served, tell_ready
from burst.runtime.lead_watch import ADDRESS_S
from burst.runtime.notifier import Notifier
from burst.runtime.reload import SettingsReloader
from burst.runtime.retry import Retry
from burst.runtime.service_answers import describe_process
from burst.runtime.session import DaemonProcess, Session
from burst.runtime.tally import Tally
from burst.wakeup import WakeUp, on_signals

Connector = Callable[[str], Lead]


class Daemon:
    """One daemon of one lead. Call `run` in the main thread; signals stop it."""

    def __init__(
        self,
        read: Callable[[], Settings],
        path: Path | None,
        connector: Connector = connect,
        address_limit: float = ADDRESS_S,
        reconnect_limit: float = RECONNECT_S,
    ) -> None:
        """Read the settings; each reload calls `read` again.

        `path` is the file that `read` reads, None if it reads none. Raises ConfigError.
        """
        self._read = read
        self._settings = read()
        self._path = path
        self._connect, self._address_limit = connector, address_limit
        self._reconnect_limit = reconnect_limit
        # Signal handlers only use the wake-up and the flags below: none has a lock.
        self._wakeup = WakeUp()
        self._retry = Retry(self._wakeup, lambda: self._stopping)
        self._alive = AliveFile()
        self._tally = Tally()
        self._state = DaemonState(self._tally)
        self._http = HttpService(self._state)
        self._notifier = Notifier(self._wakeup.wake)
        self._lines = CallLines()
        self._left: BurstsLeft | None = None
        self._shut_down = False
        """Whether the lead that was lost last had announced its shutdown."""
        self._stopping = False
        self._stop_at_once = False
        self._leaving = False
        """Whether bursts of a lead that was lost for good are being deleted."""
        self._reloads = SettingsReloader(read, path, self._wakeup, self._prepare)

    def run(self) -> None:
        """Serve the lead until `stop` is called.

        Raises ServiceTaken, ConfigError, StoreError or LeadError if it cannot start,
        and LeadError if the lead is lost and cannot be reached again in time.
        """
        self._show_alive()
        try:
            self._prepare_first()
            self._run()
        except ConfigError as error:
            raise self._reloads.with_file(error) from error
        finally:
            self._lines.close()
            self._notifier.close()
            self._http.close()

    def _prepare(self, settings: Settings) -> Callable[[], None]:
        """Prepare the notifier and the HTTP service, which outlive a session.

        Return a function that changes both. Raises ConfigError.
        """
        tell = self._notifier.prepare(settings.notify)
        answer = self._http.prepare(settings.http)

        def commit() -> None:
            answer()
            tell()

        return commit

    def _prepare_first(self) -> None:
        try:
            self._prepare(self._settings)()
        except ConfigError:
            self._refuse_second()
            raise

    def _refuse_second(self) -> None:
        """Raise ServiceTaken if another daemon serves the lead: it has our port."""
        try:
            with closing(self._connect(self._settings.lead.uri)) as lead:
                lead.serve(_refuse, describe_process(0.0))
        except ServiceTaken:
            raise
        except BurstError:
            return  # whether one does cannot be known

    def _run(self) -> None:
        session = self._connect_first()
        while session is not None:
            self._serve(session)
            # The session knew all jobs, and is in reference cycles so old that the
            # garbage collector would not visit them soon.
            session = None
            gc.collect()
            if not self._stopping:
                session = self._reconnect()
            if session is None:
                self._leave_bursts()
            self._left = None

    def stop(self) -> None:
        """Make `run` return. A second call also ends the deletion of bursts.

        It is called by signal handlers, in the thread of `run`.
        """
        self._stop_at_once = self._stopping
        self._stopping = True
        self._wakeup.wake()
        if self._leaving and self._stop_at_once:
            self._leaving = False  # only once: what is left is told then
            raise KeyboardInterrupt  # out of a wait for a provider

    def reload(self) -> None:
        """Read the settings again before the next tick."""
        self._reloads.request_by_signal()

    def handle_signals(self) -> None:
        """Stop on SIGTERM and SIGINT, reload on SIGHUP. Call it in the main thread."""
        on_signals(self.stop, signal.SIGTERM, signal.SIGINT)
        on_signals(self.reload, signal.SIGHUP)

    def _connect_first(self) -> Session | None:
        """Connect for the first time; return None if told to stop meanwhile.

        Waits for `[deadlines] lead` while the lead cannot be reached. If the lead can
        be reached but is still starting, waits for it in any case. Raises LeadError.
        """
        limit = self._settings.deadlines.lead
        try:
            return self._retry.until(limit, self._connect_once, _may_come)
        except LeadError as error:
            if limit and _may_come(error):
                raise LeadError(
                    f"no lead was reached within {format_fsd(limit)}: {error}",
                    "deadlines.lead sets how long the daemon waits for it to start",
                ) from error
            if not isinstance(error, Unreadable) or isinstance(error, LeadGone):
                raise
            log.warn("%s", error)
        return self._reconnect()

    def _connect_once(self) -> Session | None:
        """Connect, and become the daemon of the lead; return None if told to stop."""
        self._show_alive()
        lead = self._connect(self._settings.lead.uri)
        session = None
        try:
            identity = lead.identity()
            if not self._await_address(identity):
                lead.close()
                return None
            session = self._make_session(lead)
            session.start()
            session.start_packages()
        except BaseException:
            if session:
                session.close()
            lead.close()
            raise
        return session

    def _make_session(self, lead: Lead) -> Session:
        try:
            path = str(self._path.absolute()) if self._path else ""
            return Session(
                lead,
                self._settings,
                self._wakeup,
                self._reloads.ask,
                DaemonProcess(path, self._tally, self._notifier, self._lines),
            )
        except ConfigError as error:
            raise self._reloads.with_file(error) from error

    def _serve(self, session: Session) -> None:
        """Tick until told to stop, or until the connection to the lead is lost."""
        self._notifier.lead_back()
        engine, why = session.engine, "the daemon is stopping"
        api = session.api
        self._state.serve(
            Served(lambda: engine.snapshot, api.holder(), api.answer, session.packages)
        )
        try:
            identity = session.lead.identity()
            log.say(
                "burst %s serves %s %s as %s",
                __version__,
                identity.kind,
                identity.uri,
                session.owner,
            )
            tell_ready()
            while not self._stopping and not (step := session.clock.step()):
                self._tick(session)
            if self._stopping:
                self._stop(session)
            else:
                # The next session reads the records again, and moves their times. The
                # lead may be lost before that.
                self._left = BurstsLeft.of(session, self._path)
                why = f"the system clock was set by {format_fsd(step)}"
                log.say("%s; the daemon starts again", why)
        except LeadGone as error:
            log.warn("%s", error)
            why = f"the lead was lost: {error}"
            self._left = left = BurstsLeft.of(session, self._path)
            lead = session.lead
            self._shut_down = isinstance(lead, OrderlyEnd) and lead.shuts_down()
            if not self._shut_down:
                left.say_lost()
            if not self._shut_down or left.bursts:
                names = [burst for _, burst in left.bursts]
                self._notifier.lead_lost(str(error), names, session.clock())
        finally:
            self._state.lose(why)
            self._reloads.cancel()
            session.close()
            session.lead.close()

    def _tick(self, session: Session, longest: float | None = None) -> None:
        self._reloads.tick(session)
        self._settings = session.settings
        self._show_alive()
        left = self._reloads.time_left()
        if left is not None:
            longest = left if longest is None else min(left, longest)
        session.tick(longest)

    def _stop(self, session: Session) -> None:
        """Stop as `[daemon] on_stop` says. Held jobs stay held (see burst release)."""
        if self._settings.daemon.on_stop == "reap":
            self._reap_all(session)
        records = session.engine.snapshot.records
        log.say(
            "stopped; live bursts: %d, held jobs: %d; all stay as they are",
            len(records.live),
            len(held_jobs(records)),
        )

    def _reap_all(self, session: Session) -> None:
        """Delete all bursts and wait until they are gone, or `stop` is called again.

        Ranks that were drained for that are undrained, as no daemon would do it later.
        """
        limit = self._settings.deadlines.reap
        ends = session.clock() + limit
        log.say("deleting all bursts, for at most %s", format_fsd(limit))
        session.engine.stop_provisioning()
        session.engine.post(take_down_all_bursts)
        try:
            self._tick(session, 0)
            while not self._stop_at_once and _has_work(session.engine.snapshot.records):
                if session.clock() > ends:
                    break
                self._tick(session, 1.0)
        finally:
            # Also if the lead stops meanwhile: lead and daemon often stop together.
            self._log_bursts_left(session)

    def _log_bursts_left(self, session: Session) -> None:
        """Log how to delete each burst that is still live."""
        snapshot = session.engine.snapshot
        for burst in snapshot.records.live:
            note = burst_row(burst, snapshot.world, snapshot.now)["note"]
            log.warn(
                "%s of provider %s is not down: it is in state %s%s; start the daemon"
                " again, or run-burst --down --provider %s --name %s",
                burst.id,
                burst.lease.provider,
                burst.state.value,
                f" ({note})" if note else "",
                burst.lease.provider,
                burst.lease.slot or burst.id,
            )

    def _reconnect(self) -> Session | None:
        """Connect again after the lead was lost; return None if told to stop meanwhile.

        Tries for RECONNECT_S, also while the broker accepts connections but does
        not answer all calls yet. Raises LeadError after that time. Raises LeadError at
        once if the lead was shut down: its followers end with it, and whoever starts it
        again starts the daemon with it. Raises ServiceTaken if another daemon serves
        the lead by then, and ConfigError, StoreError or Denied if this one cannot.
        """
        if self._shut_down:
            self._leave_bursts()
            raise LeadError("the lead was shut down", "start the daemon with the lead")
        limit = self._reconnect_limit
        log.say("looking for the lead again, for at most %s", format_fsd(limit))
        connect = self._connect_once
        try:
            return self._retry.until(limit, connect, _may_come, told=False)
        except LeadError as error:
            if not _may_come(error):
                raise
            self._leave_bursts()
            raise LeadError(
                f"the lead did not come back within {format_fsd(limit)}: {error}",
                "start the daemon with the lead",
            ) from error
        except BurstError:
            # The lead is back, and its jobs may run on these bursts: none is deleted.
            if self._left is not None:
                self._left.say_commands()
            raise

    def _leave_bursts(self) -> None:
        """Take down the bursts of a lead that was lost for good, or log how to."""
        if self._left is None:
            return
        if self._stop_at_once:
            self._left.say_commands()
            return
        self._show_alive(self._settings.deadlines.reap)
        try:
            self._leaving = True
            self._left.end(self._lines)
            self._leaving = False
        except KeyboardInterrupt:
            self._left.say_commands()

    def _await_address(self, identity: LeadIdentity) -> bool:
        """Return True once followers could reach the lead at the configured address.

        No provider is called before. Returns False if told to stop meanwhile. Raises
        ConfigError after the time limit.
        """
        if not self._settings.lead.address:
            return True
        limit = self._address_limit
        settings = self._settings
        try:
            return bool(
                self._retry.until(limit, lambda: self._reach(identity, settings))
            )
        except BurstError as error:
            raise ConfigError(
                f"followers could not reach the lead within {format_fsd(limit)}:"
                f" {error}",
                "run `burst doctor` to check again",
            ) from error

    def _reach(self, identity: LeadIdentity, settings: Settings) -> bool:
        self._show_alive()
        return require_reachable_address(identity, settings)

    def _show_alive(self, busy_s: float = 0.0) -> None:
        """Show that the daemon is alive, and will not show it again for `busy_s`."""
        daemon = self._settings.daemon
        self._alive.touch(daemon.alive, busy_s)
        self._state.beat(max(busy_s, daemon.cadence))


def _refuse(_: ServiceRequest) -> dict[str, object]:
    raise NoDaemon("the daemon cannot start", "its log says why")


def _may_come(error: BurstError) -> bool:
    """Tell whether a later attempt to connect may succeed."""
    return isinstance(error, LeadError) and not isinstance(error, ServiceTaken)


def _has_work(records: Records) -> bool:
    """Tell whether there are bursts to delete, or ranks of bursts to undrain."""
    return any(burst.live or burst.drained for burst in records.bursts.values())


def take_down_all_bursts(tx: Transaction) -> None:
    """Delete every live burst; a command for `Engine.post`."""
    for burst in tx.live:
        take_down(tx, burst, "the daemon is stopping")
