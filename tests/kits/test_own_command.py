# SPDX-License-Identifier: MIT
from pathlib import Path

from burst import __version__
from burst.kits.own_command import own_command
from tests.support.commands import run_captured


def test_a_checkout_in_which_it_is_started_is_not_imported(tmp_path: Path) -> None:
    other = tmp_path / "burst"
    other.mkdir()
    (other / "__init__.py").write_text("raise SystemExit('of somebody else')")
    done = run_captured(own_command("--version"), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert __version__ in done.stdout
