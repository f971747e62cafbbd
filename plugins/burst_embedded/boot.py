# SPDX-License-Identifier: MIT
"""Read the files that a broker needs to start: `[bootstrap]` of broker.toml, and R.

Source: flux-config-bootstrap(5) for the first, RFC 20 for the second. Tables that only
Flux needs are ignored, so that one file serves both.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from burst.config import convert, read_toml
from burst.errors import ConfigError
from burst.kits import certificate
from burst.kits.broker import expand_hosts
from burst.kits.certificate import Certificate
from burst.lead_setup import lead_config
from burst.model.lead import Bootstrap, HostEntry
from burst.model.resource_set import ResourceSet, shape_of


class BrokerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One broker's part in an instance."""

    hosts: tuple[HostEntry, ...]
    """One host for each rank, with defaults and `%h`, `%p` filled in."""
    rank: int
    bootstrap: Bootstrap
    """The table as it is written in the file."""
    certificate: Certificate
    certificate_path: Path
    read_at: float
    """When the certificate was read, in seconds since the epoch."""

    @property
    def hostname(self) -> str:
        """This broker's own host."""
        return self.hosts[self.rank].host


def read_broker_config(path: Path, hostname: str) -> BrokerConfig:
    """Return the configuration in broker.toml for the broker of that host.

    Raises ConfigError, CertificateError.
    """
    written = read_toml(path).get("bootstrap")
    if not isinstance(written, Mapping) or "curve_cert" not in written:
        raise ConfigError(
            f"{path}: bootstrap.curve_cert: is missing",
            "name the certificate that the lead and its followers share;"
            " `burst lead init` writes such a file",
        )
    table = {key: value for key, value in written.items() if key != "curve_cert"}
    bootstrap = convert(Bootstrap, table, f"{path}: bootstrap")
    try:
        hosts = expand_hosts(bootstrap)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.what}", error.advice) from error
    names = [entry.host for entry in hosts]
    if hostname not in names:
        raise ConfigError(
            f"{path}: bootstrap.hosts: {hostname} is not among them",
            "start it with the --hostname of one that is, or add it to the lead's file"
            " and restart the lead",
        )
    keypair = Path(str(written["curve_cert"])).absolute()
    read_at = time.time()
    return BrokerConfig(
        hosts=hosts,
        rank=names.index(hostname),
        bootstrap=bootstrap,
        certificate=certificate.read(keypair),
        certificate_path=keypair,
        read_at=read_at,
    )


def read_resources(path: Path, hosts: Sequence[HostEntry]) -> ResourceSet:
    """Return R, read from the file that `[resource] path` names.

    Raises ConfigError, also if R does not have `hosts` as ranks 0, 1 and so on.
    """
    table = read_toml(path).get("resource", {})
    source = table.get("path") if isinstance(table, Mapping) else None
    if not isinstance(source, str):
        raise ConfigError(
            f"{path}: resource.path: is missing",
            "the embedded lead discovers nothing: name a file with R, as"
            " `burst lead init` writes it",
        )
    where = Path(source)
    resources = lead_config.read_resources(where)
    try:
        for node in resources.nodes:
            shape_of(node.children)
        named = [(node.rank, node.host) for node in resources.nodes]
    except ValueError as error:
        raise ConfigError(
            f"{where}: is not a valid R: {error}",
            "make one with `burst lead init` or `flux R encode`",
        ) from error
    if named != list(enumerate(entry.host for entry in hosts)):
        raise ConfigError(
            f"{where}: does not match bootstrap.hosts of {path}",
            "both must name the same hosts in the same order",
        )
    return resources
