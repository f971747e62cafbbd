# SPDX-License-Identifier: MIT
"""Facts to findings: scripts that Flux runs on lent nodes."""

from typing import Any

import pytest

from burst.doctor.check_job_scripts import check_job_scripts
from tests.doctor.reading import NOTE, levels, said

EXEC = {"imp": "/libexec/flux-imp"}
PERILOG = [{"load": "/lib/perilog.so"}, {"load": "mf_priority.so"}]
EACH = {"per-rank": True}
IMP = "/libexec/flux-imp run"
ALL = {
    "plugins": PERILOG,
    "prolog": {**EACH, "command": ["mount", "/a b"]},
    "epilog": EACH,
    "housekeeping": {"release-after": "30s"},
}


@pytest.mark.parametrize(
    ("table", "runs"),
    [
        ({"plugins": PERILOG, "prolog": EACH}, f"prolog ({IMP} prolog). A node"),
        (ALL, f"prolog (mount '/a b'), epilog ({IMP} epilog), housekeeping ({IMP} ho"),
        ({"housekeeping": {"command": ["tidy"]}}, "housekeeping (tidy). A node"),
        # What runs beside the lead alone is not.
        ({}, ""),
        ({"prolog": EACH, "plugins": [{"load": "mf_priority.so"}]}, ""),
        ({"plugins": PERILOG, "prolog": {"command": ["true"]}}, ""),
        ({"plugins": [{"remove": "*"}]}, ""),
    ],
)
def test_what_runs_on_lent_nodes_is_named(table: dict[str, Any], runs: str) -> None:
    found = list(check_job_scripts({"job-manager": table, "exec": EXEC}))
    assert levels(found) == ([NOTE] if runs else [])
    assert not runs or f"the site's own: {runs}" in said(found)
