# SPDX-License-Identifier: MIT
"""`burst report`, as a person types it."""

from __future__ import annotations

import sys
from contextlib import closing

import pytest
from burst_report.route import report_routes

from burst.core.money.ledger import Costs, Payer
from burst.core.money.money import Money
from burst.core.money.periods import Group, Period
from burst.core.records import Records
from burst.http.routes import HttpRequest
from burst.model.jobid import format_f58
from burst.model.lead import JobState
from burst.runtime.daemon_state import DaemonState
from burst.runtime.record_store import RecordStore
from burst.runtime.tally import Tally
from tests.cli.cli_harness import CliHarness
from tests.embedded_instance import EmbeddedInstance
from tests.support.waiting import wait_until


def test_a_report_of_nothing(served: CliHarness) -> None:
    lines = served.run("report", "--since", "2026-01-01").lines
    assert lines == ["0 bursts since 2026-01-01", "no job has started on a burst"]


def test_a_day_and_a_command_that_are_none_are_told_in_words(cli: CliHarness) -> None:
    for command in ("report", "cost"):
        error = cli.run(command, "--since", "yesterday").stderr
        assert "expected a day such as 2026-12-31, got 'yesterday'" in error
    assert "No such command 'statsu'. Did you mean status?" in cli.run("statsu").stderr
    assert "Did you mean" not in cli.run("frobnicate").stderr


def test_a_report_in_short_as_a_page_and_for_programs(cli: CliHarness) -> None:
    assert isinstance(cli.instance, EmbeddedInstance)
    cli.write(prices={"local.local": 3600.0}, deadlines={"idle": "0.2s"})
    with cli.daemon():
        job = cli.instance.submit(nodes=2, command=["true"])
        info = cli.instance.info
        wait_until(lambda: info(job).state is JobState.INACTIVE, "the job to end")
        (row,) = cli.status()["bursts"]
        cli.wait_for_state(row["id"], "inactive")

        lines = cli.run("report").lines
        assert lines[0].startswith("1 burst since ")
        assert lines[0].endswith(": 1 completed")
        assert lines[1].startswith("1 job on record started on bursts: half within ")
        assert lines[2] == "when they would have started here is not on record"
        assert "of it wasted" in lines[3]

        path = cli.directory / "report.html"
        assert "written" in cli.run("report", "--html", str(path)).stderr
        page = path.read_text(encoding="utf-8")
        assert page.startswith("<!DOCTYPE html>")
        assert row["id"] in page
        assert format_f58(job) in page
        assert cli.run("report", "--html", "-").stdout.startswith("<!DOCTYPE html>")
        (burst,) = cli.run("report", "--json").json["bursts"]
        assert burst["id"] == row["id"]
        nowhere = str(cli.directory / "no" / "page.html")
        assert "cannot be written" in cli.run("report", "--html", nowhere).error
    # Without a daemon the records say the same.
    assert cli.run("report").lines[0].endswith(": 1 completed")


def test_money_of_a_whole_month_is_not_told_as_that_of_a_day(cli: CliHarness) -> None:
    """Days of long ago are merged into their month."""
    payer = Payer(userid=1, bank="", queue="")
    costs = Costs(work=Money(3_000_000), idle=Money(1_000_000))
    month = Period(((Group(payer, "gke", "n2"), costs),), bursts=1)
    with closing(cli.instance.lead()) as lead:
        store = RecordStore(lead.store())
        store.load(0.0)
        store.write(Records(), Records(periods={"2026-01": month}))
    told = "4.00 settled since 2026-01-01, 1.00 of it wasted; 0.00 reserved"
    assert cli.run("report", "--since", "2026-01-31").lines[2] == told
    page = cli.run("report", "--since", "2026-01-31", "--html", "-").stdout
    assert "4.00 was settled since 2026-01-01 (" in page
    told = told.replace(" since 2026-01-01", "")
    assert cli.run("report", "--since", "2026-01-01").lines[2] == told
    page = cli.run("report", "--since", "2026-01-01", "--html", "-").stdout
    assert "4.00 was settled, of" in page


def test_a_failure_is_told_with_its_reason(cli: CliHarness) -> None:
    # A follower whose Python finds no library ends before it joins.
    broken = {**cli.options, "environment": {"PYTHONHOME": "/nowhere"}}
    cli.write(providers={"local": {"type": "local", **broken}})
    with cli.daemon():
        cli.run("request", "-N1", "--no-wait")
        wait_until(
            lambda: cli.status()["bursts"][-1]["state"] == "inactive", "it to fail"
        )
        (row,) = cli.status()["bursts"]
        last = cli.run("report").lines[-1]
    assert last.startswith(f"{row['id']} of local/local failed: ")
    assert row["note"] in last


def test_without_jinja2_it_says_what_to_install(
    served: CliHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    (route,) = report_routes(DaemonState(Tally()))
    asked = HttpRequest(path="/")
    assert route.handler(asked).status == 503
    monkeypatch.setitem(sys.modules, "jinja2", None)
    what = "pip install 'flux-burst-orchestrator[report]'"

    assert what in served.run("report", "--html", "-").error
    assert served.run("report").lines
    answer = route.handler(asked)
    assert answer.status == 501
    assert what in answer.body.decode()
