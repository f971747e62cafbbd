# SPDX-License-Identifier: MIT
"""Facts to findings: scripts that Flux runs on lent nodes."""

from typing import Any

import pytest

from burst.doctor.check_config import check_job_scripts
from tests.doctor.reading import NOTE, levels, said

EXEC = {"imp": "/libexec/flux-imp"}
PERILOG = [{"load": "/lib/perilog.so"}, {"load": "mf_priority.so"}]
EACH = {"per-rank": True}


@pytest.mark.parametrize(
    ("table", "runs"),
    [
        ({"plugins": PERILOG, "prolog": EACH}, "prolog (/libexec/flux-imp run prolog)"),
        (
            {
                "plugins": PERILOG,
                "prolog": {**EACH, "command": ["mount", "/a b"]},
                "epilog": EACH,
                "housekeeping": {"release-after": "30s"},
            },
            "prolog (mount '/a b'), epilog (/libexec/flux-imp run epilog), housekeeping"
            " (/libexec/flux-imp run housekeeping)",
        ),
        ({"housekeeping": {"command": ["tidy"]}}, "housekeeping (tidy)"),
    ],
)
def test_what_runs_on_lent_nodes_is_named(table: dict[str, Any], runs: str) -> None:
    found = list(check_job_scripts({"job-manager": table, "exec": EXEC}))
    assert levels(found) == [NOTE]
    assert f"the site's own: {runs}. A node" in said(found)


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"prolog": EACH, "plugins": [{"load": "mf_priority.so"}]},
        {"plugins": PERILOG, "prolog": {"command": ["true"]}},
        {"plugins": [{"remove": "*"}]},
    ],
)
def test_what_runs_beside_the_lead_alone_is_not(table: dict[str, Any]) -> None:
    assert list(check_job_scripts({"job-manager": table})) == []
