# SPDX-License-Identifier: MIT
"""A real Prometheus reads a real daemon, and answers each query of ours."""

import json
import re
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_harness import open_harness
from tests.embedded_instance import embedded_instance
from tests.manifests.monitoring import SERIES, queries, rule_groups
from tests.support.ports import free_port
from tests.support.waiting import HANG_S, wait_until

pytestmark = [pytest.mark.programs, pytest.mark.prometheus]
TOKEN = "b" * 40


class PrometheusProcess:
    """A Prometheus that scrapes one daemon."""

    def __init__(self, port: int) -> None:
        self.port = port

    def get(self, path: str, **fields: str) -> Any:
        url = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(fields)}"
        with urllib.request.urlopen(url, timeout=HANG_S) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    def query(self, text: str) -> list[Any]:
        return list(self.get("/api/v1/query", query=text)["result"])

    def lacks(self) -> list[Any]:
        """Return what is not as at a daemon that is well: scrape, series, rules."""
        (target,) = self.get("/api/v1/targets")["activeTargets"]
        there = {name for name in SERIES if self.query(f"count({name})")}
        rules = self.get("/api/v1/rules")["groups"][0]["rules"]
        return [
            *([target] if target["health"] != "up" else ()),
            *(SERIES.keys() - there ^ set(UNSEEN)),
            *(r for r in rules if r["health"] != "ok" or r["state"] == "firing"),
        ]

    def is_ready(self) -> bool:
        try:
            url = f"http://127.0.0.1:{self.port}/-/ready"
            urllib.request.urlopen(url, timeout=HANG_S)
        except OSError:
            return False
        return True


@contextmanager
def prometheus(directory: Path, target: int) -> Iterator[PrometheusProcess]:
    """Yield one that scrapes that port each second, with our rules."""
    port = free_port()
    (directory / "rules.yml").write_text(json.dumps(rule_groups()))
    (directory / "token").write_text(TOKEN)
    scrape = {
        "job_name": "flux-burst",
        "authorization": {"credentials_file": str(directory / "token")},
        "static_configs": [{"targets": [f"127.0.0.1:{target}"]}],
    }
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(directory / "rules.yml")],
        "scrape_configs": [scrape],
    }
    (directory / "prometheus.yml").write_text(json.dumps(config))
    command = ["prometheus", f"--config.file={directory}/prometheus.yml"]
    command += [f"--storage.tsdb.path={directory}/data"]
    command += [f"--web.listen-address=127.0.0.1:{port}"]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        found = PrometheusProcess(port)
        wait_until(found.is_ready, (directory / "log").read_text)
        yield found
    finally:
        process.terminate()
        process.wait(HANG_S)


# Nothing of these has happened: they have no series, or one whose rate is no number.
UNSEEN = (
    *("flux_burst_forecast_near_ratio", "flux_burst_forecast_inside_ratio"),
    "flux_burst_notices_failing",
    "flux_burst_pending_jobs",
)


def test_each_query_is_answered_and_no_alert_fires_on_a_daemon_that_is_well(
    tmp_path: Path,
) -> None:
    port, token = free_port(), tmp_path / "http-token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    http = {"listen": f"127.0.0.1:{port}", "token_file": str(token)}
    with embedded_instance() as instance, open_harness(instance) as cli:
        cli.write(http=http, budget=[{"limit": 100.0}])
        with cli.daemon(), prometheus(tmp_path, port) as found:
            wait_until(lambda: found.query("flux_burst_lead_up == 1"), "a scrape")
            asked = cli.run("request", "-N2").lines[0]
            (burst,) = re.findall("burst-[0-9]-[0-9a-f]{6}", asked)
            cli.wait_for_state(burst, "online")
            wait_until(
                lambda: found.query("sum(flux_burst_nodes_up) == 2"),
                "nodes that are up",
            )
            wait_until(
                lambda: found.query(
                    'increase(flux_burst_stage_duration_seconds_count{stage="online"}[1h])'
                    " > 0"
                ),
                "the burst in a histogram",
            )
            for query in queries():
                found.query(query)
            # A scrape may take too long on a busy machine, and what it brings is
            # missing until the next.
            wait_until(lambda: not found.lacks(), lambda: f"no {found.lacks()}")
            assert cli.run("down", burst).status == 0
            wait_until(
                lambda: found.query(
                    "sum(flux_burst_bursts_ended_total) == 1"
                    " and sum(flux_burst_nodes_provisioned) == 0"
                ),
                "the end of the burst",
            )
