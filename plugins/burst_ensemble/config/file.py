# SPDX-License-Identifier: MIT
"""Read an ensemble's file; each error names the line.

The file is TOML, or YAML in the form of the Ensemble Operator's Custom Resource, which
has the same keys below `spec`.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from burst.errors import ConfigError
from burst_ensemble.config.jobs import problem_of, read_jobs
from burst_ensemble.config.source import (
    FileSource,
    KeyPath,
    Problem,
    choices,
    read_source,
)
from burst_ensemble.config.spec import (
    ANY_SIZE,
    MOST_MEMBERS,
    NAME_OF_MEMBER,
    AlgorithmSpec,
    EnsembleSpec,
    MemberSpec,
)

DEFAULT_ALGORITHM = "workload-demand"
_OF_BURSTS = {"provider", "offer", "image", "size", "min", "max", "share"}
"""Keys of members that are bursts; external members do not have them."""


class EnsembleFile(msgspec.Struct, frozen=True):
    """An ensemble, and where its keys are in the file, if it was read from one here."""

    spec: EnsembleSpec
    source: FileSource | None = None
    """None if the ensemble was not read from a file, such as one that `burst ensemble
    up` sent."""
    places: Mapping[str, KeyPath] = {}
    """By member: the path of its table in the file."""

    def wrong(
        self, member: str, path: KeyPath, problem: str, advice: str = ""
    ) -> ConfigError:
        """Return the error for a key of a member.

        If `member` is empty or its table does not have the key, the error is about the
        key at the top of the file.
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
    """Return the ensemble in a file. Everything but the algorithms' options is checked.

    `providers` are the tables `[providers.NAME]` of the settings that are enabled.
    Raises ConfigError with file, line, and what would be right.
    """
    source = read_source(path)
    read = source.convert(EnsembleSpec, _in_full(source))
    source.refuse(_problems_of_top(read))
    members: dict[str, MemberSpec] = {}
    places: dict[str, KeyPath] = {}
    for number, written in enumerate(read.members):
        at: KeyPath = ("members", number)
        member = _complete(written, read, number, sorted(providers))
        keys = source.table_at(at).keys()
        source.refuse(_problems_of_member(member, at, keys, sorted(providers)))
        jobs = read_jobs(source, member.jobs, (*at, "jobs"), member.max)
        for name in _names_of(member):
            if name in members:
                what = f"there is a member {name} already"
                raise source.wrong((*at, "name"), what, "give it another name")
            one = msgspec.structs.replace(member, name=name, count=1, jobs=jobs)
            members[name], places[name] = one, at
    if len(members) > MOST_MEMBERS:
        raise source.wrong(("members",), f"more than {MOST_MEMBERS} members")
    most = max(member.max for member in members.values())
    spec = msgspec.structs.replace(
        read,
        members=tuple(members.values()),
        jobs=read_jobs(source, read.jobs, ("jobs",), most),
        directory=str(path.parent.absolute()),
    )
    source.refuse(_problems_together(spec))
    return EnsembleFile(spec, source, places)


def _in_full(source: FileSource) -> dict[str, Any]:
    """Return the tables with each short form written out: algorithms as lists of
    tables, commands as lists of words. Raises ConfigError.
    """
    top = {"algorithm": DEFAULT_ALGORITHM, **source.table_at(())}
    if "directory" in top:
        raise source.wrong(("directory",), "no such key", "jobs have workdir")
    top["algorithm"] = _algorithms(source, top["algorithm"], ("algorithm",))
    custom = top.get("custom", {})
    if not isinstance(custom, Mapping):
        advice = 'such as save = ["save.sh"]'
        raise source.wrong(("custom",), "expected a table of commands", advice)
    top["custom"] = {
        name: _words(source, command, ("custom", name))
        for name, command in custom.items()
    }
    if isinstance(top.get("members"), list):
        top["members"] = [
            {
                **table,
                "algorithm": _algorithms(
                    source, table["algorithm"], ("members", number, "algorithm")
                ),
            }
            if isinstance(table, Mapping) and "algorithm" in table
            else table
            for number, table in enumerate(top["members"])
        ]
    return top


def _algorithms(source: FileSource, found: Any, path: KeyPath) -> list[Any]:
    """Return one algorithm or several as a list of tables; names become tables."""
    several = found if isinstance(found, list) else [found]
    if not any(several):
        advice = f"leave it out for {DEFAULT_ALGORITHM}"
        raise source.wrong(path, "names no algorithm", advice)
    return [{"name": each} if isinstance(each, str) else each for each in several]


def _words(source: FileSource, command: Any, path: KeyPath) -> list[str]:
    text = command
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        text = shlex.join(command)
    problem = (
        problem_of(text) if isinstance(text, str) else f"{text!r} is not a command"
    )
    if problem:
        raise source.wrong(path, problem, 'such as ["save.sh", "--all"]')
    return shlex.split(text)


def _problems_of_top(read: EnsembleSpec) -> Iterator[Problem]:
    yield from _problem_of_name(read.name, ("name",), "an ensemble")
    if not 0.1 <= read.check <= 3600:
        yield ("checkSeconds",), "out of range", "from 0.1 to 3600 seconds"
    if not read.members:
        yield ("members",), "is missing", "write [[members]], one for each"
    yield from _problems_of_algorithms(read.algorithms, ("algorithm",))


def _problem_of_name(name: str, path: KeyPath, what: str) -> Iterator[Problem]:
    if not NAME_OF_MEMBER.fullmatch(name):
        advice = "use at most 40 lower-case letters, digits and dashes"
        problem = f"{name!r} is not a name for {what}" if name else "is missing"
        yield path, problem, advice


def _problems_of_algorithms(
    algorithms: Sequence[AlgorithmSpec], path: KeyPath
) -> Iterator[Problem]:
    names = [algorithm.name for algorithm in algorithms]
    for place, name in enumerate(names):
        if name in names[:place]:
            yield (*path, place), f"{name} is listed twice", "remove one"


def _complete(
    written: MemberSpec, top: EnsembleSpec, number: int, providers: Sequence[str]
) -> MemberSpec:
    """Return a member with defaults for the keys that its table leaves out."""
    first = written.size or written.min
    most = written.max or max(written.min, first, 1)
    sizes: dict[str, Any] = {"size": first, "max": most}
    if written.is_external:
        sizes = {"size": 0, "min": 0, "max": ANY_SIZE}
    elif not written.provider and len(providers) == 1:
        sizes["provider"] = providers[0]
    return msgspec.structs.replace(
        written,
        name=written.name or f"{top.name}-{number}",
        algorithms=written.algorithms or top.algorithms,
        **sizes,
    )


def _names_of(member: MemberSpec) -> list[str]:
    """Return the names of the members that one table describes."""
    if member.count == 1:
        return [member.name]
    return [f"{member.name}-{number}" for number in range(member.count)]


def _problems_of_member(
    member: MemberSpec, path: KeyPath, keys: Collection[str], providers: Sequence[str]
) -> Iterator[Problem]:
    """Yield what is wrong with a member, except its jobs. `keys` are its table's."""
    if member.is_external:
        for key in sorted(_OF_BURSTS.intersection(keys)):
            what = f"the file cannot set {key} of an external member: it is an"
            yield (*path, key), f"{what} instance that runs already", "remove it"
    elif member.provider not in providers:
        advice = "the settings have no provider: name a file with -c"
        if providers:
            advice = choices(member.provider, providers)
        what = f"there is no provider {member.provider}"
        yield (*path, "provider"), what if member.provider else "is missing", advice
    least, most = member.min, member.max
    if most < least:
        what = f"{most} is less than min, {least}"
        yield (*path, "max"), what, f"at least {least}"
    if not least <= member.size <= most:
        what = f"{member.size} is out of range"
        yield (*path, "size"), what, f"{least} to {most}"
    yield from _problems_of_algorithms(member.algorithms, (*path, "algorithm"))
    yield from _problem_of_name(member.name, (*path, "name"), "a member")


def _problems_together(spec: EnsembleSpec) -> Iterator[Problem]:
    """Yield contradictions between members, jobs and limits."""
    limits, least = spec.limits, sum(member.min for member in spec.members)
    if not limits.time:
        yield ("limits", "time"), "all would end at once", "leave it out for no limit"
    if limits.nodes and limits.nodes < least:
        what = f"{limits.nodes} is less than the members' min together"
        yield ("limits", "nodes"), what, f"at least {least}"
    own = {job.name: member.name for member in spec.members for job in member.jobs}
    for place, job in enumerate(spec.jobs):
        if job.name in own:
            what = f"member {own[job.name]} has jobs {job.name}, too"
            yield ("jobs", place, "name"), what, "rename one of them"
