# SPDX-License-Identifier: MIT
"""`burst report`: what happened, as a short text, as a page, and as a live page.

The page is one HTML file that needs no network and no script. Jinja2 makes it, which
the extra `report` installs:

    page = render_report(lead.call("report", {"since": "2026-11-01"}))
"""

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
