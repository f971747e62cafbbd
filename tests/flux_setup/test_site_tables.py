# SPDX-License-Identifier: MIT
"""What `burst setup` adds to is read without what it has added before."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import tomli_w

from burst.config import IntakeSettings
from burst.errors import ConfigError
from burst.flux_setup.install import Change, FileStep, apply_files
from burst.flux_setup.setup_files import (
    IntakeChoice,
    lead_tables,
    make_files,
    single_directory,
)
from burst.flux_setup.site_tables import (
    FLUX_PLUGINS,
    SiteTables,
    check_frobnicator_unused,
    check_names,
    check_no_link,
    files_after_ours,
    our_tables,
    site_files,
    site_tables,
)

QUEUE = IntakeSettings(mode="queue")
FROB = Path("/etc/frob-burst.py")
SITE = {
    "queues": {"batch": {"policy": {"limits": {"duration": "1h"}}}, "debug": {}},
    "policy": {"jobspec": {"defaults": {"system": {"queue": "batch"}}}},
    "ingest": {"frobnicator": {"plugins": ["defaults", "/site/a.py", "constraints"]}},
}


def test_a_sites_queues_plugins_and_limits_are_read() -> None:
    site = site_tables(SITE, {})
    assert site.plugins == ("defaults", "/site/a.py", "constraints")
    assert set(site.queues) == {"batch", "debug"}
    assert (site.default_queue, site.default_limits) == ("batch", {"duration": "1h"})
    bare = site_tables({}, {})
    assert (bare.plugins, bare.default_queue) == (FLUX_PLUGINS, "")
    assert bare.default_limits == {}


def test_what_we_wrote_is_not_the_sites() -> None:
    places = single_directory(Path("/x"))
    choice = IntakeChoice(intake=QUEUE, local_queue="batch")
    ours = lead_tables(places, choice)
    site = site_tables(ours, ours)
    assert (site.queues, site.plugins, site.default_queue) == ({}, FLUX_PLUGINS, "")


def test_our_piece_is_left_out_of_the_files_beside_it(tmp_path: Path) -> None:
    places = single_directory(tmp_path)
    assert (site_files(places), our_tables(places)) == (None, {})
    apply_files(places.own, make_files(places, IntakeChoice(intake=QUEUE)))
    assert set(our_tables(places)) == {"queues", "ingest"}
    alone = site_files(places)
    assert alone is not None
    assert alone.files == ()
    (places.config / "system.toml").write_text(tomli_w.dumps(SITE))
    found = site_files(places)
    assert found is not None
    assert site_tables(found.tables, {}).plugins[1] == "/site/a.py"
    assert files_after_ours(found) == []


def test_files_whose_list_would_replace_ours_are_found(tmp_path: Path) -> None:
    places = single_directory(tmp_path)
    places.config.mkdir()
    (places.config / "zzz.toml").write_text(tomli_w.dumps(SITE))
    (places.config / "zzzz.toml").write_text("[tbon]\n")
    found = site_files(places)
    assert found is not None
    assert files_after_ours(found) == [places.config / "zzz.toml"]
    _list_ours(places.config / "zzz.toml")
    found = site_files(places)
    assert found is not None
    assert files_after_ours(found) == []


def removing(*paths: Path, change: Change = Change.REMOVE) -> list[FileStep]:
    return [FileStep(change, path) for path in paths]


def test_a_frobnicator_that_a_file_names_is_not_removed(tmp_path: Path) -> None:
    """Flux would refuse every submission."""
    check_frobnicator_unused(tmp_path, removing(FROB))
    _list_ours(tmp_path / "zzz.toml")
    for place in (tmp_path, tmp_path / "zzz.toml"):
        with pytest.raises(ConfigError, match=r"zzz.toml: .* names /etc/frob-burst.py"):
            check_frobnicator_unused(place, removing(FROB))
    check_frobnicator_unused(tmp_path, removing(FROB, tmp_path / "zzz.toml"))
    # One that stays, as it was edited, is there for whoever names it.
    check_frobnicator_unused(tmp_path, removing(FROB, change=Change.KEEP))
    check_frobnicator_unused(tmp_path, removing(FROB, change=Change.SAME))


def test_our_own_piece_is_known_by_another_path_too(tmp_path: Path) -> None:
    (tmp_path / "installed").mkdir()
    (tmp_path / "link").symlink_to("installed")
    _list_ours(tmp_path / "installed/zz-burst-lead.toml")
    steps = removing(FROB, tmp_path / "installed/zz-burst-lead.toml")
    check_frobnicator_unused(tmp_path / "link", steps)


def test_a_file_that_a_link_leads_to_is_not_removed(tmp_path: Path) -> None:
    """Flux would not read the directory of the link any more."""
    installed, place = tmp_path / "installed", tmp_path / "conf.d"
    for directory in (installed, place):
        directory.mkdir()
    piece, link = installed / "zz-burst-lead.toml", place / "zz-burst-lead.toml"
    _list_ours(piece)
    check_no_link(place, removing(piece))
    link.symlink_to(piece)
    with pytest.raises(ConfigError, match=f"{link}: leads to .*; remove that link"):
        check_no_link(place, removing(piece))
    check_no_link(place, removing(piece, change=Change.UPDATE))
    (place / "site.toml").touch()
    check_no_link(place / "site.toml", removing(piece))


def _list_ours(path: Path) -> None:
    tables = {"ingest": {"frobnicator": {"plugins": ["defaults", str(FROB)]}}}
    path.write_text(tomli_w.dumps(tables))


def test_a_sites_queue_is_never_redefined() -> None:
    site = SiteTables(queues={"burst": {"requires": ["debug"]}})
    with pytest.raises(ConfigError, match="already has a queue burst"):
        check_names(site, QUEUE)
    check_names(site, IntakeSettings(mode="hold"))
    check_names(site, msgspec.structs.replace(QUEUE, queue="far"))
    check_names(SiteTables(queues={"burst": {"requires": ["burst"]}}), QUEUE)


def test_names_of_hosts_are_not_compared_where_followers_have_others() -> None:
    usual = {"default": "allow-extra", "gpu": "ignore", "hostname": "ignore"}
    assert site_tables({}, {}).verify == usual
    assert site_tables({"resource": {"noverify": True}}, {}).verify == {}
    # It is in the running configuration by our piece, and stays in it.
    ours = {"resource": {"verify": usual}}
    assert site_tables(ours, ours).verify == usual
    choice = IntakeChoice(intake=QUEUE, verify=usual)
    assert lead_tables(single_directory(Path("/x")), choice)["resource"] == {
        "verify": usual
    }
