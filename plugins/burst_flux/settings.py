# SPDX-License-Identifier: MIT
"""The keys of `[providers.NAME]` with `type = "flux"`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from burst.config import Seconds
from burst.kits.node_settings import NodeSettings

_LEAST_TIME_S = 120.0
# Options of flux-submit(1) that the provider sets, or that break a burst: a job with
# another name would not be found, and `--cc` makes several jobs.
_OURS = frozenset(
    (
        *("job-name", "time-limit", "dependency", "cwd", "env", "env-remove"),
        *("env-file", "rlimit", "input", "output", "error", "label-io", "signal"),
        *("nodes", "ntasks", "cores-per-task", "gpus-per-task", "exclusive", "cores"),
        *("tasks-per-node", "tasks-per-core", "gpus-per-node", "resources-shape"),
        *("resources-json", "taskmap", "queue", "cc", "bcc", "dry-run"),
        *("wait", "wait-event", "watch", "log", "log-stderr", "progress", "jps"),
        *("quiet", "list-plugins", "help"),
    )
)


class FluxSettings(NodeSettings, frozen=True, kw_only=True):
    """`[providers.NAME]` with `type = "flux"`."""

    uri: str
    """URI of the other instance: `local://PATH`, `ssh://HOST/PATH`, or what flux-uri(1)
    resolves with the daemon's FLUX_URI, such as a job id or `slurm:1234`. Change it
    only while no burst lives."""
    time: Seconds
    """Longest time limit of a job, from 2m. A burst lives at most a minute less than
    this, because its followers need that minute to leave. If its lease ends earlier,
    the limit of its job is the rest of the lease plus a minute."""
    queue: str = ""
    """Queue of the other instance; the instance's default if empty."""
    exclusive: bool = True
    """Whether a burst has its nodes to itself. If not, each follower has `cores` and
    `gpus` of a node, but nothing keeps it from using more."""
    options: tuple[str, ...] = ()
    """More options of flux-submit(1), such as `["--bank=physics",
    "--requires=bigmem"]`. Options that keys of this table or the provider set are
    refused."""

    retired: ClassVar[Mapping[str, str]] = {"bank": 'write it in options: "--bank=..."'}

    def __post_init__(self) -> None:
        """Check what the types cannot express. Raises ValueError."""
        super().__post_init__()
        if not self.uri:
            raise ValueError("uri: is empty")
        if "{{" in self.dir:
            raise ValueError(f"dir: {self.dir!r} is not an absolute path without {{{{")
        if not _LEAST_TIME_S <= self.time < math.inf:
            raise ValueError(f"time: {self.time} is less than 2m, or has no end")
        for option in self.options:
            if not option.startswith("--"):
                raise ValueError(f"options: {option!r} does not begin with --")
            if option.partition("=")[0].removeprefix("--") in _OURS:
                raise ValueError(
                    f"options: {option!r} is set by a key of this table, or by the"
                    " provider"
                )
