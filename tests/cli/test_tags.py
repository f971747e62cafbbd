# SPDX-License-Identifier: MIT
"""`burst request --tag`, as a person types it, with followers that are processes."""

from __future__ import annotations

from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState
from tests.cli.cli_harness import CliHarness
from tests.cli.conftest import Shared
from tests.contract.instance import SLEEP
from tests.embedded_instance import EmbeddedInstance
from tests.support.waiting import wait_until


def submit(instance: EmbeddedInstance, tag: str = "") -> JobId:
    """Submit a job as `flux submit --burst -N2` does, held for the daemon."""
    preferences = {"urgency": 16, "wanted": True} | ({"tag": tag} if tag else {})
    return instance.submit(
        nodes=2, command=SLEEP, urgency=0, attributes={"burst": preferences}
    )


def bursts_of(cli: CliHarness, job: JobId) -> list[str]:
    """The bursts that a job is assigned to, or runs on."""
    found = cli.run("explain", format_f58(job), "--json").json
    return [burst["id"] for burst in found["bursts"]]


def test_nodes_are_given_to_jobs_with_their_tag_alone(shared: Shared) -> None:
    instance, cli, _ = shared
    said = cli.run("request", "-N2", "--tag", "night")
    tagged = said.lines[0].rpartition(" ")[2]
    assert cli.row(tagged)["tag"] == "night"
    other, plain = submit(instance, "day"), submit(instance)
    wait_until(
        lambda: instance.info(plain).state is JobState.RUN,
        lambda: f"it to run: {cli.run('explain', format_f58(plain))}",
    )
    (bought,) = bursts_of(cli, plain)
    assert bought != tagged
    assert cli.row(tagged)["jobs"] == []
    own = submit(instance, "night")
    wait_until(lambda: cli.row(tagged)["jobs"] == [format_f58(own)], "it to run there")
    assert bursts_of(cli, other) == []
    assert "it has tag day, and waits" in cli.run("explain", format_f58(other)).stdout
    for job in (other, plain, own):
        instance.cancel(job)
    assert "it has tag night" in cli.run("down", tagged).stderr
    cli.run("down", bought)
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
