# SPDX-License-Identifier: MIT
"""`burst report`: what happened, as a short text, as a page, and as a live page.

The page is one HTML file that needs no network and no script. Jinja2 makes it, which
the extra `report` installs:

    page = render_report(lead.call("report", {"since": "2026-11-01"}))
"""
