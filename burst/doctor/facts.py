# SPDX-License-Identifier: MIT
"""The facts that checks judge. What could not be read is a ReadFailure instead."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from burst.config import Settings, StandingNodes
from burst.core.orphans import Orphan
from burst.core.plan.slots import RankSlot
from burst.core.records import Records
from burst.flux.boot_info import BootInfo
from burst.model.finding import Finding
from burst.model.lead import LeadIdentity, LeadView
from burst.provider import BurstStatus, Offer


class ReadFailure(msgspec.Struct, frozen=True):
    """Why something could not be read, and what to do about that."""

    what: str
    advice: str = ""


class SettingsFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The settings file."""

    path: str
    """Empty if there is none."""
    settings: Settings
    """The defaults where the file cannot be used."""
    trouble: ReadFailure | None = None
    """Why it cannot be used."""


class FluxFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Flux on this host."""

    program: str
    """Path of `flux`; empty if there is none on PATH."""
    version: str | ReadFailure = ""
    """Of that program."""
    bindings: str | ReadFailure
    """Directory of the Python bindings that we use."""
    library: str = ""
    """Version of the library that they load."""


class LeadFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The lead."""

    uri: str
    """Where it was looked for; empty for Flux's own default."""
    source: str
    """Who said so: `--uri`, `lead.uri`, `FLUX_URI`, or empty."""
    identity: LeadIdentity | ReadFailure
    boot: BootInfo | ReadFailure | None = None
    """None for a lead that is not Flux."""
    owner: str = ""
    """The owner tag that the settings give; empty for that of the lead's store."""


class HandshakeResult(enum.Enum):
    """What became of an attempt to connect as a follower would."""

    ACCEPTED = "lead"
    """The certificate was accepted."""
    REJECTED = "stranger"
    """Something listens, and does not accept the certificate."""
    NO_ANSWER = "silent"
    """Something listens, and did not answer in time as a lead does."""
    UNVERIFIED = "open"
    """Something listens. There was no certificate to try."""
    REFUSED = "refused"
    TIMEOUT = "timeout"
    UNRESOLVED = "unresolved"
    FAILED = "failed"


class EndpointFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The address that followers connect to, and what listens there."""

    endpoint: str | ReadFailure
    own: str
    """What the lead itself says, without the settings."""
    handshake: HandshakeResult | ReadFailure | None = None
    """None where there is nothing to connect to."""
    detail: str = ""
    """What the operating system said, or how long an answer was waited for."""
    certificate: str
    """Its path; empty if the lead has none."""
    keys: str | ReadFailure = ""
    """Name and fingerprint of the certificate."""


class InstalledFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What `burst setup` installs, as far as Flux finds it for this user."""

    plugin: str = ""
    """Path of the command-line plugin; empty if there is none."""
    jobs_format: str = ""
    """Path of the file with the format of flux jobs -o burst."""
    exports: Mapping[str, str] = {}
    """Variables that this shell lacks, and values by which Flux finds what is there."""


class ProviderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One provider, as far as it answered."""

    name: str
    type: str
    enabled: bool = True
    trouble: ReadFailure | None = None
    """Why it cannot even be made."""
    offers: Sequence[Offer] | ReadFailure = ()
    statuses: Sequence[BurstStatus] | ReadFailure = ()
    """Its bursts, for the lead's owner."""
    findings: Sequence[Finding] | ReadFailure = ()
    """Its own, see `Provider.examine`."""
    standing: Sequence[StandingNodes] = ()
    """The minimums of its table."""


class RuntimeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """How the lead and our records are now."""

    daemon: dict[str, Any] | ReadFailure | None
    """What the daemon answers to `ping`; None if none serves."""
    records: Records | ReadFailure
    view: LeadView | ReadFailure
    slots: Sequence[RankSlot] = ()
    orphans: Sequence[Orphan] = ()


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Owner and mode of a file or directory, symbolic links followed."""

    path: str
    uid: int
    mode: int
    """Permission bits, with setuid."""
    nosuid: bool = False
    """Its file system is mounted so that setuid has no effect."""


class MultiUserFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What other users' jobs need on the lead's host, flux-security(5)."""

    owner: int
    """UID of the instance's owner."""
    user: str
    """The owner's name; the number where there is none."""
    imp: FileFacts | ReadFailure | None
    """None where the lead's configuration names no IMP."""
    shell: str | ReadFailure
    """The job shell."""
    exec_table: Mapping[str, Any] | ReadFailure | None
    """`[exec]` of the IMP's own configuration; empty if there is none, None where this
    user may not read it."""
    sign_table: Mapping[str, Any] | ReadFailure
    """`[sign]`; empty if there is none."""
    security_files: Sequence[FileFacts] = ()
    """flux-security's files, and the directories that they are in."""
    munge: str | ReadFailure
    """Who a credential is from that was just made and read."""
    certificate: FileFacts | ReadFailure
    rundir: str
    """Directory of the lead's socket."""
    rundir_closed: str
    """What of its path other users cannot enter; empty if they can."""
    python: Mapping[str, str] | ReadFailure
    """Paths that Flux's Python commands read, and what of each others cannot read."""
    trusted: Mapping[str, str] | ReadFailure
    """Files that decide what brokers and daemon run as the owner, and what of the path
    of each others than root and the owner can change, empty for nothing."""
    daemon: int | None
    """UID of the daemon; None if none serves on this host."""
