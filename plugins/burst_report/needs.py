# SPDX-License-Identifier: MIT
"""Check for the extra `report`, which the page of a report needs."""

from __future__ import annotations

from importlib.util import find_spec

NEEDS = (
    "the page of a report needs Jinja2",
    "pip install 'flux-burst-orchestrator[report]'",
)
"""What is missing, and what to do about it."""


def can_render() -> bool:
    """Tell whether `burst_report.page` can be imported, without importing it."""
    return find_spec("jinja2") is not None
