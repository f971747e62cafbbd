# SPDX-License-Identifier: MIT
"""`burst report`: what happened, in short, as a page, and as a page that is live.

The page is one HTML file that needs no network and no script. Jinja2 makes it, which
the extra `report` brings:

    page = render_report(lead.call("report", {"since": "2026-11-01"}))
"""
