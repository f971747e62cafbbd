# SPDX-License-Identifier: MIT
"""A standing minimum, as a person sees it, with followers that are processes."""

from __future__ import annotations

from tests.cli.cli_harness import CliHarness
from tests.embedded_instance import EmbeddedInstance
from tests.support.waiting import wait_until


def keep(cli: CliHarness, nodes: int, idle: str = "0.5s") -> None:
    """Write settings that keep so many nodes."""
    standing = [{"nodes": nodes}] if nodes else []
    local = {"type": "local", **cli.options, "standing": standing}
    prices = {"local.local": 36.0}
    cli.write(providers={"local": local}, prices=prices, deadlines={"idle": idle})


def live(cli: CliHarness, state: str) -> list[str]:
    rows = cli.status()["bursts"]
    return [row["id"] for row in rows if row["state"] == state]


def test_nodes_stand_until_the_settings_say_otherwise(
    instance: EmbeddedInstance, cli: CliHarness
) -> None:
    keep(cli, 2)
    with cli.daemon():
        wait_until(lambda: len(live(cli, "online")) == 1, "nodes that no job needs")
        (first,) = live(cli, "online")
        wait_until(lambda: cli.row(first)["idle"] > 1.0, "it to be idle for longer")
        row = cli.run("status").lines[1]
        assert row.endswith("; made for the standing minimum of 2 nodes of local")
        assert "down in" not in row
        told = cli.run("explain", first).lines
        assert "  made for the standing minimum of 2 nodes of local" in told

        said = cli.run("down", first)
        assert f"{first} is gone after" in said.stdout
        assert said.stderr.splitlines()[-1] == (
            "another burst is made in its place for the standing minimum of 2 nodes of"
            " local; to end that, remove it from [providers.local], and burst reload"
        )
        wait_until(lambda: len(live(cli, "online")) == 1, "another one in its place")

        keep(cli, 9)
        cli.run("reload")
        wait_until(lambda: len(live(cli, "online")) > 1, "as many as there can be")
        short = "standing minimum of 9 nodes of local is not met: "
        wait_until(lambda: short in cli.run("status").stdout, "why not all are there")

        keep(cli, 0)
        cli.run("reload")
        wait_until(lambda: "no bursts" in cli.run("status").stdout, "the idle ones end")
        paid = cli.run("cost", "--by", "user").stdout
        assert "standing minimum" in paid
