# SPDX-License-Identifier: MIT
"""`burst replay`."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import click.testing
import pytest
from burst_replay.command import FRONTIER

from burst.cli import group
from burst.errors import BurstError
from tests.support.terminal import on_terminal
from tests.support.waiting import HANG_S

HEADER = "; MaxNodes: 4\n; MaxProcs: 16\n"


def job(submit: int, cores: int, hours: float) -> str:
    """A line; the user asks for as long as it runs."""
    run_time = int(hours * 3600)
    return f"1 {submit} 0 {run_time} {cores} 9 -1 -1 {run_time} -1 1 7 1 5 2 -1 -1 -1\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A machine that one job fills for two hours, and one that waits for it."""
    path = tmp_path / "old.swf"
    path.write_text(HEADER + job(0, 16, 2) + "broken\n" + job(0, 5, 1))
    return path


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A file of settings, which a test writes."""
    return tmp_path / "new.toml"


def run(*arguments: str | Path) -> click.testing.Result:
    return click.testing.CliRunner().invoke(
        group, ["replay", *map(str, arguments)], catch_exceptions=False
    )


def test_a_table_beside_never_and_at_once(trace: Path) -> None:
    done = run(trace, "--worth", "0.5", "--worth", "0.9")
    assert done.exit_code == 0
    titles, never, at_once, half, more = done.stdout.splitlines()
    assert titles.split()[:3] == ["POLICY", "MEAN", "WAIT"]
    words = [" ".join(line.split()) for line in (never, at_once)]
    assert words[0] == "never 1h 2h 0 0.0 % 0.00 0.00 0.00 0.00 0.00 0 0"
    # Two nodes of four cores: for an hour, 5 minutes of boot, and one of tear-down.
    # Work is 8 and 1.25 node-hours.
    assert words[1] == "at once 2.5m 5m 2 23.8 % 2.20 2.00 0.00 0.17 0.03 1 0"
    # It saves 115 minutes for 2.2 node-hours: 0.87 hours each.
    assert half.split()[2:] == at_once.split()[2:]
    assert more.split()[2:] == never.split()[1:]
    assert done.stderr == (
        "old.swf: 2 jobs on 4 nodes of 4 cores; left out: 1 unreadable"
        " (line 4: 1 of 18 fields)\n"
    )


def test_json_has_what_each_policy_comes_to(trace: Path, rules: Path) -> None:
    rules.write_text('[[policy]]\nmatch = { user = 7, queue = "2" }\nworth = 0\n')
    done = run(trace, "--json", "--policy", rules, "--price", "2", "--frontier")
    found = json.loads(done.stdout)
    assert (found["trace"], found["jobs"]) == ("old.swf", 2)
    policies = found["policies"]
    worths = [f"worth {worth:g}" for worth in FRONTIER]
    assert list(policies) == ["never", "at once", *worths, str(rules)]
    assert policies[str(rules)] == policies["at once"]
    assert policies["at once"] == {
        "mean_wait_s": 150.0,
        "p95_wait_s": 300.0,
        "own_node_hours": 8.0,
        "bought_node_hours": pytest.approx(2.2),
        "bought_share": pytest.approx(2.2 / 9.25),
        "money": pytest.approx(4.4),
        "bursts": 1,
        "refused": 0,
        "work": 4.0,
        "idle": 0.0,
        "boot": pytest.approx(0.333333),
        "teardown": pytest.approx(0.066667),
    }


def test_the_machine_may_be_another(trace: Path) -> None:
    assert "8 nodes of 2 cores" in run(trace, "--cores", "2").stderr
    larger = run(trace, "--nodes", "6", "--json")
    assert json.loads(larger.stdout)["policies"]["never"]["mean_wait_s"] == 0
    trace.write_text(job(0, 2, 1))
    assert "3 nodes of 1 core" in run(trace, "--nodes", "3").stderr


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--boot", "soon", "not a duration"),
        ("--idle", "inf", "inf never ends"),
        ("--worth", "-1", "is not in the range"),
        ("--worth", "nan", "nan is not a number"),
        ("--price", "inf", "inf is not a number"),
    ],
)
def test_bad_options(trace: Path, option: str, value: str, says: str) -> None:
    done = run(trace, option, value)
    assert done.exit_code == 2
    assert says in done.output


SACCT = """\
JobID|User|Partition|State|Submit|Start|End|Elapsed|NNodes|NCPUS|NodeList
7|ann|batch|COMPLETED|2024-03-05T08:00:00|2024-03-05T08:00:00|2024-03-05T10:00:00|\
02:00:00|4|16|cn[1-4]
7.batch|||COMPLETED|2024-03-05T08:00:00|2024-03-05T08:00:00|2024-03-05T10:00:00|\
02:00:00|1|4|cn1
8|bob|batch|COMPLETED|2024-03-05T08:00:00|2024-03-05T10:00:00|2024-03-05T11:00:00|\
01:00:00|2|5|cn[5-6]
9|bob|batch|RUNNING|2024-03-05T08:00:00|2024-03-05T10:00:00|Unknown|00:10:00|1|4|cn1
"""


def test_what_a_log_of_a_site_lacks_is_told(trace: Path) -> None:
    trace.write_text(SACCT)
    done = run(trace, "--nodes", "4", "--json")
    assert done.stderr == (
        "old.swf: 2 jobs on 4 nodes of 4 cores; left out: 1 still_ran, 1 step\n"
    )
    found = json.loads(done.stdout)
    assert (found["jobs"], found["left_out"]) == (2, {"still_ran": 1, "step": 1})
    assert found["notes"] == []
    assert found["policies"]["at once"]["mean_wait_s"] == 150.0
    trace.write_text(SACCT.replace("Submit", "Eligible"))
    told = "it has no Submit: Eligible is used instead"
    assert run(trace, "--nodes", "4").stderr.endswith(f"; {told}\n")


def test_help_and_docs_ask_for_all_jobs_of_all_users() -> None:
    page = Path(__file__).parents[3] / "docs" / "replay.md"
    for text in (run("--help").stdout, page.read_text(encoding="utf-8")):
        assert "`flux jobs -a -A --count=0 --json`" in " ".join(text.split())


def test_a_log_that_does_not_name_the_machine_says_what_it_was_at_least(
    trace: Path,
) -> None:
    trace.write_text(SACCT)
    with pytest.raises(BurstError) as caught:
        run(trace)
    assert str(caught.value) == (
        "old.swf: does not say on how many nodes it was recorded; give --nodes and"
        " --cores of the machine; its largest job alone had 4 nodes of 4 cores"
    )


def test_rules_for_users_take_those_that_a_log_names(trace: Path, rules: Path) -> None:
    trace.write_text(SACCT)
    rules.write_text(
        '[[policy]]\nmatch = { user = "bob" }\nmax_price = 0\n'
        '[[budget]]\nlimit = 5\nmatch = { user = ["bob", "eve", "7"] }\n'
    )
    done = run(trace, "--nodes", "4", "--policy", rules, "--json")
    policies = json.loads(done.stdout)["policies"]
    assert policies["at once"]["bursts"] == 1
    assert policies[str(rules)] == policies["never"]
    assert "bob, eve, 7, per month: user eve is not known, so nothing" in done.stderr
    for known in ("bob", "7"):
        assert f"user {known} is not known" not in done.stderr


@pytest.fixture
def long_trace(tmp_path: Path) -> Path:
    """A queue that only grows, so that each forecast takes longer."""
    path = tmp_path / "long.swf"
    jobs = (job(7 * number, 1 + number % 16, 1) for number in range(5_000))
    path.write_text(HEADER + "".join(jobs))
    return path


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_stopped_by_ctrl_c_it_says_so_and_shows_what_is_done(
    long_trace: Path, options: tuple[str, ...]
) -> None:
    """As one object of JSON cannot be a part of what is asked for, there is none."""
    words = ["replay", str(long_trace), "--worth", "50", "--order", "fifo", *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "burst", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    told = [process.stderr.readline()]
    while not told[-1].startswith("worth"):
        told.append(process.stderr.readline())
        assert told[-1], told
    process.send_signal(signal.SIGINT)
    table, rest = process.communicate(timeout=HANG_S)
    assert process.returncode == 130
    assert told[0].startswith("long.swf: 5000 jobs on 4 nodes of 4 cores")
    # Neither a terminal nor quick: a line for the policy that takes long.
    assert re.fullmatch(r"worth 50: [\d,]+ of 5,000 jobs\n", told[-1])
    assert rest.splitlines()[-1] == "burst: stopped; the replay is not complete"
    assert "Traceback" not in rest
    names = [line.split("  ")[0] for line in table.splitlines()]
    assert names == ([] if options else ["POLICY", "never", "at once"])


def test_on_a_terminal_it_shows_how_far_it_is(long_trace: Path) -> None:
    words = ["replay", str(long_trace), "--worth", "50", "--order", "fifo"]
    argv = [sys.executable, "-m", "burst", *words]
    with on_terminal(argv, {}) as screen:
        screen.shows("worth 50")
        screen.shows("%", screen.text.index("worth 50"))
        screen.press("\x03")
        assert screen.ended() == 130
        assert "not complete\r\n" in screen.text
        assert "Traceback" not in screen.text


def test_what_took_minutes_is_shown_though_the_picture_cannot_be_written(
    trace: Path, tmp_path: Path
) -> None:
    arguments = ["replay", str(trace), "--picture", str(tmp_path / "no" / "x.svg")]
    done = click.testing.CliRunner().invoke(group, arguments)
    assert isinstance(done.exception, BurstError)
    assert "at once" in done.stdout


def test_rules_that_took_no_job_are_told(trace: Path, rules: Path) -> None:
    rules.write_text(
        '[[policy]]\nname = "ghost"\nmatch = { queue = "gpu" }\n'
        '[[policy]]\nname = "all"\n'
        '[[policy]]\nname = "late"\nmatch = { queue = "2" }\nmark = true\n'
    )
    told = run(trace, "--policy", rules).stderr.splitlines()
    assert told[1:] == [
        f"{rules}: policy late takes no job, as all before it takes all of them: put"
        " it before all, or remove it",
        f"{rules}: rules for no job that waited: ghost, late",
    ]


def test_rules_that_the_log_cannot_answer_are_told(trace: Path, rules: Path) -> None:
    table = '[[policy]]\nname = "{}"\nmatch.attribute = "project"\nmax_price = 0\n'
    rules.write_text(table.format("a") + table.format("b"))
    told = run(trace, "--policy", rules).stderr
    lacks = "rules left out, as the log has no attributes of jobs: "
    assert told.count(lacks) == 1
    assert f"{lacks}a, b; what they change is not in the figures\n" in told
    event = {"id": 1, "timestamp": 9.0, "context": {"userid": 7}}
    jobspec = {"attributes": {"system": {"project": "x"}}}
    submit = {**event, "name": "submit", "jobspec": jobspec}
    listed = {"userid": 7, "t_submit": 9.0, "t_run": 9.0, "t_cleanup": 99.0}
    trace.write_text("\n".join(map(json.dumps, [submit, {**listed, "ncores": 1}])))
    assert lacks not in run(trace, "--nodes", "1", "--policy", rules).stderr


def test_standing_minimums_are_left_out_and_that_is_told(
    trace: Path, rules: Path
) -> None:
    hours = '[[providers.near.standing]]\nnodes = 2\nhours = "Mo-Fr 8-18"\n'
    rules.write_text(SITE + hours)
    told = "standing minimum left out: 2 nodes of near, Mo-Fr 8-18; its nodes are not"
    assert run(trace, "--policy", rules).stderr.count(told) == 1
    rules.write_text(SITE.replace("[prices]", "enabled = false\n[prices]") + hours)
    assert told not in run(trace, "--policy", rules).stderr


def test_users_are_those_of_the_host_where_the_trace_is_of_it(
    trace: Path, rules: Path
) -> None:
    rules.write_text(
        '[[policy]]\nmatch = { user = ["root", "no-such"] }\nmax_price = 0\n'
    )
    row = {"t_submit": 9.0, "t_run": 9.0, "t_cleanup": 99.0, "ncores": 1}
    rows = [{**row, "userid": 0}] * 2
    trace.write_text("\n".join(map(json.dumps, rows)))
    done = run(trace, "--nodes", "1", "--policy", rules, "--json")
    policies = json.loads(done.stdout)["policies"]
    assert policies[str(rules)] == policies["never"]
    assert policies["at once"]["bursts"] == 1
    assert "for user no-such, whom this host does not know" in done.stderr


def test_names_of_users_say_nothing_of_numbers_that_were_made_up(
    trace: Path, rules: Path
) -> None:
    rules.write_text('[[policy]]\nmatch = { user = "root" }\nmax_price = 0\n')
    trace.write_text(trace.read_text().replace(" 7 1 5 2 ", " 0 1 5 2 "))
    done = run(trace, "--policy", rules)
    assert "rules for no job that waited: policy-1" in done.stderr
    assert "does not know" not in done.stderr


SITE = """\
[providers.far]
type = "local"
[providers.near]
type = "local"
[prices]
"far.local" = 2
"near.local" = 5
[deadlines]
idle = "30m"
"""


def test_nodes_are_as_the_settings_sell_them(trace: Path, rules: Path) -> None:
    rules.write_text(SITE + '[[policy]]\nproviders = ["near"]\n')
    alone = rules.with_name("rules.toml")
    alone.write_text("[[policy]]\nmax_price = 1.5\n")
    done = run(trace, "--policy", alone, "--policy", rules, "--json")
    assert done.stderr.splitlines()[1:] == [
        f"{rules}: a node-hour costs 2.00 (far/local), nodes are online in 1s, idle"
        " bursts stay 30m"
    ]
    found = json.loads(done.stdout)["policies"]
    # Two nodes for an hour, a second of boot, half an hour of idle, and the tear-down.
    hours = pytest.approx(2 * (1 + 1 / 3600 + 0.5 + 1 / 60))
    for name, price in (("at once", 2), (str(rules), 5)):
        assert found[name]["bought_node_hours"] == hours
        assert found[name]["money"] == pytest.approx(
            price * found[name]["bought_node_hours"]
        )
    # Rules alone are tried on the nodes of the file that has some.
    assert found[str(alone)] == found["never"]


def test_options_overrule_the_settings(trace: Path, rules: Path) -> None:
    rules.write_text(SITE + '[[policy]]\nproviders = ["near"]\n')
    options = ("--boot", "6m", "--teardown", "0", "--idle", "0", "--price", "3")
    done = run(trace, "--policy", rules, "--json", *options)
    assert "costs 3.00 (far/local), nodes are online in 6m, idle bursts stay 0s" in (
        done.stderr
    )
    found = json.loads(done.stdout)["policies"]
    assert found["at once"] == found[str(rules)]
    assert found["at once"]["bought_node_hours"] == pytest.approx(2.2)
    assert found["at once"]["money"] == pytest.approx(6.6)


def test_what_a_budget_without_money_turned_down_is_told(
    trace: Path, rules: Path
) -> None:
    rules.write_text("[[budget]]\nlimit = 0\n")
    told = run(trace, "--policy", rules).stderr
    assert f"{rules}: budget everything, per month: its limit is 0" in told
    assert f"{rules}: no budget had the money for 1 job" in told


def test_an_idle_that_never_ends_is_refused(trace: Path, rules: Path) -> None:
    rules.write_text(SITE.replace("30m", "inf"))
    with pytest.raises(BurstError, match="no burst would end; give --idle"):
        run(trace, "--policy", rules)
    assert run(trace, "--policy", rules, "--idle", "1m").exit_code == 0


def test_where_offers_cannot_be_known_that_is_told(trace: Path, rules: Path) -> None:
    nowhere = '[providers.{}]\ntype = "nowhere"\n'
    prices = '[prices]\n"a.x" = 4\n"a.y" = 6\n'
    rules.write_text(nowhere.format("a") + nowhere.format("b") + prices)
    done = run(trace, "--policy", rules, "--json")
    for name in ("a", "b"):
        told = f"{rules}: offers are not known: providers.{name}.type: no pr"
        assert told in done.stderr
    assert "costs 4.00 (a/x), nodes are online in 5m, idle bursts stay 5m" in (
        done.stderr
    )
    assert "nothing of provider b is bought, as no offer is known; give" in done.stderr
    assert "provider a is" not in done.stderr
    found = json.loads(done.stdout)["policies"]["at once"]
    assert found["money"] == pytest.approx(4 * found["bought_node_hours"])
