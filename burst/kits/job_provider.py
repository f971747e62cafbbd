# SPDX-License-Identifier: MIT
"""A provider whose bursts are jobs: of a batch system, or of a program of the site.

It keeps the files of bursts (`burst.kits.job_tasks`); a subclass lists, submits and
cancels jobs. Each call asks the batch system or program which jobs exist, so after a
restart of the daemon nothing from its memory is missing.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Generic, NoReturn, Protocol, TypeVar

from burst.errors import NotFound, ProviderError
from burst.kits.examine_nodes import examine_lead, examine_shared_dir
from burst.kits.job_tasks import (
    JobTasks,
    check_spec,
    job_prefix,
    owned_bursts,
    time_limit,
)
from burst.kits.node_settings import OFFER, NodeSettings
from burst.kits.private_dir import PrivateDirectory, disk_errors, is_safe_name
from burst.model.finding import Finding, wrong
from burst.model.lead import LeadIdentity
from burst.provider import (
    BurstId,
    BurstSpec,
    BurstStatus,
    Offer,
    OwnedBurst,
    Provider,
)


class ListedJob(Protocol):
    """A job as it is listed."""

    @property
    def over(self) -> bool:
        """Whether the job has ended: nothing of it runs, or will run."""


Job = TypeVar("Job", bound=ListedJob)


class JobProvider(Provider, Generic[Job]):
    """A provider of followers in jobs, which are named `burst.OWNER.PROVIDER.BURST`."""

    task_rank: ClassVar[str] = ""
    """The environment variable that numbers the tasks of a job from 0; empty if
    followers are not tasks."""
    unanswered: ClassVar[str]
    """Advice for the case that the batch system or program does not answer."""

    def __init__(
        self,
        name: str,
        settings: NodeSettings,
        owner: str,
        lifetime: float,
        clock: Callable[[], float],
    ) -> None:
        """`lifetime`: the longest life of a burst in seconds; 0 for no limit.

        `clock` returns seconds since the epoch.
        """
        self._base = Path(settings.dir)
        self._home = PrivateDirectory(self._base, owner, name)
        self._prefix = job_prefix(owner, name)
        self._program = settings.flux
        self._clock = clock
        self._offer = settings.offer(lifetime)

    @classmethod
    def offer_names(cls, settings: NodeSettings) -> Collection[str]:
        """Return the name of the one offer."""
        del settings
        return (OFFER,)

    @abc.abstractmethod
    def list_jobs(self) -> Mapping[str, Sequence[Job]]:
        """Return this provider's jobs by burst; live jobs come before others.

        Jobs that are over may be left out. Raises Transient or Refused, as all of these
        methods do.
        """

    @abc.abstractmethod
    def list_names(self) -> Iterable[str]:
        """Return the names of all live jobs, also of other owners and providers."""

    @abc.abstractmethod
    def find_job(self, burst_id: BurstId) -> str | None:
        """Return the number of a burst's job, even if it is over; None if it has none.

        The number is empty if it is not known; `JobTasks.note_submission` notes it.
        This method is not called for a burst that had no files before.
        """

    @abc.abstractmethod
    def submit(self, spec: BurstSpec, files: JobTasks, seconds: float) -> str:
        """Submit the job of a burst, which may run for `seconds`; return its number.

        The number is empty if it is not known. Also raises InsufficientCapacity and
        SpecRefused. If it raises, the job may exist nevertheless.
        """

    @abc.abstractmethod
    def status(self, burst_id: BurstId, jobs: Sequence[Job]) -> BurstStatus:
        """Return the status of a burst with these jobs; there may be none."""

    @abc.abstractmethod
    def end_jobs(self, burst_id: BurstId) -> bool:
        """Cancel the live jobs of a burst; return whether there was one."""

    @abc.abstractmethod
    def examine_jobs(self, lead: LeadIdentity | None) -> Iterator[Finding]:
        """Yield findings about the batch system or program, for `examine`.

        It may raise an error after some findings.
        """

    def offers(self) -> Sequence[Offer]:
        """Return the one offer, `nodes`."""
        return [self._offer]

    def provision(self, spec: BurstSpec) -> None:
        """Write the followers' files, and submit the job unless that was done before.

        If the answer to a submission was lost, the job is found by its name. A job that
        has ended is not submitted again, even if it is not listed any more.
        """
        check_spec(spec, self._offer)
        longest = self._offer.lifetime or math.inf
        seconds = time_limit(spec.lease_end, longest, self._clock())
        self._home.open()
        files = self.files(spec.burst_id)
        is_new = not files.exist()
        files.write(spec, self._program, self.task_rank)
        # Files are written before a job is submitted, so a new burst has no job. For
        # any other, ask for it even if its submission is noted: if the batch system
        # does not answer, this raises the error.
        number = None if is_new else self.find_job(spec.burst_id)
        if files.submission() is None:
            if number is None:
                number = self.submit(spec, files, seconds)
            files.note_submission(number)

    def observe(self) -> Sequence[BurstStatus]:
        """Return the status of all bursts with files, or a job that is not over."""
        self._home.check()
        jobs = self.list_jobs()
        live = {name for name, found in jobs.items() if not found[0].over}
        with disk_errors(self._home.path):
            names = sorted({*self._home.names(), *live})
        return [self.status(BurstId(name), jobs.get(name, ())) for name in names]

    def reap(self, burst_id: BurstId) -> None:
        """Cancel the job; once it has ended on all nodes, remove the files."""
        self._home.check()
        if not is_safe_name(burst_id) or not self.end_jobs(burst_id):
            self.remove_files(burst_id)

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return the bursts of all owners that have a job or files."""
        return owned_bursts(self.list_names(), self._base)

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Check the shared directory, and the batch system or program."""
        found = [*examine_lead(lead), examine_shared_dir(self._home)]
        try:
            found.extend(self.examine_jobs(lead))
        except ProviderError as error:
            found.append(wrong(error.what, error.advice or self.unanswered))
        return found

    def files(self, burst_id: str) -> JobTasks:
        """Return the files of a burst."""
        return JobTasks(self._home.path / burst_id)

    def remove_files(self, burst_id: BurstId) -> NoReturn:
        """Remove the files of a burst without a job. Raises NotFound."""
        if is_safe_name(burst_id):
            self.files(burst_id).remove()
        with disk_errors(self._home.path):
            self._home.close()
        raise NotFound(f"no job and no file of {burst_id} is left")
