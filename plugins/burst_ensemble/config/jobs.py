# SPDX-License-Identifier: MIT
"""The tables `jobs` of an ensemble's file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import msgspec

from burst.model.fsd import LONGEST
from burst_ensemble.config.source import FileSource, KeyPath, with_durations
from burst_ensemble.config.spec import NAME_OF_JOBS, JobSpec

MOST_JOBS = 100_000
"""Jobs of one entry."""


class JobReader(msgspec.Struct, frozen=True):
    """Reads the tables `jobs` of one file."""

    source: FileSource
    directory: Path

    def read(self, found: Any, path: KeyPath, most: int) -> tuple[JobSpec, ...]:
        """Return the jobs for members of at most so many nodes. Raises ConfigError."""
        jobs: list[JobSpec] = []
        for place, table in enumerate(self.source.as_list(found, path)):
            at = (*path, place)
            named = with_durations(table, ("duration",))
            job = self.source.convert(JobSpec, named, at)
            self._check_job(job, at, most)
            if any(job.name == other.name for other in jobs):
                raise self.source.wrong(
                    (*at, "name"), f"there are jobs {job.name} already", "rename them"
                )
            jobs.append(self._with_batch(job, (*at, "batch")) if job.batch else job)
        return tuple(jobs)

    def _check_job(self, job: JobSpec, at: KeyPath, most: int) -> None:
        if not NAME_OF_JOBS.fullmatch(job.name):
            raise self.source.wrong(
                (*at, "name"),
                f"{job.name!r} is not a name for jobs",
                "use at most 63 letters, digits, _, - and .",
            )
        if bool(job.command) == bool(job.batch):
            raise self.source.wrong(at, "needs either a command or a batch", "give one")
        problem = _problem_of(job.command) if job.command else ""
        if problem:
            raise self.source.wrong((*at, "command"), problem)
        if job.commands:
            raise self.source.wrong(
                (*at, "commands"), "no such key", "did you mean command?"
            )
        if job.nodes > most:
            raise self.source.wrong(
                (*at, "nodes"),
                f"{job.nodes} is more than max, {most}: such a job could never run",
                f"at most {most}, or a larger max",
            )
        ranges = {
            "nodes": (1, most),
            "count": (0, MOST_JOBS),
            "cores": (0, 1_000_000),
            "tasks": (0, 1_000_000),
            "duration": (0, LONGEST),
        }
        for key, (low, high) in ranges.items():
            if not low <= getattr(job, key) <= high:
                raise self.source.wrong(
                    (*at, key), "out of range", f"{low} to {high:g}"
                )
        if job.tasks % job.nodes:
            raise self.source.wrong(
                (*at, "tasks"),
                f"{job.tasks} tasks for {job.nodes} nodes",
                "each node has as many tasks: a multiple of nodes, or leave tasks out"
                " for one each",
            )

    def _with_batch(self, job: JobSpec, path: KeyPath) -> JobSpec:
        file = self.directory / job.batch
        try:
            lines = file.read_text("utf-8").splitlines()
        # ValueError: of bytes that are no text, and of a name with a NUL.
        except (OSError, ValueError) as error:
            raise self.source.wrong(
                path, f"{file} cannot be read: {error}", "one command a line"
            ) from error
        texts = {number: line.strip() for number, line in enumerate(lines, 1)}
        found = {n: text for n, text in texts.items() if text and text[0] != "#"}
        for number, text in found.items():
            problem = _problem_of(text)
            if problem:
                raise self.source.wrong(
                    path, f"{file}:{number}: {problem}", "no shell reads it"
                )
        if not 0 < len(found) <= MOST_JOBS:
            raise self.source.wrong(
                path, f"{file} has {len(found)} commands", f"1 to {MOST_JOBS}"
            )
        if job.count != 1:
            raise self.source.wrong(
                (*path[:-1], "count"), "each line of batch is a job", "leave count out"
            )
        return msgspec.structs.replace(job, commands=tuple(found.values()))


def _problem_of(command: str) -> str:
    """Return why a command cannot be run; empty if it can."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        return f"{command!r}: {error}"
    if not words or not words[0]:
        return f"{command!r} is no command"
    return f"{command!r} has a NUL" if "\0" in command else ""
