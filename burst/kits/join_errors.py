# SPDX-License-Identifier: MIT
"""Reads from a follower's log why it does not join, and says what to do.

The lead logs only some of these errors. Only the follower's log reports that the lead
rejects its version or certificate, and, by messages of level debug, what happens to its
connection (`broker.flux_follower_argv`).

The lines are those of flux-core 0.88, src/broker and src/modules/overlay; a stand-in
for Flux also writes `mismatched config`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

# A pattern for a log line, and the message to report. The last line that matches is
# used.
_MESSAGES = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (
            r"Error loading certificate: (?P<why>.*)",
            "its certificate cannot be used: {why}; run `burst doctor`",
        ),
        (
            r"curve certificate: Operation not supported|curve cert.*not supported",
            "its ZeroMQ was built without CURVE, that is without libsodium: use an"
            " image, or a Flux, whose libzmq has it (there `flux keygen` works)",
        ),
        (
            r"client \((?P<ours>[^)]*)\) version mismatched with server"
            r" \((?P<leads>[^)]*)\)",
            "it runs Flux {ours}, and the lead runs {leads}: MAJOR.MINOR must be the"
            " same; set image or flux of the provider to the lead's version",
        ),
        (
            r"overlay\.hello: Invalid argument|mismatched config|not found in hosts",
            "its list of hosts is not the lead's: if the lead's configuration was"
            " changed after its start, restart the lead",
        ),
        (
            r"sd_bus_open_(?P<bus>user|system): (?!connected)(?P<why>.*)",
            "the lead has [systemd] enable, and it cannot connect to the {bus} bus of"
            " systemd ({why}): run loginctl enable-linger on its host for the owner of"
            " the instance",
        ),
        (
            r"(?P<unit>\S+\.service) needs cleanup - resources are offline",
            "the lead has [systemd] enable, and {unit}, of a job, runs on its host:"
            " Flux counts it as online once no such unit is left there",
        ),
        (
            r"unable to resolve upstream peer (?P<host>[^:\s]*)",
            "it cannot resolve the lead's host name {host}: set address under [lead]",
        ),
    )
)
# An event of the connection to the lead (zmq_socket_monitor(3)), as Flux logs it.
_EVENT = re.compile(
    r"parent sockevent (?P<peer>\S+) (?P<event>connect delayed|connect retried|closed"
    r"|connected|disconnected|handshake succeeded|handshake failed protocol"
    r"|handshake failed)(?P<detail>: .*)?"
)
_CERTIFICATE = (
    "the lead does not accept its certificate, as the lead was started with another:"
    " after `burst keygen --rotate` take the burst down; else put that one back, or"
    " restart the lead with this one (`burst doctor` checks whether the lead listens at"
    " that address; a proxy without a lead behind it looks the same)"
)
_NO_CURVE = (
    "what listens at {peer} speaks ZeroMQ without CURVE: it is not the lead, or one of"
    " the two has a ZeroMQ without libsodium; check port under [lead]"
)
_UNREACHED = (
    "it cannot connect to {peer}: nothing listens there, or a firewall or NetworkPolicy"
    " drops the connection: check address and port under [lead]; `burst doctor"
    " --provider NAME --probe` tries it from there"
)
_STRANGER = (
    "a program other than the lead listens at {peer}: check address and port under"
    " [lead]"
)
_MUTE = (
    "it is connected to {peer} and gets no answer: a program other than the lead"
    " listens there, or the lead hangs; check address and port under [lead]"
)
# Flux may not have read the last events: it reads them when there is one more.
_SILENT = (
    "it gets no answer from {peer}: a firewall or NetworkPolicy drops the connection,"
    " or a program other than the lead listens there; check address and port under"
    " [lead]"
)
_UNRESOLVED = "it cannot resolve the lead's host name {host}: set address under [lead]"
_WORDS = {
    "handshake succeeded": "",
    "handshake failed": _CERTIFICATE,
    "closed": _UNREACHED,
    "connected": _MUTE,
}
# It comes before all events. Flux may log none of them, as it reads events only when
# there is one more.
_CONNECTING = re.compile(r"overlay\S*: connecting to (?P<peer>\S+)")
# Events that begin another attempt to connect.
_ATTEMPTS = ("connect delayed", "connect retried")
# Events of an attempt that has not failed.
_GOES_ON = ("connected", "handshake succeeded")
# The lead's answer to a follower that it rejects.
_ANSWER = re.compile(r"overlay\.hello: ")
_JOINED = re.compile(r"\bparent-ready: |cleanup complete - resources are online")
# The prefixes of sd-daemon(3) for info and debug.
_CHATTER = re.compile(r"^<[67]>")
_PRIORITY = re.compile(r"^<[0-7]>")


def explain_log(log: str) -> str:
    """Return why the follower with this log does not join; empty if it is not known.

    `log` may be only the end of the log.
    """
    found = before = answer = ""
    answered = False  # by the lead, through the connection
    for line in log.splitlines():
        event = _EVENT.search(line)
        if event:
            # Flux may log the events of a connection after the answer that it brought.
            answered = answered and event["event"] not in _ATTEMPTS
            if answer and event["event"] in _GOES_ON:
                # A follower that was rejected connects again before it ends.
                found = answer
            elif not answered:
                found = _follow(found, before, event)
            before = event["event"]
        elif begun := _CONNECTING.search(line):
            answer = ""
            found = found or _SILENT.format(peer=begun["peer"])
        elif _JOINED.search(line):
            found = answer = ""
        elif explained := _explain_line(line):
            found = explained
            answered = bool(_ANSWER.search(line))
            answer = explained if answered else answer
    return found


def read_log(path: Path, most: int = 48 * 1024) -> str:
    """Return the end of a log file, `most` bytes of it; empty if there is none.

    Raises OSError.
    """
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - most))
            # At most `most` bytes, even if more is written meanwhile.
            return file.read(most).decode(errors="replace")
    except FileNotFoundError:
        return ""


def has_joined(log: str) -> bool:
    """Return whether the lead has accepted the follower with this log."""
    return bool(_JOINED.search(log))


def main_lines(log: str) -> list[str]:
    """Return the lines of a broker's log, except info and debug, without prefixes."""
    lines = (line.strip() for line in log.splitlines())
    return [_PRIORITY.sub("", line) for line in lines if not _CHATTER.match(line)]


def _explain_line(line: str) -> str:
    for pattern, words in _MESSAGES:
        match = pattern.search(line)
        if match:
            return words.format(**match.groupdict())
    return ""


def _follow(found: str, before: str, match: re.Match[str]) -> str:
    """Return the new reason after an event.

    `found` is the reason so far, and `before` is the previous event.
    """
    event, words = match["event"], found
    if event == "connected" and found == _CERTIFICATE:
        return found  # each attempt with a wrong certificate begins with this event
    if event == "connect delayed":
        words = found or _SILENT
    elif event == "disconnected" and before == "connected":
        words = _STRANGER  # a lead would have failed the handshake first
    elif event == before == "connect retried":
        words = _UNRESOLVED  # it did not even try to connect
    elif event == "handshake failed protocol":
        mechanism = "mechanism mismatch" in (match["detail"] or "")
        words = _NO_CURVE if mechanism else _CERTIFICATE
    elif event in _WORDS:
        words = _WORDS[event]
    host = urlsplit(match["peer"]).hostname
    return words.replace("{peer}", match["peer"]).replace("{host}", str(host))
