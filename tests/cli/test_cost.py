# SPDX-License-Identifier: MIT
"""`burst cost`, with a daemon and without."""

from __future__ import annotations

import re

from tests.cli.cli_harness import CliHarness


def test_nothing_was_bought_yet(cli: CliHarness) -> None:
    assert cli.run("cost").lines == ["nothing is settled or reserved"]
    assert cli.run("cost", "--since", "2020-01-01").lines == [
        "nothing is settled or reserved since 2020-01-01"
    ]


def test_what_a_burst_costs_is_shown_with_a_daemon_and_without(
    cli: CliHarness,
) -> None:
    cli.write(
        prices={"local.local": 3.6},
        budget=[{"limit": 20}],
    )
    with cli.daemon():
        asked = cli.run("request", "-N2").lines[0]
        (name,) = re.findall("burst-[0-9]-[0-9a-f]{6}", asked)
        cli.wait_for_state(name, "online")
        found = cli.run("cost", "--by", "provider", "--json").json
        (budget,) = found["budgets"]
        (row,) = found["rows"]
        assert row["name"] == "local"
        assert row["reserved"] == budget["reserved"] > 0
        lines = cli.run("cost", "--by", "provider").lines
        titles = [line.split()[0] for line in lines if line]
        assert titles[::2] == ["MONTH", "PROVIDER", "OFFER", "BUDGET"]
        assert "local/local  3.60   [prices]  0 of 0" in lines
        by_provider = ("--by", "provider", "-o", "{name} {settled}")
        assert cli.run("cost", *by_provider).lines == ["local 0.0"]
        assert cli.run("cost", "-o", "{settled} month").lines == ["0.0 month"]
        said = cli.run("status").lines
        assert any(line.startswith("budget everything, per month: ") for line in said)
        assert any(
            line.startswith("offer local/local: its last burst was online within ")
            and line.endswith(", 3.60 per node-hour by [prices]")
            for line in said
        )
        cli.run("down", name)
        cli.wait_for_state(name, "inactive")
    offline = cli.run("cost", "--by", "user", "--json").json
    (row,) = offline["rows"]
    assert row["name"] == "-"
    assert row["settled"] > 0
    assert row["reserved"] == 0
