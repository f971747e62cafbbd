# SPDX-License-Identifier: MIT
"""The lead in a pod, its daemon beside it, brokers elsewhere: real Flux, manifests/.

All that is done with the lead is `flux submit`.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.shellimage import NEXT_IMAGE
from tests.kubelab.cluster import Cluster
from tests.nodes.seed import MANIFESTS, Seed, planted, run_experiment, upgrade_daemon
from tests.nodes.waiting import wait_until
from tests.support.fluxlead import needs_flux
from tests.support.waiting import HANG_S

pytestmark = [pytest.mark.nodes, needs_flux]


def test_a_lost_lead_pod_does_not_lose_its_burst(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The next pod has the records, so that the daemon takes the burst down."""
    with planted(Seed, cluster, tmp_path) as seed:
        seed.apply(idle="10m")
        before = keep_a_burst(seed)
        seed.delete_pod("--grace-period=0", "--force")
        wait_until(lambda: seed.status() != {}, seed.look)
        take_down(seed, before)


def test_its_node_is_drained_and_a_new_image_applied(
    cluster: Cluster, tmp_path: Path
) -> None:
    """As manifests/README.md says. Jobs that wait are kept, and a burst is known."""
    with planted(Seed, cluster, tmp_path) as seed:
        seed.apply(idle="10m")
        before = keep_a_burst(seed)
        held = seed.flux("submit", "--urgency=hold", "--cwd=/tmp", "true").strip()
        first = seed.pod()
        seed.flux("queue", "stop", "--all", "--quiet")
        seed.flux("queue", "idle", f"--timeout={HANG_S:g}s", "--quiet")
        assert "disruption budget" in seed.evict()
        delete = ("delete", "job/lead", "-n", seed.near, "--cascade=foreground")
        cluster.kubectl(*delete)
        seed.apply_again()
        cluster.kubectl(*documented_wait(seed.near))
        wait_until(lambda: seed.has_other_pod(first) and seed.status(), seed.look)
        take_down(seed, before)
        seed.flux("queue", "start", "--all", "--quiet")
        change = seed.image_of_the_daemon(NEXT_IMAGE)
        with pytest.raises(RuntimeError, match="field is immutable"):
            seed.apply_again(change)
        cluster.kubectl(*delete)
        seed.apply_again(change)
        wait_until(lambda: seed.status() != {}, seed.look)
        assert seed.containers()["burst"]["image"] == NEXT_IMAGE
        seed.flux("job", "urgency", held, "default")
        wait_until(lambda: "clean" in seed.flux("job", "eventlog", held), seed.look)


def documented_wait(namespace: str) -> list[str]:
    """Return the words after kubectl by which the README waits for the next pod."""
    lines = (MANIFESTS / "README.md").read_text().splitlines()
    [line] = [line for line in lines if line.startswith("$ kubectl wait ")]
    words = shlex.split(line)[2:]
    words[words.index("burst")] = namespace
    return words


def keep_a_burst(seed: Seed) -> dict[str, Any]:
    """Have a burst that is online and idle; return the status."""
    wait_until(lambda: " serves flux " in seed.log(), seed.look)
    options = ("-N3", "--setattr=burstable", "--cwd=/tmp")
    job = seed.flux("submit", *options, "true").strip()
    wait_until(lambda: "clean" in seed.flux("job", "eventlog", job), seed.look)
    wait_until(lambda: live(seed) == ["online"], seed.look)
    return seed.status()


def take_down(seed: Seed, before: dict[str, Any]) -> None:
    """Check that the burst of before is on record, and have nothing left of it."""
    after = seed.status("--all")
    assert after["lead"]["owner"] == before["lead"]["owner"]
    [burst] = (row["id"] for row in before["bursts"])
    assert [row["id"] for row in after["bursts"]] == [burst], seed.log()
    # The lead's broker may have had time to end its followers in order: the daemon
    # has then found the burst's brokers ended, and there is nothing to take down.
    seed.burst("down", burst, check=False)
    wait_until(lambda: not seed.bursts(), seed.look)
    wait_until(lambda: seed.archived() == [burst], seed.log)


def live(seed: Seed) -> list[str]:
    """Return the states of all bursts that are on record."""
    return [row["state"] for row in seed.status().get("bursts", [])]


def test_submitting_is_all_that_is_done_and_the_daemon_is_upgraded_alone(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The experiment that this project grew from, whole."""
    with planted(Seed, cluster, tmp_path) as seed:
        seed.apply()
        run_experiment(seed)
        upgrade_daemon(seed)
        # The daemon does not keep the lead's Job from being complete.
        seed.flux("shutdown", "--quiet")
        done = ("wait", "job/lead", "--for=condition=Complete")
        cluster.kubectl(*done, f"--timeout={HANG_S:g}s", "-n", seed.near)
