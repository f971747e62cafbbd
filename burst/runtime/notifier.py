# SPDX-License-Identifier: MIT
"""Has each notice told once by each sink that the settings name, over restarts, too.

The store has which notices were told. A notice is recorded after it was told. So if it
is on its way when the daemon dies, the next daemon tells it again, with the same id.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence

import msgspec

from burst import __version__, log
from burst.config import NotifySettings
from burst.config.notify import why_no_webhook
from burst.core.money.budget import Budgets
from burst.core.notices import Notice, Told, due_notices, find_notices, still_told
from burst.decode import from_json
from burst.errors import ConfigError
from burst.kits.secret_file import read_secret
from burst.runtime.notice_sender import (
    CommandSink,
    NoticeSender,
    NoticeSink,
    WebhookSink,
)
from burst.runtime.snapshot import Snapshot

TIMEOUT_S = 10.0
"""How long the program, or the post, may take. The daemon's ticks never wait for it."""
_AGAIN_AFTER_S = 600.0
"""Seconds until a notice that could not be told is tried again, if it lasts."""
_MOST = 20
"""How many notices may be on their way at a time: whoever gets thousands needs time."""
_LAST_S = 15.0
"""Seconds that the daemon's end waits for notices on their way."""
LEAD_LOST = "lead-lost"

_ToldBySink = dict[str, dict[str, Told]]


class Notifier:
    """Has due notices told. It lives as long as the process.

    Use from the daemon's thread.
    """

    def __init__(self, wake: Callable[[], None], first_pause: float = 1.0) -> None:
        """`wake` is called, on any thread, once a notice was told or failed."""
        self._wake = wake
        self._first_pause = first_pause
        self._senders: dict[str, NoticeSender] = {}
        self._told: _ToldBySink = {}
        self._stored: _ToldBySink = {}
        self._since: dict[str, float] = {}
        self._again: dict[tuple[str, str], float] = {}
        self._troubles: dict[str, str] = {}
        self._owner = ""
        self._lost: Notice | None = None
        """The last loss of the lead; kept in memory, as there is no store then."""

    def prepare(self, settings: NotifySettings) -> Callable[[], None]:
        """Read the files that the settings name; return a function to apply them.

        Raises ConfigError.
        """
        sinks = read_sinks(settings)

        def commit() -> None:
            for name, sender in list(self._senders.items()):
                if sinks.get(name) != sender.sink:
                    del self._senders[name]
                    self._troubles.pop(name, None)
                    sender.close()
            for name, sink in sinks.items():
                if name not in self._senders:
                    sender = NoticeSender(sink, self._wake, self._first_pause)
                    self._senders[name] = sender
            self._again = {}

        return commit

    def restore(self, text: str | None) -> None:
        """Load which notices an earlier daemon has told; None for none."""
        try:
            self._told = from_json(text or "{}", _ToldBySink)
        except msgspec.MsgspecError as error:
            text = (
                "cannot read which notices were sent; those that last are sent again:"
                " %s"
            )
            log.warn(text, error)
            self._told = {}
        self._stored = {name: dict(told) for name, told in self._told.items()}

    def tick(self, snapshot: Snapshot) -> str | None:
        """Have due notices told; return the text to be stored, None if nothing is new.

        This returns at once. Call `stored` once the store has the text.
        """
        if not self._senders and not self._told:
            return None
        now, world = snapshot.now, snapshot.world
        self._owner = world.identity.owner
        states = Budgets(snapshot.settings.budget, snapshot.records, world.userids, now)
        found = find_notices(
            snapshot.records,
            snapshot.orphans,
            states.states(),
            now,
            world.halt,
        )
        self._since = {name: self._since.get(name, now) for name in found}
        for sink in self._told.keys() - self._senders.keys():
            del self._told[sink]
        for name, sender in self._senders.items():
            self._collect(name, sender, found, now)
            told = still_told(self._told.get(name, {}), found, world, now)
            self._told[name] = told
            for notice in due_notices(found, told, self._since, now):
                self._send(name, sender, notice, now)
            self._forget_trouble(name, sender, found)
        self._told = {name: told for name, told in self._told.items() if told}
        if self._told == self._stored:
            return None
        return msgspec.json.encode(self._told).decode()

    def stored(self) -> None:
        """Note that the store has what `tick` returned."""
        self._stored = {name: dict(told) for name, told in self._told.items()}

    def lead_lost(self, why: str, bursts: Sequence[str], now: float) -> None:
        """Have a notice told that the lead was lost: once, until it is back.

        `bursts` are those that live.
        """
        if self._lost is not None:
            return
        live = f"live bursts: {', '.join(bursts)}; " if bursts else ""
        self._lost = Notice(
            id=LEAD_LOST,
            severity="critical",
            text=f"the daemon lost its lead: {why}",
            advice=f"{live}look at the lead's broker",
        )
        for sender in self._senders.values():
            sender.send(LEAD_LOST, self._body(self._lost, now))

    def lead_back(self) -> None:
        """Note that a lead is served again."""
        self._lost = None

    @property
    def troubles(self) -> Mapping[str, str]:
        """By key of `[notify]`: why the last notice could not be told."""
        return dict(self._troubles)

    def close(self) -> None:
        """End; wait a while for notices that are on their way."""
        for sender in self._senders.values():
            sender.close(_LAST_S if sender.pending else 0.0)
        self._senders = {}

    def _collect(
        self, name: str, sender: NoticeSender, found: Mapping[str, Notice], now: float
    ) -> None:
        for sent in sender.collect():
            before = self._troubles.get(name, "")
            if sent.why:
                self._again[name, sent.name] = now + _AGAIN_AFTER_S
                self._troubles[name] = sent.why
                if sent.why != before:
                    text = "notice %s could not be sent: %s; it is tried again"
                    log.warn(text, sent.name, sent.why)
                continue
            if self._troubles.pop(name, ""):
                log.say("notices are sent again by notify.%s", name)
            # If its condition is known to be over, `still_told` drops it again.
            kept = found[sent.name].kept_until if sent.name in found else 0.0
            self._told.setdefault(name, {})[sent.name] = Told(now, kept)

    def _forget_trouble(
        self, name: str, sender: NoticeSender, found: Mapping[str, Notice]
    ) -> None:
        """Forget why notices could not be told once all of these are over.

        No notice is left then that could show whether telling works again.
        """
        if self._troubles.get(name) and not sender.pending:
            self._again = {
                key: at
                for key, at in self._again.items()
                if key[0] != name or key[1] in found
            }
            if not any(key[0] == name for key in self._again):
                del self._troubles[name]
                log.say("what notify.%s could not report is over", name)

    def _send(
        self, name: str, sender: NoticeSender, notice: Notice, now: float
    ) -> None:
        waits = self._again.get((name, notice.id), 0.0) > now
        if notice.id in sender.pending or waits or len(sender.pending) >= _MOST:
            return
        sender.send(notice.id, self._body(notice, now))

    def _body(self, notice: Notice, now: float) -> bytes:
        """Return the JSON of a notice. Chat services show what is under `text`."""
        row = {
            "id": notice.id,
            "kind": notice.kind,
            "severity": notice.severity,
            "text": f"{notice.text}; {notice.advice}",
            "what": notice.text,
            "advice": notice.advice,
            "at": now,
            "since": self._since.get(notice.id, now),
            "owner": self._owner,
            "host": socket.gethostname(),
            "version": __version__,
        }
        return msgspec.json.encode(row) + b"\n"


def read_sinks(settings: NotifySettings) -> dict[str, NoticeSink]:
    """Return the sinks that the settings name, by key. Raises ConfigError."""
    sinks: dict[str, NoticeSink] = {}
    if settings.command:
        sinks["command"] = CommandSink(settings.command, TIMEOUT_S)
    url = settings.webhook
    if settings.webhook_is_file:
        key = "notify.webhook"
        url = read_secret(settings.webhook, key).decode()
        if why := why_no_webhook(url):
            raise ConfigError(f"{key}: {settings.webhook}: the URL in it {why}")
    if url:
        token = ""
        if settings.token_file:
            token = read_secret(settings.token_file, "notify.token_file").decode()
        sinks["webhook"] = WebhookSink(url, token, TIMEOUT_S)
    return sinks
