# SPDX-License-Identifier: MIT
"""Make the page of a report: Jinja2 fills templates/page.html with a report.

All texts are escaped, and control characters in them are replaced, because names of
jobs and reasons come from users.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from burst.model.decision import why_waits
from burst.model.fsd import rounded_span
from burst.model.printable import printable
from burst_report import bars
from burst_report.figures import (
    FAILED,
    Row,
    amount,
    failures,
    results,
    settled_since,
    sums,
    waits_of,
    when,
)


def render_report(data: Row, refresh: int = 0) -> str:
    """Return a page for the daemon's answer to the method `report`.

    With `refresh` a browser loads it again after this number of seconds.
    """
    failed = failures(data)
    counted = Counter((row["provider"], row["result"]) for row in failed)
    return _template().render(
        data=data,
        refresh=refresh,
        counted=results(data),
        failed=failed,
        failures=counted.most_common(),
        money=sums(data),
        settled_since=settled_since(data),
        waits=waits_of(data),
        scale=bars.time_scale(data) if data["bursts"] else None,
        online_times=[
            (f"{provider['name']}/{offer['name']}", offer["online"])
            for provider in data["providers"]
            for offer in provider["offers"]
            if offer["online"]
        ],
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("burst_report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "amount": amount,
        "span": rounded_span,
        "when": when,
        "why_waits": why_waits,
    }
    environment.globals |= {"bars": bars, "FAILED": FAILED}
    return environment.get_template("page.html")


def _shown(value: Any) -> Any:
    """Return a value as the page shows it; HTML stays as it is."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value)
    return value
