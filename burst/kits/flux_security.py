# SPDX-License-Identifier: MIT
"""flux-security's configuration by which guests' jobs run as their users.

Sources: flux-config-security-sign(5), flux-config-security-imp(5).
"""

from __future__ import annotations

from typing import Any

# Two weeks, the value that flux-config-security-sign(5) recommends.
_MAX_TTL_S = 1209600


def sign_tables() -> dict[str, Any]:
    """Return how users sign their jobs, and whose signatures are accepted.

    A job that waited longer than `max-ttl`, in seconds, does not start. Not by "none":
    with it, each user could submit jobs as any other.
    """
    return {
        "sign": {
            "max-ttl": _MAX_TTL_S,
            "default-type": "munge",
            "allowed-types": ["munge"],
        }
    }


def imp_tables(user: str, shell: str) -> dict[str, Any]:
    """Return who may have the IMP start processes of other users, and which program.

    `user` is the owner of the brokers, and `shell` the path of the job shell.
    """
    return {"exec": {"allowed-users": [user], "allowed-shells": [shell]}}
