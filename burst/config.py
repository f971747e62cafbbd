# SPDX-License-Identifier: MIT
"""Settings: one frozen object from TOML, units in the values, nothing unknown.

Each key's docstring says what it does and why its default is what it is; `burst config`
prints the effective values with where each came from. Plug-in authors parse the table
`[providers.NAME]` with `convert` too, by declaring a msgspec.Struct.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_type_hints

import msgspec

from burst.errors import ConfigError
from burst.model.fsd import format_fsd, parse_fsd

_T = TypeVar("_T")


class Seconds(float):
    """A duration; written in the file as FSD text such as "10m" or "inf"."""

    def __str__(self) -> str:
        return format_fsd(self)


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all tables of the file."""


class LeadSettings(_Table, frozen=True):
    """`[lead]`: how to find the lead, and how followers reach it."""

    uri: str = ""
    """Of the lead's local socket; default FLUX_URI of the environment."""
    address: str = ""
    """Host name or address at which followers reach the lead; default: the connect
    address of rank 0 in the lead's own bootstrap hosts. In a pod it can be learnt of
    the cluster: "node" is the external address of the node that the lead's pod is on,
    or else the internal one, and "service" that of the Service's load balancer."""
    port: int = 0
    """Port at that address; default: the port of the same entry, or of the Service."""
    service: str = "burst-lead"
    """For address "node" and "service": the Service that leads to the lead's port, in
    the namespace of the daemon's pod."""
    slots: tuple[str, ...] = ()
    """Rank slots as hostlists, such as "burst-0-[0-3]"; default: one for each stem
    burst-N- in the lead's hosts."""
    reconnect: Seconds = Seconds(300)
    """How long to try to find a lead that went away before the daemon gives up and
    leaves it to whoever restarts both. Longer than a broker's restart."""

    @property
    def is_learnt(self) -> bool:
        """Whether the address is to be learnt of the cluster that the lead is in."""
        return self.address in {"node", "service"}


class DaemonSettings(_Table, frozen=True):
    """`[daemon]`: the process itself."""

    cadence: Seconds = Seconds(10)
    """The longest time between two looks at the world. Changes wake the daemon at
    once; this only bounds what no event tells of, such as deadlines."""
    observe: Seconds = Seconds(2)
    """How often to ask a provider that has live bursts. Idle providers are asked at
    the cadence."""
    on_stop: Literal["leave", "reap"] = "leave"
    """What a clean stop does with running bursts. Leaving them is the default since
    a daemon is stopped for an upgrade more often than for good."""
    orphans: Literal["report", "reap"] = "report"
    """What to do with things that bear our tag and no record explains. Reported only,
    by default: records are written before money is spent, so an orphan means that the
    store was lost, and then a person should look first (`burst gc`)."""
    log: Literal["text", "json"] = "text"
    """Form of the log on standard error."""


class IntakeSettings(_Table, frozen=True):
    """`[intake]`: which jobs may burst, and how they are kept from blocking others."""

    mode: Literal["hold"] = "hold"
    """hold: a burstable job that cannot start is held (urgency 0) as soon as it is
    seen. The scheduler may be faster now and then."""
    attribute: str = "burstable"
    """Attribute under `attributes.system` that marks a job; `--setattr=burstable`."""
    patience: Seconds = Seconds(60)
    """How long a job that could start on nodes that are up is left to the scheduler
    before it bursts all the same."""
    release_urgency: int = 0
    """Urgency with which jobs are released, 1 to 31; 0: the one they had before."""
    impossible: Literal["hold", "fail"] = "hold"
    """What becomes of a job that no offer could ever serve: held, so that it does not
    block the queue, or failed with the reason."""


class PlanSettings(_Table, frozen=True):
    """`[plan]`: how demand becomes bursts."""

    share: bool = True
    """Several jobs of one user may count on one burst, if it holds them all at once or
    one after the other."""
    share_users: bool = False
    """Jobs of several users may share a burst too. Off: a site that bills by user
    wants to know whose a burst is."""
    spread: bool = True
    """A job that is larger than any free rank slot may get several bursts."""
    partial: Literal["fail", "keep"] = "fail"
    """At the join deadline of a burst of which only some nodes are online: give it
    up, or keep what joined if a job can use it."""


class LimitSettings(_Table, frozen=True):
    """`[limits]`: what is never exceeded. 0 means no limit."""

    max_nodes: int = 0
    """Nodes of all live bursts together."""
    max_bursts: int = 0
    """Live bursts at a time."""
    max_nodes_per_burst: int = 0
    max_nodes_per_user: int = 0
    """Nodes of the live bursts made for jobs of one user."""
    set_aside: Seconds = Seconds(600)
    """How long an offer that had no capacity is not tried again. As long as
    ParallelCluster waits, since stock comes back in minutes, not seconds."""
    breaker: int = 3
    """Unexpected failures in a row after which a provider is left alone for a while."""
    breaker_pause: Seconds = Seconds(300)
    """For how long; afterwards one attempt decides."""


class DeadlineSettings(_Table, frozen=True):
    """`[deadlines]`: every waiting state ends."""

    lead: Seconds = Seconds(0)
    """From the daemon's start to the lead's. By default the lead has to be there: a
    person wants to hear at once that it is not. In a pod both start together."""
    address: Seconds = Seconds(120)
    """From the daemon's start until the lead is reached at `[lead] address`, if that
    is set. A NodePort opens in a second, a load balancer in a minute."""
    provision: Seconds = Seconds(900)
    """From the first call to all followers started. GKE takes five minutes for a
    cluster, and a stock-out shows after many more."""
    join: Seconds = Seconds(300)
    """From then to all ranks online. A broker joins in under a second; the rest is
    pulling images and wrong addresses."""
    rejoin: Seconds = Seconds(120)
    """How long a rank that was online may be away before the burst is given up. As
    long as CLUES tolerates a glitch; longer than a broker's restart."""
    drain: Seconds = Seconds(1800)
    """From draining to no allocation left. A job is never killed: past this, the burst
    is reported as overdue and waited for."""
    reap: Seconds = Seconds(600)
    """From the first reap to NotFound. Past this it is reported and repeated."""
    idle: Seconds = Seconds(300)
    """How long a burst that nothing needs stays up. A cluster takes longer than this
    to make, so a second job soon after should find it."""
    release: Seconds = Seconds(300)
    """How long a released job may wait for Flux's scheduler before `explain` and the
    log say that something else has its nodes."""


class ProviderTable(msgspec.Struct, frozen=True, kw_only=True):
    """`[providers.NAME]`: what every provider has; `options` is for the plug-in."""

    type: str
    """Name under the entry point group `burst.providers`: local, kube, kind, gke…"""
    enabled: bool = True
    options: Mapping[str, Any] = {}


class Settings(_Table, frozen=True):
    """The whole file."""

    lead: LeadSettings = LeadSettings()
    daemon: DaemonSettings = DaemonSettings()
    intake: IntakeSettings = IntakeSettings()
    plan: PlanSettings = PlanSettings()
    limits: LimitSettings = LimitSettings()
    deadlines: DeadlineSettings = DeadlineSettings()
    providers: Mapping[str, ProviderTable] = {}
    """In the order in which their offers are preferred among equal prices."""


def load(path: Path) -> Settings:
    """Read and check a file. Raises ConfigError naming file, key and what is right."""
    return parse(read_toml(path), str(path))


def read_toml(path: Path) -> dict[str, Any]:
    """Return the file's tables unchecked. Raises ConfigError."""
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read: {error.strerror}",
            "name another file with -c, or write one (README.md shows a small one)",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error


def parse(tables: Mapping[str, Any], where: str) -> Settings:
    """Return the settings in the tables of a file. Raises ConfigError."""
    tables = dict(tables)
    providers = tables.pop("providers", {})
    if not isinstance(providers, Mapping):
        raise ConfigError(f"{where}: providers: expected tables [providers.NAME]")
    settings = convert(Settings, tables, where)
    _check_ranges(settings, where)
    found = {
        name: _provider(name, table, f"{where}: providers.{name}")
        for name, table in providers.items()
    }
    return msgspec.structs.replace(settings, providers=found)


def convert(table_type: type[_T], table: Mapping[str, Any], where: str) -> _T:
    """Return a Struct of the given type made of a TOML table.

    Durations are declared as `Seconds`. Raises ConfigError that begins with `where`.
    """
    _refuse_unknown(table_type, table, where, "")
    try:
        return msgspec.convert(table, table_type, dec_hook=_decode)
    except msgspec.ValidationError as error:
        what, _, at = str(error).partition(" - at `$")
        key = at.rstrip("`").lstrip(".")
        raise ConfigError(f"{where}: {key or 'table'}: {_plain(what)}") from error


def effective(
    settings: Settings, tables: Mapping[str, Any], source: str
) -> Iterator[tuple[str, Any, str]]:
    """Yield key, value and where it came from: the source, or `default`."""
    for table, section in msgspec.structs.asdict(settings).items():
        given = tables.get(table, {})
        if table != "providers":
            for key, value in msgspec.structs.asdict(section).items():
                origin = source if key in given else "default"
                yield f"{table}.{key}", value, origin
            continue
        for name, provider in section.items():
            yield f"providers.{name}.type", provider.type, source
            origin = source if "enabled" in given.get(name, {}) else "default"
            yield f"providers.{name}.enabled", provider.enabled, origin
            for key, value in provider.options.items():
                yield f"providers.{name}.{key}", value, source


def _provider(name: str, table: Any, where: str) -> ProviderTable:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: expected a table", f"write [providers.{name}]")
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name):
        raise ConfigError(
            f"{where}: not a name for a provider",
            "use lower-case letters, digits and -, as it becomes part of labels",
        )
    common = {key: table[key] for key in ("type", "enabled") if key in table}
    if "type" not in common:
        raise ConfigError(f"{where}.type: is missing", 'such as type = "local"')
    parsed = convert(ProviderTable, common, where)
    rest = {key: value for key, value in table.items() if key not in common}
    return msgspec.structs.replace(parsed, options=rest)


def _check_ranges(settings: Settings, where: str) -> None:
    for key, value, low, high in (
        ("lead.port", settings.lead.port, 0, 65535),
        ("intake.release_urgency", settings.intake.release_urgency, 0, 31),
        ("daemon.cadence", settings.daemon.cadence, 0.05, 3600),
        ("daemon.observe", settings.daemon.observe, 0.05, 3600),
        ("limits.max_nodes", settings.limits.max_nodes, 0, math.inf),
        ("limits.max_bursts", settings.limits.max_bursts, 0, math.inf),
        (
            "limits.max_nodes_per_burst",
            settings.limits.max_nodes_per_burst,
            0,
            math.inf,
        ),
        ("limits.max_nodes_per_user", settings.limits.max_nodes_per_user, 0, math.inf),
        ("limits.breaker", settings.limits.breaker, 1, math.inf),
    ):
        if not low <= value <= high:
            raise ConfigError(
                f"{where}: {key}: {value} is out of range",
                f"at least {low}" + (f", at most {high}" if high < math.inf else ""),
            )
    if settings.daemon.observe > settings.daemon.cadence:
        raise ConfigError(
            f"{where}: daemon.observe: longer than daemon.cadence",
            "observe is how often a busy provider is asked, cadence an idle one",
        )


def _decode(kind: type, value: Any) -> Any:
    if kind is not Seconds:
        raise NotImplementedError(kind)  # msgspec's own way to say: no such type
    if not isinstance(value, str):
        raise ValueError(f'expected a duration such as "10m", got {value!r}')
    return Seconds(parse_fsd(value))


def _plain(what: str) -> str:
    names = {"`": "", "str": "text in quotes", "int": "whole number", "bool": "true or"}
    what = what.replace("Invalid enum value", "unknown value")
    for old, new in names.items():
        what = re.sub(rf"\b{old}\b", new, what) if old.isalpha() else what
    return what.replace("true or", "true or false").replace("`", "")


def _refuse_unknown(
    kind: type, table: Mapping[str, Any], where: str, inside: str
) -> None:
    """Say which key is unknown and which was meant; msgspec only says the first."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    hints = get_type_hints(kind)
    for key, value in table.items():
        path = f"{inside}{key}"
        if key not in fields:
            close = difflib.get_close_matches(key, fields, 1)
            advice = f"did you mean {close[0]}?" if close else "known keys are "
            raise ConfigError(
                f"{where}: {path}: no such key",
                advice if close else advice + ", ".join(sorted(fields)),
            )
        below = hints[fields[key].name]
        if isinstance(below, type) and issubclass(below, _Table):
            if not isinstance(value, Mapping):
                raise ConfigError(f"{where}: {path}: expected a table [{path}]")
            _refuse_unknown(below, value, where, f"{path}.")
