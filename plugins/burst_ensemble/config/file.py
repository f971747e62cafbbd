# SPDX-License-Identifier: MIT
"""Reads the file of an ensemble, and says on which line what is wrong, what is right.

TOML, or YAML in the form of the Ensemble Operator's Custom Resource; both have the same
keys below `spec`.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from burst.errors import ConfigError
from burst_ensemble.config.jobs import in_seconds, problem_of, read_jobs
from burst_ensemble.config.source import FileSource, KeyPath, choices, read_source
from burst_ensemble.config.spec import (
    ANY_SIZE,
    MOST_MEMBERS,
    NAME_OF_MEMBER,
    AlgorithmSpec,
    EnsembleLimits,
    EnsembleSpec,
    MemberSpec,
)

DEFAULT_ALGORITHM = "workload-demand"
_OF_BURSTS = {"provider", "offer", "image", "size", "min", "max", "share"}
"""Keys of members that are bursts."""


class EnsembleFile(msgspec.Struct, frozen=True):
    """An ensemble, and where in its file everything is, if it was read of one here."""

    spec: EnsembleSpec
    source: FileSource | None = None
    places: Mapping[str, KeyPath] = {}
    """Of each member its table."""

    def wrong(
        self, member: str, path: KeyPath, problem: str, advice: str = ""
    ) -> ConfigError:
        """Return the error that says what is wrong with a key of a member; of the file
        where its table does not have it, or without a member.
        """
        if self.source is None:
            where = f"member {member}: " if member else ""
            where += ".".join(map(str, path))
            return ConfigError(f"{where}: {problem}", advice)
        table = self.places.get(member, ())
        has_own = path[0] in self.source.table_at(table)
        path = (*table, *path) if has_own else path
        return self.source.wrong(path, problem, advice)


def load_ensemble(path: Path, providers: Collection[str]) -> EnsembleFile:
    """Return the ensemble in a file, checked but for the algorithms' options.

    `providers` are the tables `[providers.NAME]` of the settings that are enabled.
    Raises ConfigError with file, line, and what would be right.
    """
    source = read_source(path)
    top = _read_top(source)
    reader = _MemberReader(source, top, providers)
    members = reader.read(source.table_at(()).get("members"))
    most = max(member.max for member in members)
    spec = msgspec.structs.replace(
        top,
        members=tuple(members),
        jobs=read_jobs(source, source.table_at(()).get("jobs"), ("jobs",), most),
        directory=str(path.parent.absolute()),
    )
    _check_together(source, spec)
    return EnsembleFile(spec, source, reader.places)


def _read_top(source: FileSource) -> EnsembleSpec:
    """Return what the file says for all members."""
    table = in_seconds(source.table_at(()), "checkSeconds")
    if "directory" in table:
        raise source.wrong(("directory",), "no such key", "jobs have workdir")
    limits = source.convert(
        EnsembleLimits, in_seconds(table.get("limits", {}), "time"), ("limits",)
    )
    custom = table.get("custom", {})
    if not isinstance(custom, Mapping):
        raise source.wrong(
            ("custom",), "expected a table of commands", 'such as save = ["save.sh"]'
        )
    commands = {
        name: _read_command(source, command, ("custom", name))
        for name, command in custom.items()
    }
    known: dict[str, Any] = {
        "members": [],
        "jobs": [],
        "limits": {},
        "custom": commands,
    }
    algorithm = _as_list(table.get("algorithm", DEFAULT_ALGORITHM))
    read = source.convert(EnsembleSpec, {**table, **known, "algorithm": []}, ())
    _check_name(source, read.name, ("name",), "an ensemble")
    if not 0.1 <= read.check <= 3600:
        raise source.wrong(
            ("checkSeconds",), "out of range", "from 0.1 to 3600 seconds"
        )
    algorithms = _read_algorithms(source, algorithm, ("algorithm",))
    return msgspec.structs.replace(read, limits=limits, algorithms=algorithms)


def _read_command(source: FileSource, command: Any, path: KeyPath) -> list[str]:
    text = command
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        text = shlex.join(command)
    problem = problem_of(text) if isinstance(text, str) else f"{text!r} is no command"
    if problem:
        raise source.wrong(path, problem, 'such as ["save.sh", "--all"]')
    return shlex.split(text)


def _as_list(algorithm: Any) -> list[Any]:
    """Return an algorithm, or several, as tables where they are names."""
    several = algorithm if isinstance(algorithm, list) else [algorithm]
    return [{"name": each} if isinstance(each, str) else each for each in several]


def _read_algorithms(
    source: FileSource, found: Sequence[Any], path: KeyPath
) -> tuple[AlgorithmSpec, ...]:
    read: dict[str, AlgorithmSpec] = {}
    for place, table in enumerate(found):
        algorithm = source.convert(AlgorithmSpec, table, (*path, place))
        if algorithm.name in read:
            raise source.wrong(
                (*path, place), f"{algorithm.name} is there twice", "remove one"
            )
        read[algorithm.name] = algorithm
    if not any(read):
        raise source.wrong(
            path, "names no algorithm", f"leave it out for {DEFAULT_ALGORITHM}"
        )
    return tuple(read.values())


def _check_name(source: FileSource, name: str, path: KeyPath, what: str) -> None:
    if not NAME_OF_MEMBER.fullmatch(name):
        raise source.wrong(
            path,
            f"{name!r} is not a name for {what}",
            "use at most 40 lower-case letters, digits and dashes",
        )


class _MemberReader:
    """Reads the members of one file, and keeps where they are."""

    def __init__(
        self, source: FileSource, top: EnsembleSpec, providers: Collection[str]
    ) -> None:
        self._source, self._top = source, top
        self._providers = sorted(providers)
        self.places: dict[str, KeyPath] = {}

    def read(self, found: Any) -> list[MemberSpec]:
        """Return all members, those with a count written out. Raises ConfigError."""
        members: list[MemberSpec] = []
        for place, table in enumerate(self._source.as_list(found, ("members",))):
            members += self._copies(self._member(table, place), place)
        if not members:
            raise self._source.wrong(
                ("members",), "is missing", "write [[members]], one for each"
            )
        if len(members) > MOST_MEMBERS:
            raise self._source.wrong(("members",), f"more than {MOST_MEMBERS} members")
        return members

    def _member(self, found: Any, place: int) -> MemberSpec:
        """Return one table of `members`."""
        source, path = self._source, ("members", place)
        if not isinstance(found, Mapping):
            raise source.wrong(path, "expected a table", "write [[members]]")
        name = {"name": f"{self._top.name}-{place}"}
        known: dict[str, Any] = {"jobs": [], "algorithm": []}
        read = source.convert(MemberSpec, {**name, **found, **known}, path)
        if read.has_agent:
            self._check_external(found, path)
            sized = msgspec.structs.replace(read, size=0, min=0, max=ANY_SIZE)
        else:
            provider = self._provider(read.provider, (*path, "provider"))
            sized = msgspec.structs.replace(self._sized(read, path), provider=provider)
        algorithms = self._top.algorithms
        if "algorithm" in found:
            own = _as_list(found["algorithm"])
            algorithms = _read_algorithms(source, own, (*path, "algorithm"))
        jobs = read_jobs(source, found.get("jobs"), (*path, "jobs"), sized.max)
        return msgspec.structs.replace(sized, jobs=jobs, algorithms=algorithms)

    def _copies(self, member: MemberSpec, place: int) -> list[MemberSpec]:
        """Return as many members as its `count` says, each with a name of its own."""
        path: KeyPath = ("members", place)
        _check_name(self._source, member.name, (*path, "name"), "a member")
        names = [member.name]
        if member.count > 1:
            names = [f"{member.name}-{number}" for number in range(member.count)]
        for name in names:
            if name in self.places:
                raise self._source.wrong(
                    (*path, "name"),
                    f"there is a member {name} already",
                    "give it another name",
                )
            self.places[name] = path
        return [msgspec.structs.replace(member, name=each, count=1) for each in names]

    def _sized(self, raw: MemberSpec, path: KeyPath) -> MemberSpec:
        """Return how many nodes a member has; refuse what contradicts itself."""
        first, least = raw.size or raw.min, raw.min
        most = raw.max or max(least, first, 1)
        if most < least:
            raise self._source.wrong(
                (*path, "max"),
                f"{most} is less than min, {least}",
                f"at least {least}",
            )
        if not least <= first <= most:
            raise self._source.wrong(
                (*path, "size"), f"{first} is out of range", f"{least} to {most}"
            )
        return msgspec.structs.replace(raw, size=first, max=most)

    def _check_external(self, table: Mapping[str, Any], path: KeyPath) -> None:
        """Refuse keys of members that the daemon makes."""
        for key in sorted(table.keys() & _OF_BURSTS):
            raise self._source.wrong(
                (*path, key),
                f"{key} is not for the file to say of an external member: it is an"
                " instance that runs already",
                "remove it",
            )

    def _provider(self, name: str, path: KeyPath) -> str:
        known = self._providers
        if name in known:
            return name
        if not name and len(known) == 1:
            return known[0]
        advice = "the settings have no provider: name a file with -c"
        if known:
            advice = choices(name, known)
        what = f"there is no provider {name}" if name else "is missing"
        raise self._source.wrong(path, what, advice)


def _check_together(source: FileSource, spec: EnsembleSpec) -> None:
    """Refuse what members, jobs and limits contradict each other in."""
    limits, least = spec.limits, sum(member.min for member in spec.members)
    if not limits.time:
        raise source.wrong(
            ("limits", "time"), "all would end at once", "leave it out for no limit"
        )
    if limits.nodes and limits.nodes < least:
        raise source.wrong(
            ("limits", "nodes"),
            f"{limits.nodes} is less than the members' min together",
            f"at least {least}",
        )
    own = {job.name: member.name for member in spec.members for job in member.jobs}
    for place, job in enumerate(spec.jobs):
        if job.name in own:
            raise source.wrong(
                ("jobs", place, "name"),
                f"member {own[job.name]} has jobs {job.name}, too",
                "rename one of them",
            )
