# SPDX-License-Identifier: MIT
"""What a Flux lead needs to be able to burst: broker.toml, R and a certificate.

The size of a running instance is fixed, so every host that may ever join is declared
before the lead starts: in `[bootstrap] hosts`, in the order of ranks, and in R, with
the resources that the scheduler may allocate once the host is online.

Sources: flux-config-bootstrap(5), flux-config-resource(5), flux-config-tbon(5),
flux-broker-attributes(7); RFC 20 for R.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from burst.errors import ConfigError
from burst.kits import certificate
from burst.kits.atomic_file import write_atomically
from burst.kits.broker import check_socket
from burst.lead_setup.lead_plan import (
    OWN_PROPERTY,
    HostGroup,
    LeadPlan,
    bind_uri,
    resolve_plan,
    uri_host,
)
from burst.model.confinement import LENT
from burst.model.ranks import format_hostlist
from burst.model.resource_set import EMPTY, ResourceGroup, ResourceSet, group_of

_CONFIG, _RESOURCES, _CERTIFICATE = "broker.toml", "R", "burst.cert"


class LeadFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files that were written, and how to start the lead."""

    config: Path
    resources: Path
    certificate: Path
    commands: tuple[tuple[str, ...], ...]
    """The argv that starts each own host's broker, rank 0 first, on that host."""
    uri: str
    """The URI of the running lead, for FLUX_URI on the host of rank 0."""


class LeadExtras(msgspec.Struct, frozen=True):
    """Additions to the files that the plan does not contain."""

    tables: Mapping[str, Any] = {}
    """Tables of broker.toml."""
    environment: Mapping[str, str] = {}
    """Variables of the broker of rank 0."""
    own: tuple[Mapping[str, str], ...] = ()
    """The resources of each own host in R, as the `children` of RFC 20. If empty, each
    has as many cores and GPUs, from 0 on, as the plan's shape."""
    run: Path | None = None
    """The directory of rank 0's socket; by default `run` in the lead's directory."""
    system: bool = False
    """Whether it is a system instance; its unit starts it and makes its directories."""


def write_lead(
    directory: Path,
    plan: LeadPlan,
    *,
    extra: LeadExtras = LeadExtras(),  # noqa: B008 - it is frozen
) -> LeadFiles:
    """Write the files into the directory, which is made if it does not exist.

    broker.toml and R are written anew, and an existing certificate is kept, since
    followers elsewhere may have copies of it. Raises ConfigError, before anything is
    written, for a plan that cannot work, and CertificateError for an existing
    certificate that cannot be used.
    """
    groups = resolve_plan(plan)
    files = _name(directory.absolute(), groups[0], extra)
    tables = {**_tables(plan, files, groups), **extra.tables}
    kept = files.certificate.exists()
    if kept:
        certificate.read(files.certificate)
    try:
        own = (directory / "state", extra.run or directory / "run")
        for place in (directory, *(() if extra.system else own)):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(files.resources, _resources(groups, extra.own).encode() + "\n")
        write_atomically(files.config, tomli_w.dumps(tables))
    except OSError as error:
        raise ConfigError(
            f"{directory}: cannot be written: {error.strerror}",
            "name a directory that you may write",
        ) from error
    if not kept:
        certificate.write(certificate.create(groups[0].names[0]), files.certificate)
    return files


def refuse_existing(directory: Path) -> None:
    """Raise ConfigError if the directory has one of a lead's files."""
    for name in (_CONFIG, _RESOURCES, _CERTIFICATE):
        path = directory.absolute() / name
        if path.exists():
            raise ConfigError(
                f"{path}: exists already",
                "name another directory, or overwrite it with --force",
            )


def _name(directory: Path, own: HostGroup, extra: LeadExtras) -> LeadFiles:
    config = directory / _CONFIG
    socket = (extra.run or directory / "run") / "local"
    check_socket(socket)
    brokers = tuple(
        ("flux", "broker", f"--config-path={config}", f"-Shostname={host}")
        for host in own.names
    )
    setting = [f"{name}={value}" for name, value in extra.environment.items()]
    setting = ["env", *setting] if setting else []
    lead = (
        # By default the quorum is the size, which includes hosts that join only in a
        # burst: the lead would wait for them for ever.
        f"-Sbroker.quorum={len(own.names)}",
        # Serve; run no initial program.
        "-Sbroker.rc2_none=1",
        f"-Sstatedir={directory / 'state'}",
        f"-Srundir={socket.parent}",
        f"-Slocal-uri=local://{socket}",
    )
    return LeadFiles(
        config=config,
        resources=directory / _RESOURCES,
        certificate=directory / _CERTIFICATE,
        commands=((*setting, *brokers[0], *lead), *brokers[1:]),
        uri=f"local://{socket}",
    )


def _tables(
    plan: LeadPlan, files: LeadFiles, groups: Sequence[HostGroup]
) -> dict[str, Any]:
    address = uri_host(plan.address)
    ways = (address, *(group.gateway for group in groups))
    ipv6 = {"enable_ipv6": True} if any("[" in way for way in ways) else {}
    return {
        "bootstrap": {
            "curve_cert": str(files.certificate),
            "default_port": plan.port,
            "default_bind": "tcp://*:%p",
            "default_connect": "tcp://%h:%p",
            **ipv6,
            "hosts": list(_hosts(f"tcp://{address}:{plan.port}", groups)),
        },
        "resource": {
            "path": str(files.resources),
            # What hwloc finds on a node may differ from R: several followers may run on
            # one host, under names of their own.
            "noverify": True,
        },
        "tbon": {
            # After this time a node that stopped answering counts as lost.
            "tcp_user_timeout": "20s",
            # Flux's default of 30s is long for a peer that is just being started.
            "connect_timeout": "5s",
        },
    }


def _hosts(connect: str, groups: Sequence[HostGroup]) -> Iterator[dict[str, str]]:
    """Yield the entries of `hosts`, in the order of ranks."""
    own = groups[0].names
    yield {"host": own[0], "bind": bind_uri(connect), "connect": connect}
    if own[1:]:
        yield {"host": format_hostlist(own[1:])}
    for group in groups[1:]:
        yield from slot_entries(group)


def slot_entries(group: HostGroup) -> Iterator[dict[str, str]]:
    """Yield the entries of `hosts` for a rank slot."""
    first, rest = group.names[0], group.names[1:]
    if not group.gateway:
        yield {"host": format_hostlist(group.names)}
        return
    yield {"host": first, "bind": bind_uri(group.gateway), "connect": group.gateway}
    yield {"host": format_hostlist(rest), "parent": first}


def _resources(
    groups: Sequence[HostGroup], own: Sequence[Mapping[str, str]]
) -> ResourceSet:
    """Return R of all ranks; `own` has the resources of each own host, if known."""
    found, rank = EMPTY, 0
    for group in groups:
        ranks = range(rank, rank + len(group.names))
        if own and not rank:
            entries = zip(map(str, ranks), own, strict=True)
            each = [ResourceGroup(number, children) for number, children in entries]
            found = found.with_ranks(each, group.names, [OWN_PROPERTY])
        else:
            found = with_group(found, group, ranks)
        rank = ranks.stop
    return found


def with_group(resources: ResourceSet, group: HostGroup, ranks: range) -> ResourceSet:
    """Return R with the ranks of a group of hosts, and their properties.

    Raises ConfigError if R contains a graph for Fluxion (JGF, RFC 4): Fluxion would
    take its nodes from the graph, in which the new ranks are missing.
    """
    if resources.scheduling is not msgspec.UNSET:
        raise ConfigError(
            "R has the key `scheduling`, a graph for Fluxion, in which ranks that are"
            " added are missing: no job would start on them",
            "make R without it, as Fluxion makes a graph of R itself; then run this"
            " again",
        )
    names = slot_properties(group) if ranks.start else [OWN_PROPERTY]
    return resources.with_ranks([group_of(ranks, group.shape)], group.names, names)


def slot_properties(group: HostGroup) -> list[str]:
    """Return the properties of the ranks of a slot."""
    # A slot named as OWN_PROPERTY must not count as the lead's own nodes.
    slot = group.slot if group.slot != OWN_PROPERTY else LENT
    lent = (LENT, slot, *([group.provider] if group.provider else []))
    return list(dict.fromkeys(lent))
