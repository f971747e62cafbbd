# SPDX-License-Identifier: MIT
"""A daemon on a real Flux answers over HTTP, and its metrics are what Flux says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from tests.cli.cli_harness import open_harness
from tests.contract.instance import SLEEP, Submission
from tests.flux_instance import FLUX, MISSING, FluxInstance
from tests.http.clients import ask, bearer
from tests.support.ports import free_port
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.flux, pytest.mark.skipif(not FLUX, reason=MISSING)]

TOKEN = "d" * 40


def values(text: str, name: str) -> dict[tuple[str, ...], float]:
    """Return the values of a metric by those of its labels, in their alphabet."""
    return {
        tuple(sample.labels.values()): sample.value
        for family in parse_text(text)
        for sample in family.samples
        if sample.name == name
    }


def test_health_metrics_and_status_of_a_real_lead(
    instance: FluxInstance, tmp_path: Path
) -> None:
    port, token = free_port(), tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    with open_harness(instance) as cli:
        cli.write(
            http={"listen": f"127.0.0.1:{port}", "token_file": str(token)},
            limits={"max_nodes": 1},
        )
        with cli.daemon():
            wait_until(lambda: ask(port, "/readyz").status == 200, "readiness")
            assert ask(port, "/healthz").status == 200
            assert ask(port, "/metrics").status == 401
            system = {"burstable": True}
            large = Submission(
                nodes=3,
                slots=3,
                cores=1,
                gpus=0,
                command=SLEEP,
                urgency=16,
                system=system,
            )
            instance.submit_job(large)

            def metrics() -> str:
                return ask(port, "/metrics", headers=bearer(TOKEN)).body

            def waiting() -> float:
                return sum(values(metrics(), "flux_burst_pending_jobs").values())

            wait_until(lambda: waiting() == 1, metrics)
            assert values(metrics(), "flux_burst_lead_up") == {(): 1}
            assert values(metrics(), "flux_burst_slots")["free",] == 2
            shown = json.loads(ask(port, "/status", headers=bearer(TOKEN)).body)
            assert shown["lead"]["kind"] == "flux"
            assert shown["pending"] == 1
        with pytest.raises(ConnectionRefusedError):
            ask(port, "/healthz")
