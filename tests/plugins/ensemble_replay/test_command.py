# SPDX-License-Identifier: MIT
"""`burst ensemble replay`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugins.ensemble.cli.file_commands import FILE, place, run

__all__ = ["place"]


def test_a_format_prints_a_line_for_each_member_and_nothing_else(place: Path) -> None:
    assert run(place, "replay", "-o", "{name}").stdout == "small\nrules\n"


def test_replay_shows_what_each_member_paid_needed_and_why_it_ended(
    place: Path,
) -> None:
    found = run(place, "replay", "--boot", "1m", "--price", "2")
    lines = found.stdout.splitlines()
    assert lines[0].split()[:3] == ["MEMBER", "PAID", "h"]
    assert "idle" in lines[1]
    assert "rules triggered: end" in lines[2]
    assert "all members have ended" in lines[3]
    rows = json.loads(run(place, "replay", "--json", "--price", "2").stdout)["members"]
    assert rows[0]["jobs"] == 7
    assert rows[0]["money"] == 2 * rows[0]["paid_node_hours"]
    assert rows[0]["paid_node_hours"] > rows[0]["needed_node_hours"] > 0
    assert rows[1]["jobs"] == 0


def test_a_node_costs_what_the_settings_say(place: Path) -> None:
    def costs(*options: str) -> list[float]:
        rows = json.loads(run(place, "replay", "--json", *options).stdout)["members"]
        return [row["money"] / row["paid_node_hours"] for row in rows[:1]]

    assert costs() == [1.0], "no offer has a price"
    with (place / "burst.toml").open("a") as settings:
        settings.write('[prices]\n"here.local" = 4.0\n')
    assert costs() == [4.0]
    assert costs("--price", "2") == [2.0]


@pytest.mark.parametrize("key", ['offer = "gone"', "min = 3"])
def test_a_node_that_no_known_offer_has_is_not_free(place: Path, key: str) -> None:
    offers = 'type = "kube"\nimage = "x"\noffers.few = { cores = 4, max_nodes = 2 }\n'
    with (place / "burst.toml").open("a") as settings:
        settings.write(f'[providers.pods]\n{offers}[prices]\n"pods.few" = 4.0\n')
    file = place / "e.toml"
    top = 'name = "small"\n'
    text = FILE.replace('name = "rules"\n', 'name = "rules"\nprovider = "here"\n')
    for line, price, told in (("", 4.0, False), (key, 1.0, True)):
        file.write_text(text.replace(top, f'{top}provider = "pods"\n{line}\n'))
        found = run(place, "replay", "--json")
        first = json.loads(found.stdout)["members"][0]
        assert first["money"] == price * first["paid_node_hours"] > 0
        assert ("member small: its nodes cost 1.00" in found.stderr) is told


def test_replay_submits_the_jobs_of_a_trace(place: Path) -> None:
    trace = place / "t.swf"
    trace.write_text(
        "; MaxNodes: 4\n; MaxProcs: 16\n"
        "1 60 0 600 32 9 -1 -1 600 -1 1 7 1 5 2 -1 -1 -1\n"
        "2 70 0 600 5 9 -1 -1 600 -1 1 7 1 5 2 -1 -1 -1\n"
    )
    found = run(place, "replay", "--trace", str(trace))
    assert "1 job fit in no member" in found.stdout


def test_replay_stops_at_its_longest(place: Path) -> None:
    found = json.loads(run(place, "replay", "--json", "--longest", "5m").stdout)
    assert found["elapsed_s"] == 300
    text = run(place, "replay", "--longest", "5m").stdout
    assert "it goes on" in text
    assert "still there" in text
