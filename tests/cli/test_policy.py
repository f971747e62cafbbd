# SPDX-License-Identifier: MIT
"""burst policy check, without a daemon and with one that is played."""

from __future__ import annotations

import tomli_w

from burst.model.jobid import format_f58
from tests.cli.cli_harness import CliHarness


def test_rules_are_tried_on_the_jobs_that_wait(cli: CliHarness) -> None:
    cli.write(policy=[{"name": "large", "match": {"nodes": ["a"]}}])
    assert "policy 1: match.nodes" in cli.run("policy", "check").error
    cli.write(
        policy=[
            {"name": "large", "match": {"nodes": ">3"}, "worth": 0.5},
            {"name": "night", "match": {"queue": ["night", "gpu"]}},
        ]
    )
    small = format_f58(cli.instance.submit(nodes=3))  # type: ignore[attr-defined]
    large = format_f58(cli.instance.submit(nodes=4))  # type: ignore[attr-defined]
    lines = cli.run("policy", "check").lines
    assert lines[0].split() == ["RULE", "WORTH", "JOBS", "DECISIONS", "MATCH"]
    assert lines[1].split() == ["large", "0.5", "1", "1", "proposed", "nodes", ">3"]
    assert lines[2].split() == ["night", "0", "0", "-", "queue", "night|gpu"]
    assert lines[3].split()[-3:] == ["all", "other", "jobs"]
    assert "policy night is for queue gpu; the lead's queues are: none" in lines
    assert "none of the 2 jobs that wait is for: night" in lines
    found = cli.run("policy", "check", "--json").json
    assert {row["id"]: row["rule"] for row in found["jobs"]} == {
        small: "default",
        large: "large",
    }

    lines = cli.run("policy", "check", large).lines
    assert [line.split()[:2] for line in lines] == [["JOB", "RULE"], [large, "large"]]
    said = cli.run("policy", "check", "f1").error
    assert said == "ƒ1 is no job that waits and may burst; burst explain says more"
    assert "give a job, or a file" in cli.run("policy", "check", "no job!").error

    other = cli.directory / "new.toml"
    other.write_text(tomli_w.dumps({"policy": [{"name": "all"}]}))
    lines = cli.run("policy", "check", str(other)).lines
    assert lines[1].split()[:3] == ["all", "0", "2"]
    form = cli.run("policy", "check", str(other), "-o", "{id} {rule}").lines
    assert sorted(form) == sorted([f"{small} all", f"{large} all"])
