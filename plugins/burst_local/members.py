# SPDX-License-Identifier: MIT
"""Finds the processes of each follower, by its files and /proc."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from burst.kits.private_dir import is_safe_name
from burst.model.host import is_host_name
from burst_local.burst_dirs import FollowerDirectory, ProviderDirectory
from burst_local.processes import Process, ProcessIdentity, may_signal


class FollowerProcesses(msgspec.Struct, frozen=True):
    """Living processes of one follower."""

    leader: Process | None
    """The broker, which leads the session; None if it is gone."""
    others: tuple[Process, ...]
    """The processes that it started, such as jobs."""

    @property
    def all(self) -> tuple[Process, ...]:
        """Leader and others."""
        return (self.leader, *self.others) if self.leader else self.others


Followers = Mapping[str, FollowerProcesses]
"""Followers by host; only those that have a living process."""


def find_members(
    processes: Mapping[int, Process], tags: Mapping[str, str], home: ProviderDirectory
) -> dict[str, Followers]:
    """Return the followers that have a living process, by burst id.

    A process belongs to a follower if it has our tags, which a follower has from its
    start, before its identity is written. It also does if it is in the session of a
    living follower or, once the follower has ended, if it has the number of that
    session and the follower's FLUX_URI. A later session may have the same number, and a
    user's shell the same FLUX_URI, so both are needed. For a process of another user,
    such as a guest's job that outlived its follower, the number is enough, because its
    environment cannot be read: it gets no signal, but while it runs the burst is not
    gone. After a reboot, or once another process has the number, nothing of that
    session is left.
    """
    tagged = _tagged(processes, tags)
    sessions: dict[int, list[Process]] = defaultdict(list)
    for process in processes.values():
        sessions[process.session].append(process)
    places: dict[tuple[str, str], FollowerDirectory] = {
        (burst.id, place.host): place
        for burst in home.bursts()
        for place in burst.followers()
    }
    found: dict[str, dict[str, FollowerProcesses]] = defaultdict(dict)
    for burst_id, host in sorted({*tagged, *places}):
        place = places.get((burst_id, host))
        members = _members(tagged.get((burst_id, host), []), place, sessions)
        if members.all:
            found[burst_id][host] = members
    return dict(found)


def _tagged(
    processes: Mapping[int, Process], tags: Mapping[str, str]
) -> dict[tuple[str, str], list[Process]]:
    found: dict[tuple[str, str], list[Process]] = defaultdict(list)
    for process in processes.values():
        environ = process.environ
        if tags.items() <= environ.items():
            burst_id = environ.get("BURST_ID", "")
            host = environ.get("BURST_HOST", "")
            if is_safe_name(burst_id) and is_host_name(host):
                found[burst_id, host].append(process)
    return found


def _members(
    tagged: list[Process],
    place: FollowerDirectory | None,
    sessions: Mapping[int, list[Process]],
) -> FollowerProcesses:
    identity = place.identity() if place else None
    if identity:
        session = sessions.get(identity.pid, [])
        leader = next((p for p in session if p.identity == identity), None)
        uri = f"local://{place.path}/local" if place else ""
        if leader is None:
            session = [
                p
                for p in _left_by(identity, session)
                if not may_signal(p) or p.environ.get("FLUX_URI") == uri
            ]
    else:
        # It was started and its identity not written, or its directory is gone. The
        # oldest session leader is the follower; jobs may lead other sessions.
        leaders = [p for p in tagged if p.pid == p.session]
        leader = min(leaders, key=lambda p: p.identity.start, default=None)
        session = sessions.get(leader.pid, []) if leader else []
    others = {p.pid: p for p in (*tagged, *session) if p is not leader}
    return FollowerProcesses(leader, tuple(others.values()))


def _left_by(leader: ProcessIdentity, session: Sequence[Process]) -> Sequence[Process]:
    """Return the session of that number if this process, which has ended, led it.

    Linux gives the number to no other process while one is in the session.
    """
    is_another = any(
        p.pid == leader.pid or p.identity.boot != leader.boot for p in session
    )
    return () if is_another else session
