# SPDX-License-Identifier: MIT
"""A site's program that says what a test has it say."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import msgspec
from burst_command.protocol import LIMIT_S
from burst_command.provider import CommandProvider
from burst_command.settings import CommandSettings

from burst.provider import BurstSpec
from burst.testing import example_lead, example_spec

BURST = "burst-0-0a1b2c"


class Says:
    """A program that writes down what it is asked, and says what a test says."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings = CommandSettings(
            program=("/bin/sh", str(path / "program")),
            dir=str(path / "shared"),
            cores=4,
            max_nodes=2,
        )
        self.script('cat > "$0.$1"; [ "$1" != list ] || echo "[]"')

    def script(self, text: str) -> None:
        """Have it do that in sh."""
        (self.path / "program").write_text(text)

    def lists(self, *bursts: object) -> None:
        """Have it list these."""
        self.script(
            f'[ "$1" != list ] || echo {shlex.quote(json.dumps(bursts))}; cat > "$0.$1"'
        )

    def asked(self, word: str) -> dict[str, object]:
        """Return what it was asked with that word last."""
        found: dict[str, object] = json.loads(
            (self.path / f"program.{word}").read_text()
        )
        return found

    def provider(self, *, limit: float = LIMIT_S, **changes: object) -> CommandProvider:
        settings = msgspec.structs.replace(self.settings, **changes)
        return CommandProvider("site", settings, "owner", limit=limit)

    def spec(self, nodes: int = 2, **changes: object) -> BurstSpec:
        made = example_spec(example_lead(self.path), 0, "nodes", nodes)
        shape = msgspec.structs.replace(made.shape, gpus=0)
        changes = {"burst_id": BURST, "shape": shape, **changes}
        return msgspec.structs.replace(made, **changes)


def row(state: str = "running", **others: object) -> dict[str, object]:
    return {"name": f"owner.site.{BURST}", "state": state, **others}
