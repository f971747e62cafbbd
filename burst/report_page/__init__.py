# SPDX-License-Identifier: MIT
"""A page of what happened, made of the daemon's answer to the method `report`.

One HTML file that needs no network and no script, to be read on a screen or on paper:

    page = render_report(lead.call("report", {"since": "2026-11-01"}))

All of it is pure, and all texts are escaped: names of jobs and reasons are input.
"""

from burst.report_page.page import render_report

__all__ = ["render_report"]
