# SPDX-License-Identifier: MIT
"""The tables `members` of an ensemble's file, and the algorithms of each."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from burst.config.convert import Seconds, Table
from burst_ensemble.config.jobs import JobReader
from burst_ensemble.config.source import FileSource, KeyPath
from burst_ensemble.config.spec import (
    ANY_SIZE,
    NAME_OF_MEMBER,
    AlgorithmSpec,
    MemberSpec,
)

DEFAULT_ALGORITHM = "workload-demand"
MOST_MEMBERS = 200
_OF_BURSTS = (
    *("provider", "offer", "image", "size", "min", "max", "share"),
    *("growWindow", "shrinkWindow"),
)
"""Keys of members that are bursts."""


class MemberTable(Table, frozen=True, rename="camel"):
    """`[[members]]`: one member, or several that are alike."""

    name: str = ""
    """Default: the name of the ensemble and a number."""
    provider: str = ""
    """A table `[providers.NAME]` of the settings; default: the only one."""
    offer: str = ""
    """One of the provider's offers; default: the cheapest that is large enough."""
    image: str = ""
    """The container image of its nodes, with the lead's MAJOR.MINOR of Flux, or any
    Flux for isolated members, unless the provider has a `view`. Default: that of the
    provider."""
    mode: Literal["joined", "isolated", "external"] = "joined"
    """joined: a burst whose nodes join the lead. isolated: each job has an instance of
    its own. external: an instance that runs already."""
    size: int | None = None
    """Nodes at first; default: `min`."""
    min: int | None = None
    """Least nodes, from 0; default: 1."""
    max: int | None = None
    """Most nodes; default: `size`."""
    count: int = 1
    """How many members like this there are, `NAME-0`, `NAME-1` and so on."""
    share: float = 1.0
    """Weight where members want more nodes than `[limits] nodes`."""
    grow_window: Seconds | None = None
    """In place of that of the file."""
    shrink_window: Seconds | None = None
    """In place of that of the file."""
    jobs: Any = None
    algorithm: Any = None
    """A name, a table with `name` and `options`, or a list of these. Default: that of
    the file."""
    minicluster: Any = None
    """A table `spec`, whose `size`, `minSize`, `maxSize` and `containers[0].image` are
    `size`, `min`, `max` and `image`. Other fields are refused."""
    sidecar: Any = None


class MemberDefaults(msgspec.Struct, frozen=True):
    """What the file says for all members."""

    ensemble: str
    grow_window: Seconds
    shrink_window: Seconds
    algorithms: tuple[tuple[AlgorithmSpec, KeyPath], ...]


class _Sizes(NamedTuple):
    first: int
    least: int
    most: int


class MemberReader:
    """Reads the members of one file, and keeps where they are and what to note."""

    def __init__(
        self, source: FileSource, directory: Path, providers: Collection[str]
    ) -> None:
        self._source = source
        self._jobs = JobReader(source, directory)
        self._providers = providers
        self._sized_by: dict[KeyPath, KeyPath] = {}
        self.notes: list[str] = []
        self.places: dict[str, KeyPath] = {}
        self.options: dict[tuple[str, int], KeyPath] = {}

    def read(
        self, found: Any, path: KeyPath, defaults: MemberDefaults
    ) -> list[MemberSpec]:
        """Return all members, those with a count written out. Raises ConfigError."""
        members: list[MemberSpec] = []
        for place, table in enumerate(self._source.as_list(found, path)):
            members += self._member(table, (*path, place), defaults)
            if len(members) > MOST_MEMBERS:
                raise self._source.wrong(path, f"more than {MOST_MEMBERS} members")
        if not members:
            raise self._source.wrong(
                path, "is missing", "write [[members]], one for each"
            )
        return members

    def _member(
        self, found: Any, path: KeyPath, defaults: MemberDefaults
    ) -> list[MemberSpec]:
        if not isinstance(found, Mapping):
            raise self._source.wrong(path, "expected a table", "write [[members]]")
        table = dict(found)
        minicluster = self._minicluster(table, path)
        if "sidecar" in table:
            self.notes.append(
                f"{self._source.at(*path, 'sidecar')}: not used: the daemon reads the"
                " member's queue without a sidecar"
            )
        raw = self._source.convert(MemberTable, table, path)
        if raw.mode == "external":
            self._check_external(table, path)
            sizes, provider = _Sizes(0, 0, ANY_SIZE), ""
        else:
            sizes = self._sizes(raw, path)
            provider = self._provider(raw.provider, (*path, "provider"))
        algorithms = defaults.algorithms
        if raw.algorithm is not None:
            algorithms = self.read_algorithms(raw.algorithm, (*path, "algorithm"))
        name = raw.name or f"{defaults.ensemble}-{path[-1]}"
        one = MemberSpec(
            name=name,
            provider=provider,
            offer=raw.offer,
            image=raw.image,
            mode=raw.mode,
            size=sizes.first,
            min=sizes.least,
            max=sizes.most,
            share=raw.share,
            jobs=self._jobs.read(raw.jobs, (*path, "jobs"), sizes.most),
            algorithms=tuple(each for each, _ in algorithms),
            grow_window=_either(raw.grow_window, defaults.grow_window),
            shrink_window=_either(raw.shrink_window, defaults.shrink_window),
            minicluster=minicluster,
        )
        return [
            self._placed(msgspec.structs.replace(one, name=each), path, algorithms)
            for each in self._names(name, raw.count, path)
        ]

    def _placed(
        self,
        member: MemberSpec,
        path: KeyPath,
        algorithms: Sequence[tuple[AlgorithmSpec, KeyPath]],
    ) -> MemberSpec:
        if member.name in self.places:
            raise self._source.wrong(
                (*path, "name"),
                f"there is a member {member.name} already",
                "give it another name",
            )
        self.places[member.name] = path
        for number, (_, at) in enumerate(algorithms):
            self.options[member.name, number] = (*at, "options")
        return member

    def _names(self, name: str, count: int, path: KeyPath) -> list[str]:
        if not NAME_OF_MEMBER.fullmatch(name):
            raise self._source.wrong(
                (*path, "name"),
                f"{name!r} is not a name for a member",
                "use at most 40 lower-case letters, digits and dashes",
            )
        if not 1 <= count <= MOST_MEMBERS:
            raise self._source.wrong(
                (*path, "count"), f"{count} is out of range", f"1 to {MOST_MEMBERS}"
            )
        return [name] if count == 1 else [f"{name}-{number}" for number in range(count)]

    def _minicluster(self, table: dict[str, Any], path: KeyPath) -> dict[str, Any]:
        """Take the MiniCluster out of a member's table, and into it what is a member's.

        Return what is left of its fields.
        """
        found = table.pop("minicluster", None)
        if found is None:
            return {}
        at = (*path, "minicluster")
        if not isinstance(found, Mapping) or not isinstance(found.get("spec"), Mapping):
            raise self._source.wrong(
                at, "expected a table with spec", "as a MiniCluster has"
            )
        for key in found:
            if key != "spec":
                raise self._source.wrong((*at, key), "no such key", "only spec is used")
        spec = dict(found["spec"])
        for theirs, ours in (("size", "size"), ("minSize", "min"), ("maxSize", "max")):
            if theirs in spec:
                if ours in table:
                    raise self._source.wrong(
                        (*at, "spec", theirs), f"{ours} is set, too", "remove one"
                    )
                table[ours] = spec.pop(theirs)
                self._sized_by[*path, ours] = (*at, "spec", theirs)
        self._take_image(spec, table, path)
        return spec

    def _take_image(
        self, spec: dict[str, Any], table: dict[str, Any], path: KeyPath
    ) -> None:
        """Take the image of a MiniCluster's one container; the rest of it stays."""
        containers = spec.get("containers")
        if not (isinstance(containers, list) and len(containers) == 1):
            return
        (container,) = containers
        if not isinstance(container, Mapping) or "image" not in container:
            return
        where = (*path, "minicluster", "spec", "containers", 0, "image")
        if "image" in table:
            raise self._source.wrong(where, "image is set, too", "remove one")
        table["image"] = container["image"]
        self._sized_by[*path, "image"] = where
        rest = {key: value for key, value in container.items() if key != "image"}
        if rest:
            spec["containers"] = [rest]
        else:
            del spec["containers"]

    def _sizes(self, raw: MemberTable, path: KeyPath) -> _Sizes:
        """Return how many nodes a member has; refuse what contradicts itself."""
        least = 1 if raw.min is None else raw.min
        if least < 0:
            raise self._source.wrong(
                self._key(path, "min"), f"{least} is less than 0", "at least 0"
            )
        most = raw.max if raw.max is not None else max(least, raw.size or 1)
        if most < max(least, 1):
            raise self._source.wrong(
                self._key(path, "max"),
                f"{most} is less than min, {least}" if least else f"{most} is no size",
                f"at least {max(least, 1)}",
            )
        if raw.size is not None and not least <= raw.size <= most:
            raise self._source.wrong(
                self._key(path, "size"),
                f"{raw.size} is out of range",
                f"{least} to {most}",
            )
        if not raw.share > 0:
            raise self._source.wrong(
                (*path, "share"), "out of range", "a number above 0"
            )
        return _Sizes(least if raw.size is None else raw.size, least, most)

    def _check_external(self, table: Mapping[str, Any], path: KeyPath) -> None:
        """Refuse keys of members that the daemon makes."""
        for key in _OF_BURSTS:
            if key in table:
                raise self._source.wrong(
                    self._key(path, key),
                    f"{key} is not for the file to say of an external member: it is an"
                    " instance that runs already",
                    "remove it",
                )

    def _key(self, path: KeyPath, name: str) -> KeyPath:
        """Return where a size is: the member's own, or that of its MiniCluster."""
        return self._sized_by.get((*path, name), (*path, name))

    def _provider(self, name: str, path: KeyPath) -> str:
        known = sorted(self._providers)
        if name in known:
            return name
        has = "the settings have no provider: name a file with -c"
        if known:
            has = f"the settings have {', '.join(known)}"
        if not name:
            if len(known) == 1:
                return known[0]
            raise self._source.wrong(path, "is missing", has)
        close = difflib.get_close_matches(name, known, 1)
        raise self._source.wrong(
            path,
            f"there is no provider {name}",
            f"did you mean {close[0]}?" if close else has,
        )

    def read_algorithms(
        self, found: Any, path: KeyPath
    ) -> tuple[tuple[AlgorithmSpec, KeyPath], ...]:
        """Return algorithms, each with its place. Raises ConfigError."""
        if found is None:
            return ((AlgorithmSpec(name=DEFAULT_ALGORITHM), path),)
        if found in ("", []):
            raise self._source.wrong(
                path, "names no algorithm", f"leave it out for {DEFAULT_ALGORITHM}"
            )
        if not isinstance(found, list):
            found, paths = [found], [path]
        else:
            paths = [(*path, place) for place in range(len(found))]
        read: list[tuple[AlgorithmSpec, KeyPath]] = []
        for table, at in zip(found, paths, strict=True):
            named = {"name": table} if isinstance(table, str) else table
            algorithm = self._source.convert(AlgorithmSpec, named, at)
            if any(algorithm.name == other.name for other, _ in read):
                raise self._source.wrong(
                    at, f"{algorithm.name} is there twice", "remove one"
                )
            read.append((algorithm, at))
        return tuple(read)


def _either(value: Seconds | None, default: Seconds) -> Seconds:
    return default if value is None else value
