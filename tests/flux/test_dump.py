# SPDX-License-Identifier: MIT
"""Records are the same after `flux dump` and a restore, and can be written after it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from tests.flux_instance import flux_instance

pytestmark = pytest.mark.flux

_RECORDS = {
    "meta/schema": "1",
    "burst/burst-0-12": '{"note":"é"}',
    "job/burst-0-12/f1": "{}",
    "job/burst-0-12/f2": "{}",
}


def dump_after(
    changes: Mapping[str, str | None], wanted: Mapping[str, str], path: Path
) -> None:
    """Start a lead, from the dump if there is one; write, and dump it again."""
    options = [f"-Scontent.restore={path}"] if path.exists() else []
    with flux_instance(None, *options) as instance:
        with closing(instance.lead()) as lead:
            store = lead.store()
            store.load()
            store.write(changes)
            after = store.load()
        path.unlink(missing_ok=True)
        instance.flux("dump", str(path))
    after.pop("meta/owner", None)
    assert after == wanted


def test_records_survive_dumps_and_changes_between_them(tmp_path: Path) -> None:
    path = tmp_path / "dump.tar"
    dump_after(_RECORDS, _RECORDS, path)
    changes = {"job/burst-0-12/f1": None, "burst/burst-0-12": "2", "hold/9": "3"}
    wanted = {
        "meta/schema": "1",
        "burst/burst-0-12": "2",
        "job/burst-0-12/f2": "{}",
        "hold/9": "3",
    }
    dump_after(changes, wanted, path)
    dump_after({}, wanted, path)
