# SPDX-License-Identifier: MIT
"""The configuration of flux-security that lets guests' jobs run as their users.

Sources: flux-config-security-sign(5), flux-config-security-imp(5).
"""

from __future__ import annotations

from typing import Any

# Two weeks, the value that flux-config-security-sign(5) recommends.
_MAX_TTL_S = 1209600


def sign_tables() -> dict[str, Any]:
    """Return the tables that say how users sign jobs and which signatures are accepted.

    A job that waits longer than `max-ttl`, in seconds, does not start. The type "none"
    is not allowed: with it, each user could submit jobs as any other user.
    """
    return {
        "sign": {
            "max-ttl": _MAX_TTL_S,
            "default-type": "munge",
            "allowed-types": ["munge"],
        }
    }


def imp_tables(user: str, shell: str) -> dict[str, Any]:
    """Return the tables that say who may use the IMP, and which shell it may start.

    `user` is the owner of the brokers, and `shell` the path of the job shell. The IMP
    starts the shell as other users.
    """
    return {"exec": {"allowed-users": [user], "allowed-shells": [shell]}}
