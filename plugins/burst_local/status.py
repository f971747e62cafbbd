# SPDX-License-Identifier: MIT
"""The status of a burst, from its directory and its processes."""

from __future__ import annotations

from burst.kits.join_errors import explain_log
from burst.model.burst import BurstId
from burst.provider import BurstStatus, FollowerStatus, Phase
from burst_local.burst_dirs import BurstDirectory
from burst_local.launch import how_it_ended
from burst_local.members import FollowerProcesses, Followers
from burst_local.processes import may_signal

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
