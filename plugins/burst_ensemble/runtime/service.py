# SPDX-License-Identifier: MIT
"""Ensembles in the daemon's process, and the methods of the service `burst` about them,
which are the instance owner's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec

from burst.config.convert import convert
from burst.errors import BurstError
from burst.lead import JobSubmitter, ServiceRequest
from burst.runtime.daemon_package import Method, PackageHost
from burst.runtime.service_answers import Row
from burst.runtime.service_requests import MAX_NAME, read_request
from burst.runtime.snapshot import Snapshot
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core import commands
from burst_ensemble.core.agent_report import TakenReport
from burst_ensemble.core.record import (
    EnsembleRecords,
    EnsembleStart,
    Seen,
    spec_tables,
)
from burst_ensemble.core.report import ensemble_row
from burst_ensemble.runtime.agent_reports import AgentReports
from burst_ensemble.runtime.algorithms import load_algorithms
from burst_ensemble.runtime.ensembles import Ensembles
from burst_ensemble.runtime.read_file import check_supported, providers_of_world
from burst_ensemble.runtime.store import EnsembleStore

_Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]


class EnsembleRequest(msgspec.Struct):
    """What requests about ensembles say."""

    name: _Name = ""
    member: _Name = ""
    jobs: _Name = ""
    """Of `submit`: which entry of `jobs` of the file."""
    count: int = 1
    """Of `submit`: how many."""
    nodes: int = 0
    """Of `resize`: how many it is to have, with `more` so many beyond those that it is
    to have already."""
    more: bool = False
    note: str = ""
    tables: dict[str, Any] = {}
    """The file, as `spec_tables` returns it."""
    environment: dict[str, str] = {}
    """Of its jobs."""


class EnsembleApi:
    """Answers requests about ensembles, on several threads."""

    def __init__(self, store: EnsembleStore, reports: AgentReports) -> None:
        self._store, self._reports = store, reports
        self.methods: Mapping[str, Method] = {
            "ensemble-up": self._up,
            "ensemble-down": self._down,
            "ensemble-status": self._status,
            "ensemble-submit": self._submit,
            "ensemble-resize": self._resize,
        }

    def _up(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        asked = read_request(request, EnsembleRequest)
        spec = convert(EnsembleSpec, asked.tables, "ensemble")
        _check(spec, snapshot)
        new = EnsembleStart(
            tables=spec_tables(spec), userid=os.geteuid(), environment=asked.environment
        )
        return self._change(
            spec.name, snapshot, lambda seen: commands.begin_ensemble(seen, new)
        )

    def _down(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        asked = read_request(request, EnsembleRequest)
        why = asked.note or "ended by hand"
        return self._change(
            asked.name,
            snapshot,
            lambda seen: commands.take_down_ensemble(
                seen.ensembles, asked.name, why, seen.now
            ),
        )

    def _submit(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        asked = read_request(request, EnsembleRequest)
        return self._change(
            asked.name,
            snapshot,
            lambda seen: commands.submit_jobs(
                seen.ensembles, asked.name, asked.member, asked.jobs, asked.count
            ),
        )

    def _resize(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        asked = read_request(request, EnsembleRequest)
        return self._change(
            asked.name,
            snapshot,
            lambda seen: commands.resize_member(
                seen.ensembles,
                asked.name,
                asked.member,
                _nodes(seen.ensembles, asked),
                seen.now,
            ),
        )

    def _change(
        self, name: str, snapshot: Snapshot, change: Callable[[Seen], EnsembleRecords]
    ) -> Row:
        """Change what is on record; return the ensemble as it is then."""
        seen = self._store.change_seeing(snapshot, self._reports.clock(), change)
        return ensemble_row(seen, name, self._reports.current())

    def _status(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        asked = read_request(request, EnsembleRequest)
        told = self._reports.current()
        return ensembles_answer(self._store, snapshot, told, asked.name)


def _nodes(ensembles: EnsembleRecords, asked: EnsembleRequest) -> int:
    """Return how many nodes a member is asked to have; found within the change, so that
    of two who ask for more each gets that.
    """
    state = ensembles.states.get(asked.name)
    kept = state.record.members.get(asked.member) if state else None
    return asked.nodes + (kept.nodes if kept and asked.more else 0)


def ensembles_answer(
    store: EnsembleStore,
    snapshot: Snapshot,
    told: Mapping[str, TakenReport],
    name: str = "",
) -> Row:
    """Return the ensembles that are on record, or the one of that name.

    `told` is what agents have reported last, by ENSEMBLE/MEMBER. Raises BurstError for
    an unknown name.
    """
    seen = Seen(store.read(), snapshot.records, snapshot.world, snapshot.now)
    known = seen.ensembles.states
    if name and name not in known:
        names = ", ".join(sorted(known)) or "none"
        raise BurstError(f"there is no ensemble {name}", f"known ones: {names}")
    order = sorted(known, key=lambda each: known[each].record.started)
    return {
        "ensembles": [
            ensemble_row(seen, each, told) for each in ([name] if name else order)
        ]
    }


def _check(spec: EnsembleSpec, snapshot: Snapshot) -> None:
    """Raise BurstError for what this daemon cannot run."""
    providers = snapshot.world.providers
    for member in spec.members:
        if not member.has_agent and member.provider not in providers:
            raise BurstError(
                f"member {member.name}: there is no provider {member.provider}",
                f"the daemon has {', '.join(providers) or 'none'}",
            )
    check_supported(spec, providers_of_world(snapshot.world).abilities)
    load_algorithms(spec)


NAME = "ensemble"
"""Of the entry point."""


class EnsemblePackage:
    """Runs ensembles beside the ticks of a daemon, and answers requests about them.

    At a lead to which no jobs can be submitted none runs.
    """

    def __init__(self, host: PackageHost) -> None:
        self.reports = AgentReports(host.clock)
        self.store = EnsembleStore(host.lead.shared_store())
        self._ensembles = (
            Ensembles(host, host.lead, load_algorithms, self.reports, self.store)
            if isinstance(host.lead, JobSubmitter)
            else None
        )

    def methods(self) -> Mapping[str, Method]:
        """Return the methods of the service."""
        return EnsembleApi(self.store, self.reports).methods

    def start(self) -> None:
        """Begin to run the ensembles on record, and those that are started later."""
        if self._ensembles is not None:
            self._ensembles.start()

    def close(self) -> None:
        """End once the step that is under way is done; wait for that for a moment."""
        if self._ensembles is not None:
            self._ensembles.close()
        self.store.close()
