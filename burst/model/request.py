# SPDX-License-Identifier: MIT
"""Parses what a jobspec (RFC 14, RFC 25) asks for, as far as placing a job needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from burst.decode import from_plain
from burst.errors import MALFORMED, JobspecError
from burst.model.confinement import split_confinement
from burst.model.constraint import canonical
from burst.model.resource_count import LARGEST_COUNT, fluxion_reads, read_count

BURSTABLE = "burstable"
"""The attribute under `attributes.system` that marks a job as burstable."""
# A jobspec nests node, slot and core; a malicious one may nest without end.
_DEEPEST = 100
# The longest name of a provider, attribute or job, in characters.
_LONGEST_NAME = 255
_SHOWN = 200
# Keys of attributes.system that Flux reads, or that other functions here read.
_FLUX_KEYS = frozenset(
    {
        *("bank", "burst", "constraints", "cwd", "dependencies", "duration"),
        *("environment", "files", "job", "queue", "shell"),
    }
)
_MOST_ATTRIBUTES = 32
_DEEPEST_ATTRIBUTE = 4
_NO_ATTRIBUTES: Mapping[str, str] = {}


class ResourceRequest(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Resources of one job. Equal requests are placed alike, so this is hashable.

    `nodes` is 0 if the job asks for slots only (`-n` without `-N`). `slots` is the
    total. A range (RFC 14) counts with its minimum, which the job can run with.
    `constraint` is RFC 31 as canonical JSON text, empty for none.
    """

    nodes: int
    slots: int
    cores_per_slot: int
    gpus_per_slot: int = 0
    exclusive: bool = False
    constraint: str = ""
    most_nodes: int = 0
    """The most nodes that the limit of its queue allows it, 0 for any number. Flux
    itself does not count the nodes of a job that asks for slots only."""
    discrete: bool = False
    """Whether its number of nodes or slots is one of a list, such as powers of two. Of
    Flux's schedulers, only Fluxion starts such a job."""
    fluxion_reads: bool = True
    """Whether Fluxion reads its counts: see `resource_count.fluxion_reads`."""

    def __str__(self) -> str:
        slot = f"{self.cores_per_slot} core{'s' * (self.cores_per_slot != 1)}"
        if self.gpus_per_slot:
            slot += f", {self.gpus_per_slot} GPU{'s' * (self.gpus_per_slot != 1)}"
        what = f"{self.slots} slot{'s' * (self.slots != 1)} of {slot}"
        if not self.nodes:
            return what
        whole = "whole " if self.exclusive else ""
        return f"{self.nodes} {whole}node{'s' * (self.nodes != 1)}, {what}"


BurstMode = Literal["joined", "isolated"]
"""Whether a burst's nodes join the lead, or form an instance of their own."""


class BurstPreferences(msgspec.Struct, frozen=True, cache_hash=True):
    """The user's preferences about bursting: `attributes.system.burst` of the jobspec.

    They narrow what may be done for the job, and never widen a limit. Any user can
    write them by `--setattr`, so none of them is trusted as a fact.
    """

    provider: str = ""
    """The only provider whose nodes it may use; empty for any."""
    max_price: float | None = None
    """The highest price per node and hour; None for any."""
    wait: float | None = None
    """How long to try nodes that are up, in seconds; None for the site's setting."""
    where: Literal["", "together", "spread"] = ""
    """together: one burst. spread: several if no single one is large enough, which
    `[plan] spread` has to allow. Empty: as spread."""
    urgency: int = 0
    """The urgency for a job that was submitted held for the daemon to release (`flux
    submit --burst`); 0 for other jobs."""
    mode: Literal["", "joined", "isolated"] = ""
    """The mode of the burst that is made for it; empty for its provider's default."""
    wanted: bool = False
    """Whether a burst is made even if it is worth less than the site's rule asks for
    (`flux submit --burst`, without `--burst-policy=auto`)."""
    allowed: tuple[str, ...] = ()
    """Providers that the site's rule allows; empty for any. Never read from a jobspec.
    """
    allowed_price: float | None = None
    """The highest price per node-hour that the site's rule allows; None for any. Never
    read from a jobspec."""
    rule: str = ""
    """The site's rule that narrowed the user's preferences; empty if none did."""
    offer: str = ""
    """The only offer of its provider that it may use; empty for any. Never read from a
    jobspec."""
    guest: bool = False
    """Whether its user is not the owner of the instance. Never read from a jobspec."""
    tag: str = ""
    """The job may only run on bursts that were requested with this tag; empty for a job
    without a tag."""
    requeue: bool | None = None
    """Whether it is run again if it loses a node; None for what the site's rule says.
    """
    repeats: str = ""
    """The job (f58) that lost a node and that it replaces; empty for none."""
    losses: int = 0
    """How many runs that it replaces, one after the other, have lost a node."""

    def takes(self, provider: str) -> bool:
        """Tell whether the user and the site's rule allow bursts of a provider."""
        allowed = not self.allowed or provider in self.allowed
        return allowed and self.provider in {"", provider}


def parse_request(jobspec: Mapping[str, Any]) -> ResourceRequest:
    """Return the resources a jobspec asks for, counted as Flux's Rv1Pool counts them.

    The redacted jobspec of the job manager's journal is sufficient. The constraint does
    not include the confinement (see `parse_confinement`). Raises JobspecError.
    """
    found = _Found()
    try:
        _walk(jobspec["resources"], 1, found, 0)
        system = _system(jobspec)
        if found.slots is None or found.cores is None:
            raise JobspecError("its resources have no slot with cores")
        nodes, slots = found.nodes, found.slots
        if found.exclusive and nodes is None:
            nodes, slots = slots, 1
        constraint, _ = split_confinement(system.get("constraints"))
        if max(nodes or 0, slots * (nodes or 1)) > LARGEST_COUNT:
            raise ValueError("more nodes or slots than Flux supports")
        return ResourceRequest(
            nodes=nodes or 0,
            slots=slots * (nodes or 1),
            cores_per_slot=found.cores,
            gpus_per_slot=found.gpus,
            exclusive=found.exclusive,
            discrete=found.discrete_nodes or found.discrete_slots,
            fluxion_reads=found.fluxion_reads,
            constraint=canonical(constraint) if constraint else "",
        )
    except MALFORMED as error:
        raise unreadable("jobspec", error) from error


def parse_confinement(jobspec: Mapping[str, Any]) -> frozenset[int] | None:
    """Return the lent ranks that a jobspec is confined to; None if it is not."""
    try:
        return split_confinement(_system(jobspec).get("constraints"))[1]
    except MALFORMED:
        return None


def parse_duration(jobspec: Mapping[str, Any]) -> float:
    """Return the job's time limit in seconds; 0 for none. Raises JobspecError."""
    try:
        return from_plain(_system(jobspec).get("duration") or 0.0, _Amount)
    except MALFORMED as error:
        raise unreadable("duration", error) from error


def parse_queue(jobspec: Mapping[str, Any]) -> str:
    """Return the queue that a jobspec names, empty for none. Raises JobspecError."""
    try:
        return from_plain(_system(jobspec).get("queue") or "", str)
    except MALFORMED as error:
        raise unreadable("queue", error) from error


def parse_bank(jobspec: Mapping[str, Any]) -> str:
    """Return the bank that pays for a job; empty for none. Raises JobspecError.

    It is the bank that the job's user named (`flux submit --bank`), or the user's
    default bank if flux-accounting's plugin is loaded, which refuses other users'
    banks.
    """
    try:
        return from_plain(_system(jobspec).get("bank") or "", _Bank)
    except MALFORMED as error:
        raise unreadable("bank", error) from error


def parse_name(jobspec: Mapping[str, Any]) -> str:
    """Return a job's name as `flux jobs` shows it, cut to a length; empty for none.

    That is `attributes.system.job.name`, or else the program of its first task.
    """
    try:
        given = (_system(jobspec).get("job") or {}).get("name")
        if isinstance(given, str) and given:
            return given[:_LONGEST_NAME]
        command = jobspec["tasks"][0]["command"]
        program = command if isinstance(command, str) else command[0]
        return str(program).rpartition("/")[2][:_LONGEST_NAME]
    except MALFORMED:
        return ""


def parse_attributes(jobspec: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the attributes below `attributes.system` that rules may match, as text.

    Keys are dotted names; values are texts, numbers, true and false. Attributes that
    Flux itself reads are left out, and so are texts longer than a person would write.
    """
    found: dict[str, str] = {}
    try:
        for key, value in _system(jobspec).items():
            if key not in _FLUX_KEYS:
                _flatten(key, value, found, 1)
    except MALFORMED:
        return _NO_ATTRIBUTES
    return found or _NO_ATTRIBUTES


def _flatten(name: str, value: Any, found: dict[str, str], depth: int) -> None:
    if isinstance(value, Mapping):
        if depth < _DEEPEST_ATTRIBUTE:
            for key, below in value.items():
                _flatten(f"{name}.{key}", below, found, depth + 1)
        return
    if len(found) >= _MOST_ATTRIBUTES or not isinstance(value, str | int | float):
        return
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if max(len(name), len(text)) <= _LONGEST_NAME:
        found[name] = text


def parse_preferences(jobspec: Mapping[str, Any]) -> BurstPreferences:
    """Return the user's preferences. Raises JobspecError if they cannot be read."""
    try:
        found = from_plain(_system(jobspec).get("burst") or {}, _PreferencesTable)
        if not f"{found.provider}{found.tag}".isprintable():
            # Both are told to others: in the memo, the log and by `burst explain`.
            raise ValueError("a name has characters that cannot be shown")
    except MALFORMED as error:
        raise unreadable("attribute system.burst", error) from error
    return BurstPreferences(
        provider=found.provider or "",
        max_price=found.max_price,
        wait=found.wait,
        where=found.where or "",
        urgency=found.urgency or 0,
        mode=found.mode or "",
        wanted=bool(found.wanted),
        tag=found.tag or "",
        requeue=found.requeue,
        repeats=found.repeats or "",
        losses=found.losses or 0,
    )


def unreadable(what: str, error: Exception) -> JobspecError:
    """Return the error for a part of a jobspec that cannot be read.

    The cause is cut to a length: it may quote what the user wrote, of any length.
    """
    why = str(error) if isinstance(error, msgspec.MsgspecError) else repr(error)
    return JobspecError(f"its {what} cannot be read: {why[:_SHOWN]}")


def is_burstable(jobspec: Mapping[str, Any]) -> bool:
    """Tell whether `attributes.system` has the attribute with a true value."""
    try:
        return bool(jobspec["attributes"]["system"].get(BURSTABLE))
    except (AttributeError, KeyError, TypeError):
        return False


_Name = Annotated[str, msgspec.Meta(max_length=_LONGEST_NAME)]
# The ledger keeps sums by bank, and a user may name any bank.
_Bank = Annotated[str, msgspec.Meta(max_length=64, pattern=r"^[!-~]*\Z")]
_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]


class _PreferencesTable(msgspec.Struct, rename="kebab"):
    """The attribute as it is written. Unknown keys are ignored."""

    provider: _Name | None = None
    max_price: _Amount | None = None
    wait: _Amount | None = None
    where: Literal["", "together", "spread"] | None = None
    urgency: Annotated[int, msgspec.Meta(ge=0, le=31)] | None = None
    mode: Literal["", "joined", "isolated"] | None = None
    wanted: bool | None = None
    tag: _Name | None = None
    requeue: bool | None = None
    repeats: _Name | None = None
    losses: Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)] | None = None


class _Found(msgspec.Struct):
    nodes: int | None = None
    slots: int | None = None
    cores: int | None = None
    gpus: int = 0
    exclusive: bool = False
    discrete_nodes: bool = False
    discrete_slots: bool = False
    fluxion_reads: bool = True


def _system(jobspec: Mapping[str, Any]) -> Mapping[str, Any]:
    system: Mapping[str, Any] = (jobspec.get("attributes") or {}).get("system") or {}
    return system


def _walk(
    resources: Sequence[Mapping[str, Any]], factor: int, found: _Found, depth: int
) -> None:
    """Descend as Rv1Pool does: counts above a node multiply the nodes."""
    if depth > _DEEPEST:
        raise ValueError("resources nest too deeply")
    for vertex in resources:
        kind = vertex.get("type")
        written = vertex.get("count", 1)
        count, discrete = read_count(written)
        found.fluxion_reads &= fluxion_reads(written)
        below = vertex.get("with", ())
        if kind == "node":
            found.nodes, found.discrete_nodes = count * factor, discrete
            found.exclusive |= bool(vertex.get("exclusive"))
            _walk(below, factor, found, depth + 1)
            continue
        if kind == "slot":
            found.slots, found.discrete_slots = count, discrete
            found.exclusive |= bool(vertex.get("exclusive"))
        elif kind == "core":
            found.cores = count
        elif kind == "gpu":
            found.gpus = count
        _walk(below, factor * count, found, depth + 1)
