# SPDX-License-Identifier: MIT
"""What a person types beside a daemon, with followers that are processes.

`burst resize`, `burst request --tag`, `burst keygen --rotate`, and what has colours.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from burst.kits import certificate
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState
from burst.runtime.connect import connect
from tests.cli.cli_harness import BURST, CliHarness, burst
from tests.cli.conftest import Shared
from tests.contract.instance import SLEEP
from tests.embedded_instance import EmbeddedInstance
from tests.support.terminal import on_terminal
from tests.support.waiting import wait_until


def until_it_runs(instance: EmbeddedInstance, job: JobId) -> None:
    wait_until(lambda: instance.info(job).state is JobState.RUN, "the job to run")


def test_a_burst_grows_and_shrinks_while_a_job_runs_on_it(shared: Shared) -> None:
    instance, cli, _ = shared
    asked, joined = cli.run("request", "-N1").lines
    assert joined.startswith("burst-0-0 joined as rank 2 after ")
    burst = asked.rpartition(" ")[2]
    told = cli.run("explain", burst).lines
    assert told[1] == "  1 node of local/local: burst-0-0 as rank 2"
    job = instance.submit(nodes=1, command=SLEEP)
    until_it_runs(instance, job)
    said = cli.run("resize", burst, "3", "--note", "for the afternoon").lines
    assert said[0] == f"{burst} grows from 1 to 3 nodes"
    assert said[1].startswith(f"{burst} has 3 nodes, burst-0-[0-2], after ")
    assert cli.row(burst)["ranks"] == "2-4"
    assert cli.row(burst)["online"] == 3
    assert "for the afternoon" in cli.run("explain", burst).stdout
    assert cli.run("resize", burst, "3").lines[0] == f"{burst} has 3 nodes"
    said = cli.run("resize", burst, "1").lines
    assert said[0] == f"{burst} shrinks from 3 to 1 node"
    assert said[1].startswith(f"{burst} has 1 node, burst-0-0, after ")
    instance.cancel(job)
    cli.run("down", burst)
    assert cli.row(burst)["result"] == "canceled"


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
        assert "--tag cannot be used with --provider or --force" in said.stderr
    assert f"{made} is gone after" in cli.run("down", "--tag", "day").stdout
    assert cli.row(made)["state"] == "inactive"
    said = cli.run("down", "--tag", "day")
    assert said.lines == ["no live burst has tag day; its waiting jobs are canceled"]


def lead_certificate(cli: CliHarness) -> Path:
    """Return where the lead's configuration has it."""
    with closing(connect(cli.uri)) as lead:
        return Path(lead.identity().certificate)


def test_bursts_that_would_be_cut_off_are_named_and_nothing_is_done(
    served: CliHarness,
) -> None:
    path = lead_certificate(served)
    before = certificate.read(path)
    asked = served.run("request", "-N1").lines[0]
    name = asked.rpartition(" ")[2]
    try:
        error = served.run("keygen", str(path), "--rotate").error
        assert error.startswith(f"{path}: not replaced: {name} would lose the lead")
        assert error.endswith("wait for their end, or add --yes")
        assert certificate.read(path) == before
    finally:
        served.run("down", name)


def test_a_certificate_that_is_not_the_leads_is_replaced_whatever_there_is(
    served: CliHarness, tmp_path: Path
) -> None:
    path = tmp_path / "other.cert"
    burst("keygen", str(path))
    done = served.run("keygen", str(path), "--rotate")
    other = f"the lead has another certificate: {lead_certificate(served)}"
    assert other in done.stdout
    assert len(list(tmp_path.iterdir())) == 2


def test_status_and_explain_have_colours_on_a_terminal_alone(shared: Shared) -> None:
    instance, cli, _ = shared
    job = instance.submit(nodes=2, command=SLEEP)
    until_it_runs(instance, job)

    def online() -> list[str]:
        return [b["id"] for b in cli.status()["bursts"] if b["state"] == "online"]

    # A job may start before the daemon tells that its burst is online.
    wait_until(online, "the burst to be online")
    burst, *_ = online()
    for words in (["status"], ["explain", format_f58(job)]):
        argv = [BURST, *words, "-c", str(cli.config), "--uri", cli.uri]
        with on_terminal(argv, {}) as screen:
            assert screen.ended() == 0
        with on_terminal(argv, {"NO_COLOR": "1"}) as plain:
            assert plain.ended() == 0
        assert "\x1b[32m" in screen.text
        assert "\x1b[3" not in plain.text
        assert "\x1b" not in cli.run(*words).stdout
    instance.cancel(job)
    cli.run("down", burst)
