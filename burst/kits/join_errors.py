# SPDX-License-Identifier: MIT
"""What a follower's log says of why it does not join, in words and with what to do.

The lead itself logs some of this, and nothing of the rest; a follower turned down for
its version or its certificate is known only by what it wrote itself.
"""

from __future__ import annotations

import re

# What a line says, and what that means; of several lines the last decides. Those of
# Flux are of flux-core 0.88, src/broker; `mismatched config` burst.embedded says too.
_SAYINGS = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (
            r"handshake failed",
            "the lead does not accept its certificate: the lead was started with"
            " another; put that one back, or restart the lead with this one"
            " (burst doctor tells whether it is the lead that listens there)",
        ),
        (
            r"Error loading certificate: (?P<why>.*)",
            "its certificate cannot be used: {why}; burst doctor looks at it",
        ),
        (
            r"client \((?P<ours>[^)]*)\) version mismatched with server"
            r" \((?P<leads>[^)]*)\)",
            "it runs Flux {ours} and the lead {leads}; both need the same MAJOR.MINOR",
        ),
        (
            r"overlay\.hello: Invalid argument|mismatched config|not found in hosts",
            "its hosts are not those of the lead in the lead's order: was the lead's"
            " file changed since it was started? restart the lead",
        ),
        (
            r"unable to resolve upstream peer (?P<peer>[^:\s]*)",
            "it cannot resolve the lead's name {peer}; set address under [lead]",
        ),
    )
)


def explain_log(log: str) -> str:
    """Return why the follower that wrote this does not join; empty if it tells not."""
    for line in reversed(log.splitlines()):
        for pattern, words in _SAYINGS:
            match = pattern.search(line)
            if match:
                return words.format(**match.groupdict())
    return ""
