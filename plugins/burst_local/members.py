# SPDX-License-Identifier: MIT
"""Finds the processes of each follower, by its files and /proc, and tells the status of
a burst by them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from burst.kits.join_errors import explain_log
from burst.kits.private_dir import is_safe_name
from burst.model.burst import BurstId
from burst.model.host import is_host_name
from burst.provider import BurstStatus, FollowerStatus, Phase
from burst_local.burst_dirs import BurstDirectory, FollowerDirectory, ProviderDirectory
from burst_local.launch import how_it_ended
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


_JOINS_S = 4.0


def describe(
    place: BurstDirectory, followers: Followers, *, ending: bool
) -> BurstStatus:
    """Return the status of a burst that has a directory or a process."""
    if ending:
        return _ending(place.id, followers)
    spec = place.spec()
    if spec is None:
        return BurstStatus(
            burst_id=place.id,
            phase=Phase.PENDING,
            followers=tuple(
                _follower(place, host, members)
                for host, members in sorted(followers.items())
            ),
            why="its directory is not complete; provision or reap it again",
        )
    found = tuple(_follower(place, h, followers.get(h)) for h in spec.hosts)
    phases = {follower.phase for follower in found}
    phase = next(p for p in (Phase.FAILED, Phase.PENDING, Phase.RUNNING) if p in phases)
    alike = [follower for follower in found if follower.phase is phase]
    worst = next((follower for follower in alike if follower.why), alike[0])
    there = {*followers, *(follower.host for follower in place.followers())}
    leaving = tuple(
        FollowerStatus(host, Phase.ENDING, "ends, as the burst shrinks")
        for host in sorted(there.difference(spec.hosts))
    )
    return BurstStatus(
        burst_id=place.id,
        phase=phase,
        followers=(*found, *leaving),
        why=f"{worst.host} {worst.why}" if worst.why else "",
    )


def _ending(burst_id: BurstId, followers: Followers) -> BurstStatus:
    left = sum(len(members.all) for members in followers.values())
    return BurstStatus(
        burst_id=burst_id,
        phase=Phase.ENDING,
        followers=tuple(
            FollowerStatus(host, Phase.ENDING, f"{len(members.all)} processes left")
            for host, members in sorted(followers.items())
        ),
        why=left_over(followers) or f"{left} processes have not ended yet"
        if left
        else "",
    )


def left_over(followers: Followers) -> str:
    """Return advice if only processes of other users are left; else empty."""
    found = [process for members in followers.values() for process in members.all]
    if not found or any(map(may_signal, found)):
        return ""
    pids = " ".join(str(pid) for pid in sorted(process.pid for process in found))
    return f"a guest's job outlived its follower; as root: kill -9 {pids}"


def _follower(
    place: BurstDirectory, host: str, members: FollowerProcesses | None
) -> FollowerStatus:
    follower = place.follower(host)
    explained = explain_log(follower.log_end())
    if members and members.leader:
        # While a broker is joining, its log may say that the lead does not answer.
        late = members.leader.age > _JOINS_S
        return FollowerStatus(host, Phase.RUNNING, explained if late else "")
    identity = follower.identity()
    if identity is None and members is None:
        return FollowerStatus(host, Phase.PENDING, "is not started yet")
    ended = how_it_ended(follower, identity.pid) if identity else "is gone"
    words = follower.last_words() or "its log is empty"
    told = [ended, explained, words] if explained else [ended, words]
    return FollowerStatus(host, Phase.FAILED, ": ".join(told))
