# SPDX-License-Identifier: MIT
"""The methods of the service `burst` about ensembles; the instance owner's."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec

from burst.config import Settings
from burst.config.convert import convert
from burst.core.records import Records
from burst.core.tick import TickResult
from burst.core.world import World
from burst.errors import BurstError
from burst.lead import ServiceRequest
from burst.runtime.daemon_package import CarryOut, Method
from burst.runtime.service_answers import Row
from burst.runtime.service_requests import MAX_NAME, read_request
from burst.runtime.snapshot import Snapshot
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.config.supported import check_supported
from burst_ensemble.core import commands
from burst_ensemble.core.agent_report import TakenReport
from burst_ensemble.core.commands import NewEnsemble
from burst_ensemble.core.on_record import ensembles_of
from burst_ensemble.core.report import ensemble_row
from burst_ensemble.runtime.agent_reports import AgentReports
from burst_ensemble.runtime.algorithm_registry import load_algorithms
from burst_ensemble.runtime.read_file import providers_of_world

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

    def __init__(self, carry_out: CarryOut, reports: AgentReports) -> None:
        self._carry_out, self._reports = carry_out, reports
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
        new = NewEnsemble(spec=spec, userid=os.geteuid(), environment=asked.environment)

        def command(
            records: Records, world: World, _: Settings, now: float
        ) -> tuple[TickResult, Row]:
            made = commands.begin_ensemble(records, world, new, now)
            return made, self._row(made, world, spec.name, now)

        return self._carry_out(command)

    def _down(self, request: ServiceRequest, _: Snapshot) -> Row:
        asked = read_request(request, EnsembleRequest)
        why = asked.note or "ended by hand"

        def command(
            records: Records, world: World, _: Settings, now: float
        ) -> tuple[TickResult, Row]:
            made = commands.take_down_ensemble(records, asked.name, why, now)
            return made, self._row(made, world, asked.name, now)

        return self._carry_out(command)

    def _submit(self, request: ServiceRequest, _: Snapshot) -> Row:
        asked = read_request(request, EnsembleRequest)
        return self._change(
            asked.name,
            lambda records, _: commands.submit_jobs(
                records, asked.name, asked.member, asked.jobs, asked.count
            ),
        )

    def _resize(self, request: ServiceRequest, _: Snapshot) -> Row:
        asked = read_request(request, EnsembleRequest)
        return self._change(
            asked.name,
            lambda records, now: commands.resize_member(
                records, asked.name, asked.member, _nodes(records, asked), now
            ),
        )

    def _change(self, name: str, change: Callable[[Records, float], Records]) -> Row:
        def command(
            records: Records, world: World, _: Settings, now: float
        ) -> tuple[TickResult, Row]:
            made = commands.unchanged(change(records, now))
            return made, self._row(made, world, name, now)

        return self._carry_out(command)

    def _status(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        asked = read_request(request, EnsembleRequest)
        return ensembles_answer(snapshot, self._reports.current(), asked.name)

    def _row(self, made: TickResult, world: World, name: str, now: float) -> Row:
        told = self._reports.current()
        return ensemble_row(made.records, world, name, now, told)


def _nodes(records: Records, asked: EnsembleRequest) -> int:
    """Return how many nodes a member is asked to have; found within the tick, so that
    of two who ask for more each gets that.
    """
    state = ensembles_of(records).get(asked.name)
    kept = state.record.members.get(asked.member) if state else None
    return asked.nodes + (kept.nodes if kept and asked.more else 0)


def ensembles_answer(
    snapshot: Snapshot, told: Mapping[str, TakenReport], name: str = ""
) -> Row:
    """Return the ensembles that are on record, or the one of that name.

    `told` is what agents have reported last, by ENSEMBLE/MEMBER. Raises BurstError for
    an unknown name.
    """
    known = ensembles_of(snapshot.records)
    if name and name not in known:
        names = ", ".join(sorted(known)) or "none"
        raise BurstError(f"there is no ensemble {name}", f"known ones: {names}")
    order = sorted(known, key=lambda each: known[each].record.started)
    rows = [
        ensemble_row(snapshot.records, snapshot.world, each, snapshot.now, told)
        for each in ([name] if name else order)
    ]
    return {"ensembles": rows}


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
