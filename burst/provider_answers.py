# SPDX-License-Identifier: MIT
"""Checks what a provider returns, on the thread of its worker.

A plug-in may return anything. An answer that does not fit its declaration in
`burst.provider` counts as a failed call, and never reaches the tick.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from burst.decode import from_plain
from burst.provider import OUTPUT_MOST, BurstStatus, Offer

_T = TypeVar("_T", Offer, BurstStatus)

# An answer that exceeds these numbers is an error; they bound the time of a tick.
_MOST_OFFERS = 1_000
_MOST_STATUSES = 10_000
_MOST_FOLLOWERS = 100_000
_LONGEST_NAME = 255
# The longest `why`, a sentence or the end of a log, in characters; the rest is cut.
LONGEST_WHY = 4_000
_LONGEST_ACCESS = 1_000
# Numbers that are stored and sent as JSON have 64 bits.
_LARGEST = 2**63 - 1


class BadAnswer(Exception):
    """A provider returned something else than `burst.provider` declares."""


def check_offers(found: Iterable[Offer]) -> tuple[Offer, ...]:
    """Return the result of `offers` as a tuple. Raises BadAnswer."""
    offers = _read(found, Offer, _MOST_OFFERS)
    for offer in offers:
        _check_name(offer.name, "an offer's name")
        shape = offer.shape
        numbers = (offer.max_nodes, offer.total, shape.cores, shape.gpus)
        some = offer.max_nodes and (shape.cores or shape.gpus)
        small = min(numbers) < 0 or not some
        if small or max(numbers) > _LARGEST:
            raise BadAnswer(
                f"offer {offer.name} has {numbers}: max_nodes, total, cores, GPUs"
            )
        for key in ("price", "fee", "join_time"):
            value = getattr(offer, key)
            if not (math.isfinite(value) and value >= 0):
                raise BadAnswer(f"{key} of offer {offer.name} is {value}")
        if not offer.lifetime >= 0:  # NaN neither
            raise BadAnswer(f"lifetime of offer {offer.name} is {offer.lifetime}")
        if not offer.modes:
            raise BadAnswer(f"offer {offer.name} has no modes")
    _check_unique([offer.name for offer in offers], "offers")
    return offers


def check_statuses(found: Iterable[BurstStatus]) -> tuple[BurstStatus, ...]:
    """Return the result of `observe` as a tuple, long texts cut. Raises BadAnswer."""
    statuses = _read(found, BurstStatus, _MOST_STATUSES)
    if sum(len(status.followers) for status in statuses) > _MOST_FOLLOWERS:
        raise BadAnswer(f"it shows more than {_MOST_FOLLOWERS} followers")
    for status in statuses:
        _check_name(status.burst_id, "a burst's id")
        for follower in status.followers:
            _check_name(follower.host, f"a host of {status.burst_id}")
        hosts = [follower.host for follower in status.followers]
        _check_unique(hosts, f"followers of {status.burst_id}")
        ended = status.instance.exit_status if status.instance else None
        if ended is not None and abs(ended) > _LARGEST:
            raise BadAnswer(f"the exit status of {status.burst_id} is {_shown(ended)}")
    _check_unique([status.burst_id for status in statuses], "bursts")
    return tuple(_cut(status) for status in statuses)


def _read(found: object, kind: type[_T], most: int) -> tuple[_T, ...]:
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise BadAnswer(
            f"it returned {_shown(found)}, not a sequence of {kind.__name__}"
        )
    read: list[_T] = []
    for item in found:
        if len(read) == most:
            raise BadAnswer(f"it returned more than {most} of {kind.__name__}")
        if not isinstance(item, kind):
            raise BadAnswer(f"it returned {_shown(item)}, not {kind.__name__}")
        try:
            # Structs do not check their fields when they are made.
            plain = msgspec.to_builtins(item, enc_hook=_plain)
            read.append(from_plain(plain, kind))
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
            raise BadAnswer(f"it returned a bad {kind.__name__}: {error}") from error
    return tuple(read)


def _plain(value: object) -> float:
    """Return a subclass of float, such as `burst.config.Seconds`, as a float."""
    if isinstance(value, float):
        return float(value)
    raise TypeError(f"{type(value).__name__} cannot be stored")


def _check_name(name: str, what: str) -> None:
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise BadAnswer(f"{what} is {_shown(name)}")


def _check_unique(names: Iterable[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadAnswer(f"several {what} are called {_shown(name)}")
        seen.add(name)


def _cut(status: BurstStatus) -> BurstStatus:
    """Return the status with its texts cut to their longest length."""
    replace = msgspec.structs.replace
    instance = status.instance
    if instance is not None:
        instance = replace(
            instance,
            access=storable(instance.access[:_LONGEST_ACCESS]),
            output=_storable_output(instance.output),
        )
    followers = tuple(
        replace(follower, why=_shorten(follower.why), lost=_shorten(follower.lost))
        if follower.why or follower.lost
        else follower
        for follower in status.followers
    )
    why = _shorten(status.why)
    return replace(status, why=why, followers=followers, instance=instance)


def _storable_output(output: str) -> str:
    """Return the end of an output, at most OUTPUT_MOST bytes, for the store.

    Zero bytes are replaced: Flux's KVS takes no text with one.
    """
    text = output.replace("\0", "\N{REPLACEMENT CHARACTER}")
    end = text.encode(errors="replace")[-OUTPUT_MOST:]
    return end.decode(errors="ignore")


def _shorten(why: str) -> str:
    """Return a text; if it is too long, cut its middle: a log's end says why."""
    if len(why) <= LONGEST_WHY:
        return storable(why)
    kept = LONGEST_WHY - 3
    return storable(f"{why[: kept // 4]}...{why[-(kept - kept // 4) :]}")


def storable(text: str) -> str:
    """Return a text with a question mark in place of each lone surrogate.

    `os.fsdecode`, and errors="surrogateescape" for a program's output, make such
    characters from bytes that are not UTF-8. They can neither be stored nor be in an
    answer of the service.
    """
    return text.encode(errors="replace").decode()


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
