# SPDX-License-Identifier: MIT
"""The facts that checks judge. A fact that could not be read is a ReadFailure."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from burst.config import Settings, StandingNodes
from burst.core.orphans import Orphan
from burst.core.plan.slots import RankSlot
from burst.core.records import Records
from burst.flux.identity import BootInfo
from burst.model.finding import Finding
from burst.model.lead import LeadIdentity, LeadView
from burst.provider import BurstStatus, Offer


class ReadFailure(msgspec.Struct, frozen=True):
    """Why something could not be read, and what to do about that."""

    what: str
    advice: str = ""


class SettingsFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The settings file, and the settings in it."""

    path: str
    """The path of the file; empty if there is none."""
    settings: Settings
    """The settings; the defaults if the file cannot be used."""
    trouble: ReadFailure | None = None
    """Why the file cannot be used; None if it can."""


class FluxFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Flux on this host."""

    program: str
    """Path of `flux`; empty if there is none on PATH."""
    version: str | ReadFailure = ""
    """Version of that program."""
    bindings: str | ReadFailure
    """Directory of the Python bindings that we use."""
    library: str = ""
    """Version of the library that they load."""


class LeadFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The lead."""

    uri: str
    """The URI that was tried; empty for Flux's own default."""
    source: str
    """What named the URI: `--uri`, `lead.uri`, `FLUX_URI`, or empty."""
    identity: LeadIdentity | ReadFailure
    boot: BootInfo | ReadFailure | None = None
    """None for a lead that is not Flux."""
    owner: str = ""
    """The owner tag that the settings give; empty for that of the lead's store."""


class HandshakeResult(enum.Enum):
    """The result of an attempt to connect as a follower would."""

    ACCEPTED = "lead"
    """The certificate was accepted."""
    REJECTED = "stranger"
    """Something listens, but does not accept the certificate."""
    NO_ANSWER = "silent"
    """Something listens, but did not answer in time as a lead does."""
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
    """The endpoint that the lead itself gives, without the settings."""
    handshake: HandshakeResult | ReadFailure | None = None
    """The result of a trial connection; None if there is nothing to connect to."""
    detail: str = ""
    """The message of the operating system, or the time spent waiting for an answer."""
    certificate: str
    """Path of the certificate; empty if the lead has none."""
    keys: str | ReadFailure = ""
    """Name and fingerprint of the certificate."""


class InstalledFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Files of `burst setup`, as far as Flux finds them for this user."""

    plugin: str = ""
    """Path of the command-line plugin; empty if there is none."""
    jobs_format: str = ""
    """Path of the file with the format of flux jobs -o burst."""
    exports: Mapping[str, str] = {}
    """Variables to set in this shell so that Flux finds the installed files."""
    lacking: tuple[str, ...] = ()
    """Paths of frobnicators in the lead's list that are no file, or not readable."""
    outdated: tuple[str, ...] = ()
    """Paths of the plugin and of our frobnicator, if another version installed them."""


class OwnHostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the own hosts other than that of rank 0 have; hostlists, empty for none."""

    path: str
    """Path of our frobnicator, in the lead's list."""
    without_file: str = ""
    """Hosts on which it is no file that the owner can read."""
    without_table: str = ""
    """Hosts whose files of Flux's configuration do not name it."""


class ProviderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One provider, as far as it answered."""

    name: str
    type: str
    enabled: bool = True
    trouble: ReadFailure | None = None
    """Why it could not be made or asked; None if it could."""
    asked_at: float = 0.0
    """When it was asked, in seconds since the epoch."""
    offers: Sequence[Offer] | ReadFailure = ()
    statuses: Sequence[BurstStatus] | ReadFailure = ()
    """Its bursts with the lead's owner tag."""
    findings: Sequence[Finding] | ReadFailure = ()
    """Findings of the provider itself, see `Provider.examine`."""
    standing: Sequence[StandingNodes] = ()
    """The standing minimums in its table."""


class RuntimeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The present state of the lead and of our records."""

    daemon: dict[str, Any] | ReadFailure | None
    """The daemon's answer to `ping`; None if no daemon serves the lead."""
    records: Records | ReadFailure
    unit: str = ""
    """The state of the daemon's unit on this host (systemctl(1), ActiveState); empty if
    a daemon serves, or if no unit is for this lead."""
    archive: ReadFailure | None = None
    """Why the archive of costs cannot be written; None if it can."""
    view: LeadView | ReadFailure
    slots: Sequence[RankSlot] = ()
    orphans: Sequence[Orphan] = ()
    unlisted: Sequence[str] = ()
    """What keeps orphans from being found, each in a few words."""


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Owner and mode of a file or directory, symbolic links followed."""

    path: str
    uid: int
    mode: int
    """Permission bits, with setuid."""
    nosuid: bool = False
    """Whether its file system is mounted so that setuid has no effect."""


class MultiUserFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What other users' jobs need on the lead's host, flux-security(5)."""

    owner: int
    """UID of the instance's owner."""
    user: str
    """The owner's name; the UID if it has no name."""
    imp: FileFacts | ReadFailure | None
    """The IMP; None if the lead's configuration names none."""
    shell: str | ReadFailure
    """The job shell."""
    exec_table: Mapping[str, Any] | ReadFailure | None
    """`[exec]` of the IMP's own configuration; empty if there is none, None if this
    user may not read it."""
    sign_table: Mapping[str, Any] | ReadFailure
    """`[sign]` of flux-security's configuration; empty if there is none."""
    security_files: Sequence[FileFacts] = ()
    """flux-security's files, and the directories that contain them."""
    munge: str | ReadFailure
    """The user in a munge credential that was just made and read."""
    certificate: FileFacts | ReadFailure
    rundir: str
    """Directory of the lead's socket."""
    rundir_closed: str
    """The part of its path that other users cannot enter; empty if they can."""
    python: Mapping[str, str] | ReadFailure
    """Paths that Flux's Python commands read, and the part of each that other users
    cannot read; empty if they can."""
    trusted: Mapping[str, str] | ReadFailure
    """Files that decide what brokers and daemon run as the owner, and the part of each
    path that users other than root and the owner can change; empty for none."""
    daemon: int | None
    """UID of the daemon; None if none serves on this host."""
