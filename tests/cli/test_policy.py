# SPDX-License-Identifier: MIT
"""burst policy check, without a daemon and with one that is played."""

from __future__ import annotations

from pathlib import Path

import tomli_w

from burst.model.jobid import format_f58
from tests.cli.cli_harness import CliHarness, burst


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
    assert "rules for none of the 2 waiting jobs: night" in lines
    found = cli.run("policy", "check", "--json").json
    assert {row["id"]: row["rule"] for row in found["jobs"]} == {
        small: "default",
        large: "large",
    }

    lines = cli.run("policy", "check", large).lines
    assert [line.split()[:2] for line in lines] == [["JOB", "RULE"], [large, "large"]]
    said = cli.run("policy", "check", "f1").error
    assert said == "ƒ1 is not a waiting job that may burst; burst explain says more"
    # No file may have the second name: the system raises an error for it.
    for name in ("no job!", "!" * 300):
        assert "give a job, or a file" in cli.run("policy", "check", name).error

    other = cli.directory / "new.toml"
    other.write_text(tomli_w.dumps({"policy": [{"name": "all"}]}))
    lines = cli.run("policy", "check", str(other)).lines
    assert lines[1].split()[:3] == ["all", "0", "2"]
    form = cli.run("policy", "check", str(other), "-o", "{id} {rule}").lines
    assert sorted(form) == sorted([f"{small} all", f"{large} all"])


def test_a_file_of_rules_is_checked_without_a_lead(tmp_path: Path) -> None:
    rules = tmp_path / "new.toml"
    rules.write_text(
        '[plan]\nworth = 0.1\n[[policy]]\nname = "all"\nworth = 0.2\n'
        '[[policy]]\nname = "late"\nmatch = { queue = "gpu" }\n'
    )
    nowhere = ("--uri", f"embedded://{tmp_path}/nowhere", "-c", str(empty(tmp_path)))
    done = burst("policy", "check", str(rules), *nowhere)
    assert [line.split()[:3] for line in done.lines[:4]] == [
        ["RULE", "WORTH", "JOBS"],
        ["all", "0.2", "0"],
        ["late", "0.1", "0"],
        ["default", "0.1", "0"],
    ]
    assert "policy late takes no job, as all before it takes all of them" in done.stdout
    assert done.stderr.startswith("no lead, so only the rules are checked: ")
    found = burst("policy", "check", str(rules), "--json", *nowhere).json
    assert [rule["name"] for rule in found["rules"]] == ["all", "late", "default"]
    assert found["jobs"] == []

    rules.write_text('[[policy]]\nuntil = "soon"\n')
    assert "until: no such key" in burst("policy", "check", str(rules), *nowhere).error
    for of_jobs in ((), ("f1",)):
        assert "nowhere" in burst("policy", "check", *of_jobs, *nowhere).error


def test_a_file_is_judged_by_its_own_budgets_and_providers(tmp_path: Path) -> None:
    file = tmp_path / "new.toml"
    nowhere = ("--uri", f"embedded://{tmp_path}/nowhere", "-c", str(empty(tmp_path)))
    provider = '[providers.local]\ntype = "local"\n'
    lasting = "[[budget]]\nlimit = 5\n"
    for text, refused in [
        (lasting, False),
        (lasting + lasting, True),
        (provider + lasting, False),
        (provider + lasting + lasting, True),
    ]:
        file.write_text(text)
        done = burst("policy", "check", str(file), *nowhere)
        assert (done.status != 0) is refused, text
    file.write_text(provider + '[[policy]]\nproviders = ["local"]\n')
    assert burst("policy", "check", str(file), *nowhere).status == 0


def empty(directory: Path) -> Path:
    """Return settings with nothing in them."""
    path = directory / "empty.toml"
    path.write_text("")
    return path
