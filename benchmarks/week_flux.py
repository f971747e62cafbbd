# SPDX-License-Identifier: MIT
"""Run the jobs of `week` on real Flux, with a daemon and the local provider."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks.table import Skipped
from benchmarks.week_jobs import LENT_NODES, RunResult, WeekJob
from tests.cli.cli_harness import CliHarness, open_harness
from tests.flux_instance import (
    FLUX,
    MISSING,
    FluxInstance,
    flux_bindings,
    flux_instance,
)
from tests.intake.modes import TABLES
from tests.intake.user_cli import UserCli

_LOOK_S = 1.0
# The price of a node for an hour, so that a node-second costs 1.
_PRICE = 3600.0
_OWN = frozenset({0, 1})
_LONGEST = 4.0
"""A run is given up after this multiple of the time in which its jobs come."""


@contextmanager
def site(
    mode: str, size: int, idle: str
) -> Iterator[tuple[FluxInstance, CliHarness, UserCli]]:
    """Yield an instance with one own node that is up, and a daemon beside it."""
    with flux_instance(TABLES[mode]) as instance, open_harness(instance) as cli:
        user = UserCli(instance)
        lent = [f"burst-{slot}-{node}" for slot in (0, 1) for node in range(4)]
        slots = [",".join(lent[n : n + size]) for n in range(0, LENT_NODES, size)]
        local = {**cli.options, "type": "local", "price": _PRICE}
        cli.write(
            providers={"local": local},
            lead={"slots": slots},
            intake={"mode": mode},
            deadlines={"idle": idle},
        )
        if mode == "scheduler":
            user.use_scheduler()
        with cli.daemon():
            yield instance, cli, user


def run_on_flux(jobs: Sequence[WeekJob], mode: str, size: int, idle: str) -> RunResult:
    """Submit the jobs at their times, and return the result.

    Raises Skipped without Flux.
    """
    if not FLUX:
        raise Skipped(MISSING)
    with site(mode, size, idle) as (instance, cli, user):
        bindings = flux_bindings()
        handle = bindings.Flux(instance.uri)
        specs = [_spec(user, nodes) for nodes in range(1, LENT_NODES + 1)]
        coming = list(reversed(jobs))
        submitted: dict[int, WeekJob] = {}
        bursts: dict[str, float] = {}
        began = time.time()
        ends = began + _LONGEST * max(jobs[-1].submitted, 60.0)
        looked = 0.0
        rows: list[Mapping[str, Any]] = []
        while time.time() < ends:
            while coming and began + coming[-1].submitted <= time.time():
                job = coming.pop()
                text = json.dumps(_with_duration(specs[job.nodes - 1], job.duration))
                submitted[int(bindings.job.submit(handle, text))] = job
            if time.time() - looked >= _LOOK_S:
                looked = time.time()
                status = cli.status()["bursts"]
                bursts |= {row["id"]: row["cost"] for row in status}
                rows = _rows(instance)
                ended = sum(row["state"] == _INACTIVE for row in rows)
                if not coming and ended == len(jobs):
                    break
            time.sleep(0.02)
        return _result(rows, submitted, bursts, began)


_INACTIVE = 64
"""Flux's number of the state INACTIVE (RFC 21)."""


def _rows(instance: FluxInstance) -> list[Mapping[str, Any]]:
    attributes = ["t_submit", "t_run", "t_cleanup", "ranks", "state"]
    asked = {"max_entries": 0, "attrs": attributes, "constraint": {}}
    found: list[Mapping[str, Any]] = instance.rpc("job-list.list", asked)["jobs"]
    return found


def _spec(user: UserCli, nodes: int) -> dict[str, Any]:
    words = ("submit", "--dry-run", "--setattr=burstable", f"-N{nodes}", "--exclusive")
    spec: dict[str, Any] = json.loads(user.do(*words, "sleep", "1"))
    return spec


def _with_duration(spec: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    (task,) = spec["tasks"]
    return {**spec, "tasks": [{**task, "command": ["sleep", f"{seconds:.3f}"]}]}


def _result(
    rows: Sequence[Mapping[str, Any]],
    submitted: Mapping[int, WeekJob],
    bursts: Mapping[str, float],
    began: float,
) -> RunResult:
    waits: dict[int, list[float]] = {}
    used = 0.0
    last = began
    for row in rows:
        if not row.get("t_run"):
            continue
        ranks = flux_bindings().idset.decode(row["ranks"])
        job = submitted[row["id"]]
        waits.setdefault(job.nodes, []).append(row["t_run"] - row["t_submit"])
        ended = row.get("t_cleanup") or time.time()
        used += (ended - row["t_run"]) * sum(rank not in _OWN for rank in ranks)
        last = max(last, ended)
    paid = sum(bursts.values())
    return RunResult(
        makespan=last - began,
        waits=waits,
        used=used,
        paid=paid,
        paid_at_end=paid,
        bursts=len(bursts),
        started=sum(map(len, waits.values())),
    )
