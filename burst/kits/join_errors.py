# SPDX-License-Identifier: MIT
"""Reads from a follower's log why it does not join, and says what to do.

The lead logs only some of these errors. A version or a certificate that the lead
rejects is reported in the log of the follower alone.
"""

from __future__ import annotations

import re

# A pattern of a log line, and the message for it; the last line that matches decides.
# The lines are those of flux-core 0.88, src/broker; burst.embedded also writes
# `mismatched config`.
_MESSAGES = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (
            r"handshake failed",
            "the lead does not accept its certificate, as the lead was started with"
            " another: put that one back, or restart the lead with this one"
            " (`burst doctor` checks whether the lead listens at that address)",
        ),
        (
            r"Error loading certificate: (?P<why>.*)",
            "its certificate cannot be used: {why}; run `burst doctor`",
        ),
        (
            r"client \((?P<ours>[^)]*)\) version mismatched with server"
            r" \((?P<leads>[^)]*)\)",
            "it runs Flux {ours} and the lead {leads}, which must be the same"
            " MAJOR.MINOR: set image or flux of the provider to the lead's version",
        ),
        (
            r"overlay\.hello: Invalid argument|mismatched config|not found in hosts",
            "its list of hosts is not the lead's: if the lead's configuration was"
            " changed after its start, restart the lead",
        ),
        (
            r"unable to resolve upstream peer (?P<peer>[^:\s]*)",
            "it cannot resolve the lead's host name {peer}: set address under [lead]",
        ),
    )
)


def explain_log(log: str) -> str:
    """Return why the follower with this log does not join; empty if it is not known."""
    for line in reversed(log.splitlines()):
        for pattern, words in _MESSAGES:
            match = pattern.search(line)
            if match:
                return words.format(**match.groupdict())
    return ""
