# SPDX-License-Identifier: MIT
"""Makes what a follower needs to join: its broker.toml, and the command to start it.

A rank is a position in the list of hosts, which is the same for all brokers of an
instance. So a follower's list is a copy of the lead's. It includes the key `parent` of
entries, by which followers join through one of them, the gateway. Only the address of
rank 0 may differ, as a lead behind a NodePort does not know its own address.

Sources: flux-config-bootstrap(5), flux-broker(1), flux-config-resource(5).
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from burst.config import convert
from burst.errors import ConfigError
from burst.kits import certificate
from burst.model.host import is_host_name
from burst.model.lead import Bootstrap, GuestAccess, HostEntry, LeadIdentity
from burst.model.ranks import parse_hostlist

_TOKEN = re.compile(r"%([hp%])")
# The length of sun_path in unix(7), without the zero at its end.
_LONGEST_SOCKET = 107


def expand_hosts(bootstrap: Bootstrap) -> tuple[HostEntry, ...]:
    """Return one entry for each rank: a single host, URIs with `%h` and `%p` filled in.

    A host may be listed again to add keys that its first entry lacks, as Flux allows.
    `bind` and `connect` are empty if neither the entry nor a default has one. Raises
    ConfigError if Flux would refuse the table.
    """
    found: dict[str, HostEntry] = {}
    for entry in bootstrap.hosts:
        for host in _hosts(entry):
            found[host] = _merge(found.get(host, HostEntry(host)), entry)
    return tuple(_resolve(entry, bootstrap, found) for entry in found.values())


def find_gateways(identity: LeadIdentity, hosts: Sequence[str]) -> tuple[str, ...]:
    """Return the gateways: the hosts of a burst through which its other hosts join.

    It is empty if all hosts connect to the lead. The other hosts need to resolve and
    reach the gateway's `connect` address, and should be stopped before the gateway.
    Raises ConfigError.
    """
    entries = {entry.host: entry for entry in expand_hosts(identity.bootstrap)}
    parents = {entries[host].parent for host in hosts if host in entries}
    return tuple(host for host in hosts if host in parents)


def follower_config(
    identity: LeadIdentity,
    hosts: Sequence[str],
    ranks: Sequence[int],
    certificate_path: str = "",
) -> str:
    """Return the text of broker.toml for these hosts of a burst, after checking it.

    `certificate_path` is the follower's path of the certificate; the default is the
    lead's path. Raises ConfigError, CertificateError.
    """
    path = certificate_path or identity.certificate
    text = tomli_w.dumps(follower_tables(identity, path))
    check(tomllib.loads(text), identity, hosts, ranks)
    return text


def follower_tables(identity: LeadIdentity, certificate_path: str) -> dict[str, Any]:
    """Return the tables of broker.toml for any follower of this lead."""
    entries = identity.bootstrap.hosts
    if not entries:
        raise ConfigError(
            "the lead has no [bootstrap] hosts, so no follower can join it",
            "write its configuration with `burst lead init`",
        )
    lead = msgspec.structs.replace(
        entries[0], host=identity.hosts[0], connect=identity.endpoint
    )
    # If the lead's entry names further hosts, it is repeated after the entry of rank 0.
    # If a host has two entries, Flux uses the first.
    shared = () if entries[0].host == lead.host else entries[:1]
    bootstrap = msgspec.structs.replace(
        identity.bootstrap, hosts=(lead, *shared, *entries[1:])
    )
    return {
        **_access_tables(identity.access),
        "bootstrap": {
            "curve_cert": certificate_path,
            **msgspec.to_builtins(bootstrap),
        },
        # There is no path, as R comes from the lead. The lead chooses a follower's host
        # name, so it differs from the node's, and without noverify Flux would drain the
        # follower. Unlike other keys, noverify does not come from the lead's
        # configuration, so it must be in the follower's file.
        "resource": {"noverify": True},
        # By default Flux retries after 30s, too late for a lead that is starting.
        # Without zmqdebug it does not log that the lead rejects the certificate.
        "tbon": {"connect_timeout": "5s", "zmqdebug": 1},
    }


def _access_tables(access: GuestAccess) -> dict[str, Any]:
    """Return the tables that let a follower serve the same users as the lead.

    Without the flags of `access` only the owner may use the follower's socket, and a
    guest's job fails there. Without `ingest` a guest's job could submit any job there:
    a follower gets the lead's whole configuration when it joins, but its job-ingest is
    loaded with the tables of its own file (flux-core 0.88), so no frobnicator would
    keep that job off the lent nodes of others.
    """
    flags = {
        "allow-guest-user": access.allow_guest_user,
        "allow-root-owner": access.allow_root_owner,
    }
    given = {name: True for name, given in flags.items() if given}
    tables: dict[str, Any] = {"access": given} if given else {}
    if access.allow_guest_user and access.ingest:
        tables["ingest"] = access.ingest
    return {**tables, "exec": {"imp": access.imp}} if access.imp else tables


def check(
    tables: Mapping[str, Any],
    identity: LeadIdentity,
    hosts: Sequence[str],
    ranks: Sequence[int],
) -> None:
    """Raise ConfigError or CertificateError if the hosts could not join with `tables`.

    `tables` are the tables of a follower's broker.toml, as read back from its text.
    Flux itself reports few of these errors: with a wrong address a follower waits for
    ever without a message.
    """
    table = dict(tables.get("bootstrap", {}))
    if not table.pop("curve_cert", ""):
        raise ConfigError(
            "bootstrap.curve_cert: is missing",
            "make a certificate with `burst keygen` and name it in the lead's file",
        )
    certificate.read(Path(identity.certificate))
    entries = expand_hosts(convert(Bootstrap, table, "bootstrap"))
    names = tuple(entry.host for entry in entries)
    if names != identity.hosts:
        raise ConfigError(
            "bootstrap.hosts: is not the lead's list of hosts",
            "if the lead's configuration was changed after its start, restart the lead",
        )
    if not identity.endpoint.startswith("tcp://") or "*" in identity.endpoint:
        raise ConfigError(
            f"no follower can connect to the lead at {identity.endpoint or 'nowhere'}",
            "set address and port under [lead]",
        )
    if entries[0].connect != identity.endpoint:
        raise ConfigError(f"bootstrap.hosts: {names[0]} is not at {identity.endpoint}")
    if len(hosts) != len(ranks):
        raise ConfigError(f"{len(hosts)} hosts for {len(ranks)} ranks")
    for host, rank in zip(hosts, ranks, strict=True):
        _check_host(host, rank, entries, hosts)


def flux_follower_argv(
    flux: str, config: Path, hostname: str, rundir: Path, *, log_level: int = 7
) -> list[str]:
    """Return the command of a Flux follower; `flux` is the program.

    It logs to its standard error instead of the lead's log, as its messages before it
    joins explain why it does not join. `log_level` is a level of syslog(3): below debug
    a broker does not report that nothing listens at the lead's address. After it has
    joined it logs next to nothing, even at debug. Raises ConfigError if rundir is too
    long for a unix socket.
    """
    socket = rundir / "local"
    check_socket(socket)
    return [
        *(flux, "broker", f"--config-path={config}"),
        *(f"-Shostname={hostname}", f"-Srundir={rundir}"),
        *(f"-Slocal-uri=local://{socket}", "-Slog-stderr-mode=local"),
        f"-Slog-stderr-level={log_level}",
    ]


class FollowerPrograms(msgspec.Struct, frozen=True):
    """The programs that start followers, as named on the followers' nodes."""

    flux: str = "flux"
    python: str = sys.executable
    """For a lead with `follower_module`; this Python must have that module."""


def follower_argv(
    lead: LeadIdentity,
    programs: FollowerPrograms,
    config: Path,
    hostname: str,
    rundir: Path,
) -> list[str]:
    """Return the command of a follower of that lead; `config` is its broker.toml.

    Raises ConfigError as `flux_follower_argv`.
    """
    if not lead.follower_module:
        return flux_follower_argv(programs.flux, config, hostname, rundir)
    return [
        *(programs.python, "-m", lead.follower_module, "follower"),
        *("--config", str(config), "--hostname", hostname, "--rundir", str(rundir)),
    ]


def check_socket(path: Path) -> None:
    """Raise ConfigError if the path is too long for a unix socket (unix(7))."""
    length = len(str(path).encode())
    if length > _LONGEST_SOCKET:
        raise ConfigError(
            f"{path}: is {length} bytes long, and the path of a unix socket may have"
            f" at most {_LONGEST_SOCKET}",
            "choose a directory with a shorter path",
        )


def _hosts(entry: HostEntry) -> tuple[str, ...]:
    try:
        hosts = parse_hostlist(entry.host)
    except ValueError as error:
        raise ConfigError(f"bootstrap.hosts: {error}") from error
    for host in hosts:
        if not is_host_name(host):
            raise ConfigError(
                f"bootstrap.hosts: not a host name: {host!r}",
                "use DNS labels: letters, digits and inner dashes, up to 63 characters"
                " each",
            )
    return hosts


def _merge(known: HostEntry, entry: HostEntry) -> HostEntry:
    return HostEntry(
        known.host,
        bind=known.bind or entry.bind,
        connect=known.connect or entry.connect,
        parent=known.parent or entry.parent,
    )


def _resolve(
    entry: HostEntry, bootstrap: Bootstrap, known: Mapping[str, HostEntry]
) -> HostEntry:
    if entry.parent == entry.host or (entry.parent and entry.parent not in known):
        raise ConfigError(
            f"bootstrap.hosts: {entry.host}: parent {entry.parent!r} is not one of the"
            " other hosts"
        )
    values = {"h": entry.host, "p": str(bootstrap.default_port), "%": "%"}

    def fill(key: str, uri: str) -> str:
        if "%p" in uri and not bootstrap.default_port:
            raise ConfigError(
                f"bootstrap: {key} {uri!r} has %p, but there is no default_port"
            )
        filled = _TOKEN.sub(lambda token: values[token[1]], uri)
        if uri and not filled.startswith(("tcp://", "ipc://")):
            raise ConfigError(
                f"bootstrap: {key} {uri!r} does not begin with tcp:// or ipc://"
            )
        return filled

    return HostEntry(
        entry.host,
        bind=fill("bind", entry.bind or bootstrap.default_bind),
        connect=fill("connect", entry.connect or bootstrap.default_connect),
        parent=entry.parent,
    )


def _check_host(
    host: str, rank: int, entries: Sequence[HostEntry], burst: Sequence[str]
) -> None:
    """Raise ConfigError if the host has another rank, or a parent outside its burst."""
    if not 0 < rank < len(entries) or entries[rank].host != host:
        raise ConfigError(
            f"bootstrap.hosts: {host} is not at rank {rank}",
            "if the lead's configuration was changed after its start, restart the lead",
        )
    parent = entries[rank].parent
    if parent in ("", entries[0].host):
        return
    if parent not in burst:
        raise ConfigError(
            f"bootstrap.hosts: {host} joins through {parent}, which is not a host of"
            " its burst",
            "let all hosts of a rank slot join through its first host",
        )
    gateway = next(entry for entry in entries if entry.host == parent)
    if not gateway.bind or not gateway.connect:
        raise ConfigError(
            f"bootstrap.hosts: {host} joins through {parent}, which lacks bind or"
            " connect"
        )
