# SPDX-License-Identifier: MIT
"""Read and check the tables `jobs` of an ensemble's file."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec

from burst.model.fsd import LONGEST
from burst_ensemble.config.source import FileSource, KeyPath
from burst_ensemble.config.spec import MOST_JOBS, NAME_OF_JOBS, JobSpec


def read_jobs(
    source: FileSource, written: Sequence[JobSpec], path: KeyPath, most: int
) -> tuple[JobSpec, ...]:
    """Return the jobs with the commands of their `batch`, checked for members of at
    most `most` nodes. Raises ConfigError.
    """
    jobs: dict[str, JobSpec] = {}
    for place, job in enumerate(written):
        at = (*path, place)
        for key, problem, advice in _problems(job, most):
            raise source.wrong((*at, key) if key else at, problem, advice)
        if job.name in jobs:
            what = f"there are jobs {job.name} already"
            raise source.wrong((*at, "name"), what, "rename them")
        jobs[job.name] = _with_batch(source, job, (*at, "batch")) if job.batch else job
    return tuple(jobs.values())


def problem_of(command: str) -> str:
    """Return why a command cannot be run; empty if it can."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        return f"{command!r}: {error}"
    if not words or not words[0]:
        return f"{command!r} is not a command"
    return f"{command!r} contains a NUL" if "\0" in command else ""


def _problems(job: JobSpec, most: int) -> list[tuple[str, str, str]]:
    """Return the wrong keys, each with what is wrong and what would be right."""
    problem = problem_of(job.command) if job.command else ""
    checks = (
        (
            not NAME_OF_JOBS.fullmatch(job.name),
            ("name", f"{job.name!r} is not a name for jobs"),
            "use at most 63 letters, digits, _, - and .",
        ),
        (bool(job.commands), ("commands", "no such key"), "did you mean command?"),
        (
            bool(job.command) == bool(job.batch),
            ("", "needs either a command or a batch"),
            "give one",
        ),
        (bool(problem), ("command", problem), ""),
        (
            job.nodes > most,
            ("nodes", f"{job.nodes} is more than max, {most}: it could never run"),
            f"at most {most}, or a larger max",
        ),
        (
            job.duration > LONGEST,
            ("duration", "out of range"),
            "leave it out for no time limit",
        ),
        (
            job.tasks % job.nodes != 0,
            ("tasks", f"{job.tasks} tasks for {job.nodes} nodes"),
            "each node runs the same number of tasks: use a multiple of nodes, or leave"
            " tasks out for one per node",
        ),
        (
            bool(job.batch) and job.count != 1,
            ("count", "each line of batch is a job"),
            "leave count out",
        ),
    )
    return [(*found, advice) for is_wrong, found, advice in checks if is_wrong]


def _with_batch(source: FileSource, job: JobSpec, path: KeyPath) -> JobSpec:
    file = Path(source.path).parent / job.batch
    try:
        lines = file.read_text("utf-8").splitlines()
    # ValueError: the bytes are no text, or the name has a NUL.
    except (OSError, ValueError) as error:
        raise source.wrong(
            path, f"{file} cannot be read: {error}", "one command a line"
        ) from error
    texts = {number: line.strip() for number, line in enumerate(lines, 1)}
    found = {n: text for n, text in texts.items() if text and text[0] != "#"}
    for number, text in found.items():
        if problem := problem_of(text):
            raise source.wrong(path, f"{file}:{number}: {problem}", "no shell reads it")
    if not 0 < len(found) <= MOST_JOBS:
        raise source.wrong(
            path, f"{file} has {len(found)} commands", f"1 to {MOST_JOBS}"
        )
    return msgspec.structs.replace(job, commands=tuple(found.values()))
