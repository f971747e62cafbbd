# SPDX-License-Identifier: MIT
"""`burst provider check` finds each rule that a site's program breaks."""

from __future__ import annotations

import itertools
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli_w

from burst.model.exit_status import INTERRUPTED
from burst.model.finding import Level
from tests.cli.cli_harness import BURST, burst
from tests.plugins.command.played import PROGRAM, Site
from tests.support.fluxlead import short_directory
from tests.support.waiting import HANG_S, wait_until

RULES = (
    "`list` does not list what was not begun",
    "`list` lists what was begun",
    "each host's script runs once, and `list` says so",
    "what was ended is listed until it is gone",
    "`end` of what is gone succeeds",
)


@pytest.fixture
def site() -> Iterator[Site]:
    with short_directory() as path:
        made = Site(path)
        yield made
        made.close()


def breaking(site: Site, old: str, new: str) -> tuple[str, ...]:
    """Return the words of a program that differs from that in sh in one place."""
    text = PROGRAM.read_text()
    assert text.count(old) == 1, old
    (site.path / "broken").write_text(text.replace(old, new))
    return ("/bin/sh", str(site.path / "broken"), str(site.path))


def test_a_program_that_keeps_all_rules(site: Site) -> None:
    told: list[str] = []
    found = site.provider("check-1").check(told.append, beat=0.1)
    assert [(each.level, each.what) for each in found] == [
        (Level.OK, rule) for rule in RULES
    ]
    assert told[0] == "begins check-1.site.burst-check-0 of 2 nodes"
    assert not list(site.bursts.iterdir())
    assert not list((site.path / "shared").iterdir())


BROKEN = {
    "it lists what was not begun": (
        "\"$comma\" = , ] && echo ']' || echo '[]'",
        "\"$comma\" = , ] && echo ']' ||"
        ' echo \'[{"name":"check-1.site.burst-check-0","state":"running"}]\'',
        0,
        "before it was begun",
    ),
    "it begins later what it does not list": (
        'mkdir -p "$burst"\n',
        "exit 0\n",
        1,
        "right after `begin` has succeeded",
    ),
    "a host is begun twice": (
        'setsid sh "$start" "$host" >> "$log" 2>&1 < /dev/null &\n',
        'setsid sh -c "sh $start $host & sh $start $host" >> "$log" 2>&1 &\n',
        2,
        "runs more than once for the host",
    ),
    "nothing runs": (
        'setsid sh "$start" "$host"',
        "setsid sleep 600",
        2,
        "in vain for check-1.site.burst-check-0 to run on all its nodes",
    ),
    "it forgets what still runs": (
        'kill -TERM "-$(cat "$node")"',
        'rm "$node"',
        3,
        "runs, though `list` does not list it any more",
    ),
    "it forgets what it has only asked to end": (
        'kill -TERM "-$(cat "$node")"',
        'kill -TERM "-$(cat "$node")"; rm "$node"',
        3,
        "runs, though `list` does not list it any more",
    ),
    "it does not end": (
        'kill -TERM "-$(cat "$node")"',
        "true",
        3,
        "in vain for `list` to stop listing check-1.site.burst-check-0",
    ),
    "it cannot end what is gone": (
        '[ -n "$left" ] || rm -rf "$burst"',
        '[ -d "$burst" ] || exit 1; [ -n "$left" ] || rm -rf "$burst"',
        4,
        "failed: exit status 1",
    ),
}


@pytest.mark.parametrize(("old", "new", "held", "what"), BROKEN.values(), ids=BROKEN)
def test_a_program_that_breaks_a_rule(
    site: Site, old: str, new: str, held: int, what: str
) -> None:
    program = breaking(site, old, new)
    provider = site.provider("check-1", program=program)
    told: list[str] = []
    looks = itertools.count(step=HANG_S)

    def clock() -> float:
        """Let time pass only where what never comes, or never goes, is waited for."""
        waits = told[-1].removeprefix("waits for ")
        in_vain = "in vain" in what and (waits in what or waits.startswith("deletes"))
        return next(looks) if in_vain else 0.0

    found = provider.check(told.append, clock=clock)
    assert [each.what for each in found[:held]] == list(RULES[:held])
    assert found[held].level is Level.WRONG
    assert what in found[held].what
    assert found[held].advice
    # Before it is tried for minutes to delete what is left.
    before_the_last = told[-2] if told[-1].startswith("deletes") else told[-1]
    assert before_the_last == f"wrong: {found[held].what}"


def test_a_program_that_cannot_be_run_has_left_nothing(site: Site) -> None:
    told: list[str] = []
    (found,) = site.provider("check-1", program=("/nowhere/site",)).check(told.append)
    assert found.what == "/nowhere/site cannot be run: No such file or directory"
    assert found.advice == "install it, or set its path in the provider's table"
    assert told == [f"wrong: {found.what}"]


def test_what_it_refuses_to_end_is_told_at_once(site: Site) -> None:
    program = breaking(site, 'kill -TERM "-$(cat "$node")"', "exit 77")
    told: list[str] = []
    *_, wrong, left = site.provider("check-1", program=program).check(told.append)
    assert "failed: exit status 77" in wrong.what
    assert left.what.startswith("check-1.site.burst-check-0 may be left: ")
    assert told[-1] == "deletes what may be left of check-1.site.burst-check-0"


def settings_file(site: Site, tmp_path: Path) -> str:
    table = {
        "type": "command",
        "program": list(site.settings.program),
        "dir": site.settings.dir,
        "cores": 4,
        "max_nodes": 4,
    }
    path = tmp_path / "burst.toml"
    here = {"type": "local"}
    path.write_text(tomli_w.dumps({"providers": {"site": table, "here": here}}))
    return str(path)


def test_the_command_prints_the_rules(site: Site, tmp_path: Path) -> None:
    done = burst("provider", "check", "site", "-c", settings_file(site, tmp_path))
    assert done.status == 0, done
    assert [line.split("  ")[-1] for line in done.stdout.splitlines()[:5]] == [*RULES]
    assert done.stdout.endswith("0 wrong, 0 to note\n")
    assert "waits for check-" in done.stderr


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("here", "provider here has no program of the site to test"),
        ("here", "burst doctor --provider here checks what it needs"),
        ("other", "there is no enabled provider 'other' in the settings"),
    ],
)
def test_only_such_a_provider_is_tested(
    site: Site, tmp_path: Path, name: str, why: str
) -> None:
    done = burst("provider", "check", name, "-c", settings_file(site, tmp_path))
    assert done.status == 1
    assert why in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_check_that_is_ended_deletes_what_it_has_made(
    site: Site, tmp_path: Path, number: signal.Signals
) -> None:
    words = (BURST, "provider", "check", "site", "-c", settings_file(site, tmp_path))
    # Under nohup(1), the program would ignore SIGHUP.
    hears = ("env", "--default-signal=HUP")
    with subprocess.Popen(
        [*hears, *words], stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: bool(list(site.bursts.iterdir())), "it to begin the nodes")
        process.send_signal(number)
        _, said = process.communicate(timeout=HANG_S)
    assert process.returncode == INTERRUPTED
    assert "Aborted" not in said
    assert not list(site.bursts.iterdir())
    assert not list((site.path / "shared").iterdir())
