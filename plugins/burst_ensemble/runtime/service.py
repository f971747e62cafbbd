# SPDX-License-Identifier: MIT
"""Run ensembles and answer requests about them, in the daemon or their own process.

Only the instance owner may call the methods.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any

import msgspec

from burst.config.convert import convert
from burst.core.tagged_nodes import TaggedNodes
from burst.errors import BurstError, NoDaemon, Unreadable
from burst.runtime.service_answers import Row
from burst.runtime.service_requests import MAX_NAME
from burst_ensemble.config.file import EnsembleFile
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core import commands
from burst_ensemble.core.controller import end_all
from burst_ensemble.core.record import (
    Ensemble,
    EnsembleRecord,
    EnsembleRecords,
    EnsembleStart,
)
from burst_ensemble.core.report import ensemble_row
from burst_ensemble.runtime.algorithms import Algorithms, load_algorithms
from burst_ensemble.runtime.client import DaemonClient, ExternalMembers, refuse_external
from burst_ensemble.runtime.ensembles import Ensembles, MakeAlgorithms
from burst_ensemble.runtime.store import EnsembleStore

_Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]


class EnsembleRequest(msgspec.Struct):
    """The payload of a request about ensembles; each method uses some of the fields."""

    name: _Name = ""
    member: _Name = ""
    jobs: _Name = ""
    """For `submit`: the name of an entry of `jobs` in the file."""
    count: int = 1
    """For `submit`: the number of jobs."""
    nodes: int = 0
    """For `resize`: the new size of the member."""
    note: str = ""
    """For `down`: the reason for the record; empty for a default."""
    tables: dict[str, Any] = {}
    """For `up`: the file, as `spec_tables` returns it."""
    environment: dict[str, str] = {}
    """For `up`: the environment variables of the jobs."""


_Change = Callable[[Ensemble, EnsembleRequest, float], EnsembleRecord]
_CHANGES: Mapping[str, _Change] = {
    "down": lambda one, asked, now: end_all(
        one.record, asked.note or "ended by hand", now
    ),
    "submit": lambda one, asked, _: commands.submit_jobs(
        one, asked.member, asked.jobs, asked.count
    ),
    "resize": lambda one, asked, now: commands.resize_member(
        one, asked.member, asked.nodes, now
    ),
}
"""The changes of an ensemble that a person may ask for; each may raise BurstError."""


class EnsembleService:
    """Answers requests about ensembles, on any thread; `ensembles` runs them."""

    def __init__(
        self,
        daemon: DaemonClient,
        external: ExternalMembers | None = None,
        load: MakeAlgorithms = load_algorithms,
    ) -> None:
        """`external` reads external members; without it they are refused."""
        self.external, self._load = external, load
        self.store = EnsembleStore(daemon.lead.shared_store())
        self._daemon = daemon
        self.ensembles = Ensembles(daemon, self._make, external, self.store)
        self.methods: Mapping[str, Callable[[EnsembleRequest], Row]] = {
            "ensemble-up": self._up,
            "ensemble-status": self._status,
            **{
                f"ensemble-{name}": partial(self._change_one, change)
                for name, change in _CHANGES.items()
            },
        }

    def answer(self, method: str, payload: Mapping[str, Any]) -> Row:
        """Answer a request. Raises BurstError; ConfigError for a malformed one."""
        found = self.methods.get(method)
        if found is None:
            raise BurstError(f"ensembles know no method {method[:MAX_NAME]}")
        asked = convert(EnsembleRequest, payload, method)
        return found(asked)

    def _make(self, file: EnsembleFile) -> Algorithms:
        """Return the algorithms of all members. Raises ConfigError."""
        if self.external is None:
            refuse_external(file.spec)
        return self._load(file)

    def _up(self, asked: EnsembleRequest) -> Row:
        spec = convert(EnsembleSpec, asked.tables, "ensemble")
        nodes = self._daemon.nodes()
        for member in spec.members:
            if not member.is_external and member.provider not in nodes.offers:
                raise BurstError(
                    f"member {member.name}: there is no provider {member.provider}",
                    f"the daemon has {', '.join(nodes.offers) or 'none'}",
                )
        start = EnsembleStart(
            spec=spec, userid=os.geteuid(), environment=asked.environment
        )
        after = self.ensembles.begin(EnsembleFile(spec), start, nodes)
        return self._row(after[spec.name], nodes)

    def _change_one(self, change: _Change, asked: EnsembleRequest) -> Row:
        nodes, now = self._told(), self._daemon.clock()

        def change_one(current: EnsembleRecords) -> EnsembleRecords:
            one = commands.find_ensemble(current, asked.name)
            changed = Ensemble(one.start, change(one, asked, now))
            return {**current, asked.name: changed}

        after = self.store.change(change_one)
        self.ensembles.make_due(asked.name)
        return self._row(after[asked.name], nodes)

    def _row(self, one: Ensemble, nodes: TaggedNodes) -> Row:
        external = {
            member.name: self.external.show(member)
            for member in one.members
            if member.spec.is_external and self.external is not None
        }
        return ensemble_row(one, nodes, external)

    def _told(self) -> TaggedNodes:
        """Return the daemon's bursts and jobs with tags; none while it does not answer.

        A change meanwhile is put on record, and done once a daemon serves again.
        """
        try:
            return self._daemon.nodes()
        except (NoDaemon, Unreadable):
            return TaggedNodes(now=self._daemon.clock(), is_read=False)

    def _status(self, asked: EnsembleRequest) -> Row:
        """Return all ensembles that are on record, or the one that is asked for."""
        nodes = self._told()
        known = self.store.read()
        shown = sorted(known.values(), key=lambda one: one.record.started)
        if asked.name:
            shown = [commands.find_ensemble(known, asked.name)]
        return {"ensembles": [self._row(one, nodes) for one in shown]}
