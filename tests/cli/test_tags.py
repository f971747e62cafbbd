# SPDX-License-Identifier: MIT
"""`burst request --tag`, as a person types it, with followers that are processes."""

from __future__ import annotations

from burst.model.jobid import JobId, format_f58
from tests.cli.conftest import Shared
from tests.contract.instance import SLEEP
from tests.embedded_instance import EmbeddedInstance
from tests.support.waiting import wait_until


def submit(instance: EmbeddedInstance, tag: str) -> JobId:
    """Submit a job as `flux submit --burst -N2` does, held for the daemon."""
    preferences = {"urgency": 16, "wanted": True, "tag": tag}
    return instance.submit(
        nodes=2, command=SLEEP, urgency=0, attributes={"burst": preferences}
    )


def test_nodes_are_requested_and_taken_down_by_their_tag(shared: Shared) -> None:
    """Which jobs get them: tests/flux/test_tags.py."""
    instance, cli, _ = shared
    said = cli.run("request", "-N2", "--tag", "night")
    tagged = said.lines[0].rpartition(" ")[2]
    assert cli.row(tagged)["tag"] == "night"
    own = submit(instance, "night")
    wait_until(lambda: cli.row(tagged)["jobs"] == [format_f58(own)], "it to run there")
    instance.cancel(own)
    assert "it has tag night" in cli.run("down", tagged).stderr
    said = cli.run("request", "-N1", "--tag", "day")
    made = said.lines[0].rpartition(" ")[2]
    for words in ((), (made, "--tag", "day")):
        said = cli.run("down", *words)
        assert "name bursts, or a tag by --tag" in said.stderr
    for option in (("--force",), ("--provider", "local")):
        said = cli.run("down", "--tag", "day", *option)
        assert "--tag goes without --provider and --force" in said.stderr
    assert f"{made} is gone after" in cli.run("down", "--tag", "day").stdout
    assert cli.row(made)["state"] == "inactive"
    said = cli.run("down", "--tag", "day")
    assert said.lines == ["no burst with tag day is live; its jobs that wait end"]
