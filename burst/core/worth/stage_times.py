# SPDX-License-Identifier: MIT
"""Samples of how long bursts took to come online and to be taken down, as stored.

Only the newest are kept, and each counts DECAY of the next newer one: today's samples
show how slow a cloud is today, those of a year ago do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

KEPT = 30
"""How many samples of each stage are kept; the oldest of them counts a twentieth of the
newest."""
DECAY = 0.9
_MOST_KINDS = 500
"""The most kinds (offer and size class) of one provider: each has about 600 bytes, and
a record at most 1 MiB."""


class StageTimes(msgspec.Struct, frozen=True, array_like=True):
    """How long the last bursts of one kind took, in seconds, the newest last."""

    online: tuple[float, ...] = ()
    """From the first call of `provision` until all ranks were online."""
    teardown: tuple[float, ...] = ()
    """From the end of use until the provider confirmed that nothing was left."""


class ProviderTimes(msgspec.Struct, frozen=True):
    """The times of one provider, by `kind_of`; the kind learnt last comes last."""

    kinds: Mapping[str, StageTimes] = {}

    def learn(
        self, kind: str, online: float | None = None, teardown: float | None = None
    ) -> ProviderTimes:
        """Return the times with another sample."""
        known = self.kinds.get(kind, StageTimes())
        new = StageTimes(
            _with_sample(known.online, online), _with_sample(known.teardown, teardown)
        )
        rest = {name: times for name, times in self.kinds.items() if name != kind}
        newest = list(rest.items())[-_MOST_KINDS + 1 :]
        return ProviderTimes({**dict(newest), kind: new})


def kind_of(offer: str, nodes: int) -> str:
    """Return the offer with the size class: up to 1, 2, 4, 8, 16... nodes."""
    return f"{offer}/{1 << max(0, nodes - 1).bit_length()}"


def quantile(samples: Sequence[float], part: float) -> float:
    """Return the value that the given part of the samples does not exceed, by weights.

    There is at least one sample.
    """
    weights = [DECAY**age for age in range(len(samples) - 1, -1, -1)]
    ordered = sorted(zip(samples, weights, strict=True))
    least, reached = part * sum(weights), 0.0
    for sample, weight in ordered:
        reached += weight
        if reached >= least:
            return sample
    return ordered[-1][0]


def _with_sample(samples: tuple[float, ...], new: float | None) -> tuple[float, ...]:
    return samples if new is None else (*samples, round(new, 3))[-KEPT:]
