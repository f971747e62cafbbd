# SPDX-License-Identifier: MIT
"""Versions of Flux: the part that a follower and its lead must share."""

from __future__ import annotations

import re

_VERSION = re.compile(r"(\d+)\.(\d+)(?:\D.*)?", re.ASCII | re.DOTALL)


def major_minor(version: str) -> tuple[int, int]:
    """Return the first two numbers of `0.88.0`, or of `0.88.0-12-gabc1234`.

    A lead refuses a follower for which they differ. Raises ValueError.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        raise ValueError(f"not a version of Flux: {version!r}")
    return int(match[1]), int(match[2])
