# SPDX-License-Identifier: MIT
"""The command provider: a site's own program begins, lists and ends bursts.

What exists is what the program lists. The provider keeps the files of a burst's
followers in the directory that the nodes share, and removes them last.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from burst.kits.job_provider import JobProvider
from burst.kits.job_tasks import JobTasks
from burst.kits.join_errors import explain_log, main_lines, read_log
from burst.model.finding import Finding, ok
from burst.provider import (
    BurstId,
    BurstSpec,
    BurstStatus,
    Failure,
    FollowerStatus,
    LeadIdentity,
    Phase,
    ProviderError,
    Transient,
)
from burst_command.check import BEAT_S, check
from burst_command.protocol import (
    LIMIT_S,
    BeginRequest,
    ListedBurst,
    Node,
    SiteProgram,
)
from burst_command.settings import CommandSettings

_CALL = "begin"
"""The file in a burst's directory that notes the process of its `begin`."""
_LOG_TAIL = 10_000
_LINES = 20


class CommandProvider(JobProvider[ListedBurst]):
    """Followers on nodes of the site's program. What it begins is called a job here."""

    Settings = CommandSettings
    unanswered = "run it with `list`, as the daemon's user"

    def __init__(
        self,
        name: str,
        settings: CommandSettings,
        owner: str,
        make_files: Callable[[Path], JobTasks] = JobTasks,
        *,
        limit: float = LIMIT_S,
    ) -> None:
        ends = settings.lifetime if math.isfinite(settings.lifetime) else 0.0
        super().__init__(name, settings, owner, ends, time.time)
        self._settings, self._name, self._owner = settings, name, owner
        self._make_files = make_files
        self._site = SiteProgram(settings, limit)
        self._offer = settings.offer(ends, settings.total)
        self._failed: dict[str, str] = {}
        """Why the last `begin` failed, by burst."""

    def place(self) -> str:
        """Return the directory, and the program that knows the nodes."""
        program = " ".join(self._settings.program)
        return f"{socket.gethostname()}:{self._settings.dir} {program}"

    def files(self, burst_id: str) -> JobTasks:
        """Return the files of a burst."""
        return self._make_files(self._home.path / burst_id)

    def list_jobs(self) -> Mapping[str, Sequence[ListedBurst]]:
        """Return what the program lists; it must list each burst only once."""
        ours = self.name_of("")
        return {
            name.removeprefix(ours): found
            for name, found in self._site.list().items()
            if name.startswith(ours)
        }

    def list_names(self) -> Iterable[str]:
        """Return the names of what the program lists, of all owners."""
        return [f"burst.{name}" for name in self._site.list()]

    def find_job(self, burst_id: BurstId) -> str | None:
        """Return an empty number if the program lists the burst, else None."""
        return "" if self._is_listed(burst_id) else None

    def submit(self, spec: BurstSpec, files: JobTasks, seconds: float) -> str:
        """Have the program begin a burst, unless it lists the burst already."""
        if self._is_listed(spec.burst_id):
            return ""
        asked = BeginRequest(
            name=self.name_of(spec.burst_id),
            hosts=spec.hosts,
            cores=self._settings.cores,
            gpus=self._settings.gpus,
            start=str(files.place / "start"),
            log=str(files.log),
            seconds=math.ceil(seconds) if math.isfinite(seconds) else 0,
            users=spec.userids,
            arguments=self._settings.arguments,
        )
        try:
            self._site.begin(asked, files.place / _CALL)
        except ProviderError as error:
            self._failed[spec.burst_id] = error.what
            raise
        return ""

    def end_jobs(self, burst_id: BurstId) -> bool:
        """Have the program end a burst that it lists; return whether it listed it."""
        listed = self._is_listed(burst_id)
        if listed:
            self.end(burst_id)
        else:
            self._failed.pop(burst_id, None)
        return listed

    def end(self, burst_id: str) -> None:
        """Have the program end a burst, whether it lists it or not."""
        self._site.end(self.name_of(burst_id))

    def examine_jobs(self, lead: LeadIdentity | None) -> Iterator[Finding]:
        """Check that the program can list bursts."""
        del lead
        count = len(self._site.list())
        yield ok(f"`{self._settings.program[0]} list` lists {count} bursts")

    def check(
        self,
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        beat: float = BEAT_S,
    ) -> Sequence[Finding]:
        """Try the rules for the program, on a burst that no lead knows."""

        def make(files: Callable[[Path], JobTasks]) -> CommandProvider:
            return CommandProvider(self._name, self._settings, self._owner, files)

        return check(make, self._settings, tell, clock, beat)

    def name_of(self, burst_id: str) -> str:
        """Return the burst's name for the program: `OWNER.PROVIDER.BURST`."""
        return f"{self._owner}.{self._name}.{burst_id}"

    def status(self, burst_id: BurstId, jobs: Sequence[ListedBurst]) -> BurstStatus:
        """Return the status by what the program lists and what the burst's log says."""
        if len(jobs) > 1:
            raise Transient(
                f"`{' '.join(self._settings.program)} list` printed {jobs[0].name}"
                " more than once"
            )
        files = self.files(burst_id)
        spec, said = files.spec(), read_log(files.log, _LOG_TAIL)
        seen = jobs[0] if jobs else self._unlisted(burst_id, files)
        phase = Phase(seen.state)
        last = "\n".join(main_lines(said)[-_LINES:]).strip()
        words = explain_log(said) or (last if phase is Phase.FAILED else "")
        return BurstStatus(
            burst_id=burst_id,
            phase=phase,
            followers=_followers(spec.hosts if spec else (), seen),
            why=": ".join(text for text in (seen.why, words) if text),
            failure=Failure(seen.cause or "other"),
        )

    def _is_listed(self, burst_id: str) -> bool:
        """Tell whether the program lists a burst.

        Raises Transient while a `begin` of an earlier daemon may be making it.
        """
        begins = self._site.still_begins(self.files(burst_id).place / _CALL)
        listed = burst_id in self.list_jobs()
        if begins and not listed:
            raise begins
        return listed

    def _unlisted(self, name: str, files: JobTasks) -> ListedBurst:
        """Return the state of a burst that has files but is not listed."""
        if files.submission() is not None:
            why = "the program does not list it any more"
            return ListedBurst(name=name, state="failed", why=why)
        words = ("`begin` has not succeeded yet", self._failed.get(name, ""))
        why = ": ".join(filter(None, words))
        return ListedBurst(name=name, state="pending", why=why)


def _followers(hosts: Sequence[str], seen: ListedBurst) -> tuple[FollowerStatus, ...]:
    alike = {host: Node(host=host, state=seen.state, why=seen.why) for host in hosts}
    others = {node.host: node for node in seen.nodes if node.host in alike}
    return tuple(
        FollowerStatus(n.host, Phase(n.state), n.why, n.reclaimed, n.lost)
        for n in {**alike, **others}.values()
    )
