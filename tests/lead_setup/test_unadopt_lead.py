# SPDX-License-Identifier: MIT
"""What `burst lead adopt` did to a site is taken out again, wherever it stopped."""

import json
import shutil
from collections.abc import Callable, Iterator

import pytest

from burst.errors import ConfigError
from burst.flux_setup.install import apply_files
from burst.lead_setup.add_slots import add_slots
from burst.lead_setup.lead_plan import parse_slot
from burst.lead_setup.site_files import RECORD
from burst.lead_setup.unadopt_lead import Undo, plan_unadopt
from burst.model.shape import Shape
from tests.lead_setup.adopted_site import BOOTSTRAP, SLOT, R, Site
from tests.support.fluxlead import short_directory

MORE = parse_slot("burst-1-[0-1]:4", Shape(1))


@pytest.fixture(params=[False, True], ids=["R", "entries"])
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    with short_directory() as directory:
        yield Site(directory, entries=request.param)


def test_all_files_are_as_they_were(site: Site) -> None:
    site.adopt()
    add_slots(site.config, [MORE])
    apply_files(site.setup, {site.config / "zz-burst-lead.toml": "[burst]\n"})
    unit = site.units / "burst.service"
    shutil.copy(site.directory / "burst/burst.service", unit)
    wants = site.units / "flux.service.wants"
    wants.mkdir()
    (wants / unit.name).symlink_to(unit)  # it was not disabled
    changed = {site.hosts, site.resources}
    assert changed == {
        step.path for step in site.plan().steps if step.undo is Undo.RESTORE
    }
    site.unadopt()
    assert site.files() == site.before
    assert not [*wants.iterdir()]


def test_a_second_adoption_remembers_the_first(site: Site) -> None:
    site.adopt()
    site.adopt()
    site.unadopt()
    assert site.files() == site.before
    site.adopt()
    site.unadopt()
    assert site.files() == site.before


def test_a_unit_that_was_written_again_may_not_be_installed_again(site: Site) -> None:
    site.adopt()
    shutil.copy(site.directory / "burst/burst.service", site.units)
    site.adopt(site.directory / "run")
    site.unadopt()
    assert site.files() == site.before


def test_a_host_of_the_site_is_no_slot_that_unadopt_would_miss(site: Site) -> None:
    site.adopt()
    with pytest.raises(ConfigError, match="test3: hosts of the instance itself"):
        site.adopt(slot=parse_slot("test3:4", Shape(1)))
    site.unadopt()
    assert site.files() == site.before
    # As the site declares them, slots are no hosts of its own.
    add_slots(site.config, [SLOT, MORE])
    before = site.files()
    site.adopt()
    site.unadopt()
    assert site.files() == before


def test_the_instance_is_on_record(site: Site) -> None:
    site.adopt(site.directory / "run")
    add_slots(site.config, [MORE])
    assert site.plan().record.uri == f"local://{site.directory}/run/local"


def _nothing_was_rewritten(site: Site) -> None:
    for path in (site.hosts, site.resources):
        path.write_bytes(site.before[str(path)][0])


def _resources_were_not_rewritten(site: Site) -> None:
    site.resources.write_bytes(site.before[str(site.resources)][0])


def _the_daemons_files_were_not_written(site: Site) -> None:
    for path in site.settings.parent.iterdir():
        path.unlink()


def _copies_are_gone(site: Site) -> None:
    _nothing_was_rewritten(site)
    (site.config / "net.toml.old.2").unlink()


@pytest.mark.parametrize(
    "interrupt",
    [
        _nothing_was_rewritten,
        _resources_were_not_rewritten,
        _the_daemons_files_were_not_written,
        _copies_are_gone,
    ],
)
def test_either_may_have_been_interrupted(
    site: Site, interrupt: Callable[[Site], None]
) -> None:
    site.adopt()
    interrupt(site)
    site.unadopt()
    assert site.files() == site.before


def test_what_was_edited_since_stays(site: Site) -> None:
    site.adopt()
    text = site.settings.read_text()
    site.settings.write_text(f"{text}# of the site\n")
    (site.units / "burst.service").write_text("[Unit]\n")
    site.before |= {
        str(path): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in (site.settings, site.units / "burst.service")
    }
    kept = {step.path for step in site.plan().steps if step.undo is Undo.KEEP}
    assert kept == {site.settings, site.units / "burst.service"}
    site.unadopt()
    assert site.files() == site.before


def test_the_hosts_unit_is_no_matter_of_a_further_instance(site: Site) -> None:
    site.adopt()
    unit = site.units / "burst.service"
    unit.write_text("[Unit]\n")

    def named() -> bool:
        plan = plan_unadopt(site.config, site.setup, site.units, apart=True)
        return unit in {step.path for step in plan.steps}

    assert not named()
    shutil.copy(site.directory / "burst/burst.service", unit)
    assert named(), "adopt may have been of an earlier version, which had it installed"


def test_a_file_that_others_changed_has_to_lose_the_slots_by_hand(site: Site) -> None:
    site.adopt()
    site.hosts.write_text(f"{site.hosts.read_text()}# of the site\n")
    before = site.files()
    with pytest.raises(ConfigError, match=r"net.toml: .*burst-0-\[0-3\]"):
        site.plan()
    assert site.files() == before
    text = BOOTSTRAP.replace("test[1-3]", "test[1-3],test9")
    site.hosts.write_text(text)
    site.unadopt()
    site.before[str(site.hosts)] = (text.encode(), 0o640)
    assert site.files() == site.before


def test_resources_that_the_site_made_anew_stay() -> None:
    """With a node more, and without the slots."""
    with short_directory() as directory:
        site = Site(directory, entries=False)
        site.adopt()
        adopted = json.loads(site.resources.read_text())
        anew = json.loads(json.dumps(R).replace("0-2", "0-3").replace("1-3", "1-4"))
        site.resources.write_text(json.dumps(adopted, indent=1))
        site.hosts.write_text(BOOTSTRAP.replace("test[1-3]", "test[1-4]"))
        with pytest.raises(ConfigError, match=r"/R.*still with burst-0-\[0-3\];"):
            site.plan()
        site.resources.write_text("{}")
        with pytest.raises(ConfigError, match="R: changed by others since"):
            site.plan()
        text = json.dumps(anew)
        site.resources.write_text(text)
        site.unadopt()
        site.before[str(site.hosts)] = (site.hosts.read_bytes(), 0o640)
        site.before[str(site.resources)] = (text.encode(), 0o644)
        assert site.files() == site.before


@pytest.mark.parametrize("again", [1, 2])
def test_an_edit_before_more_slots_were_added_is_not_undone(
    site: Site, again: int
) -> None:
    site.adopt()
    edited = f"{site.hosts.read_text()}# of the site\n"
    site.hosts.write_text(edited)
    for number in range(again):
        add_slots(site.config, [parse_slot(f"more-{number}:4", Shape(1))])
    before = site.files()
    with pytest.raises(ConfigError, match=r"net.toml: changed by others since"):
        site.plan()
    assert site.files() == before
    # Without the slots it is taken for done; the copy with the edit is not removed.
    site.hosts.write_text(BOOTSTRAP)
    site.unadopt()
    copies = {
        name: text.decode()
        for name, (text, _) in site.files().items()
        if name not in site.before
    }
    assert edited in copies.values()
    assert len(copies) == again
    assert site.hosts.read_text() == BOOTSTRAP


@pytest.mark.parametrize(
    ("entries", "more", "told"),
    [
        (False, "\n", "R: changed by others since"),
        (True, "# x\n", r"with burst-0-\[0-3\];"),
    ],
    ids=["R", "entries"],
)
def test_resources_that_others_changed_are_told(
    entries: bool, more: str, told: str
) -> None:
    with short_directory() as directory:
        site = Site(directory, entries=entries)
        site.adopt()
        site.hosts.write_text(f"{BOOTSTRAP}# of the site\n")
        site.resources.write_text(site.resources.read_text() + more)
        with pytest.raises(ConfigError, match=told):
            site.plan()


def test_a_copy_that_is_not_the_file_as_it_was_is_not_given_back(site: Site) -> None:
    site.adopt()
    copy = site.config / "net.toml.old.2"
    copy.write_text("# other\n")
    with pytest.raises(ConfigError, match="changed since"):
        site.plan()
    copy.unlink()
    with pytest.raises(ConfigError, match="restore it from a backup"):
        site.plan()


def test_an_instance_that_was_not_adopted_is_left_alone(site: Site) -> None:
    with pytest.raises(ConfigError, match=f"{RECORD}: not there"):
        site.plan()
    (site.config / RECORD).write_text("[]")
    with pytest.raises(ConfigError, match="cannot be read"):
        site.plan()


def test_a_frobnicator_that_the_site_lists_itself_is_not_taken_away(site: Site) -> None:
    site.adopt()
    ours = site.setup / "frob-burst.py"
    apply_files(site.setup, {ours: "# ours\n"})
    listed = site.config / "zzz-site.toml"
    listed.write_text(f'[ingest.frobnicator]\nplugins = ["defaults", "{ours}"]\n')
    with pytest.raises(ConfigError, match=r"zzz-site.toml: .*frob-burst.py"):
        site.unadopt()
    assert ours.exists()
    listed.unlink()
    site.unadopt()
    assert site.files() == site.before


def test_of_a_piece_behind_a_link_an_edit_is_seen(site: Site) -> None:
    """As where /etc/flux is a link; the list of setup has the names by the link."""
    site.adopt()
    link = site.directory / "etc"
    link.symlink_to(site.directory / "flux")
    setup, piece = link / "burst", link / "system/conf.d/zz-burst-lead.toml"
    ours = setup / "frob-burst.py"
    text = f'[ingest.frobnicator]\nplugins = ["defaults", "{ours}"]\n'
    apply_files(setup, {ours: "# ours\n", piece: text})

    def removed() -> list[str]:
        steps = plan_unadopt(site.config, setup, site.units).steps
        return [step.path.name for step in steps if step.undo is Undo.REMOVE]

    assert removed().count(piece.name) == 1
    piece.write_text(f"{text}# of the site\n")
    with pytest.raises(ConfigError, match=r"zz-burst-lead.toml: .*frob-burst.py"):
        removed()


def test_each_slot_that_was_added_has_to_go_by_hand(site: Site) -> None:
    site.adopt()
    add_slots(site.config, [MORE])
    site.hosts.write_text(f"{site.hosts.read_text()}# of the site\n")
    with pytest.raises(ConfigError, match=r"burst-0-\[0-3\],burst-1-\[0-1\]"):
        site.plan()
    site.hosts.write_text(site.hosts.read_text().replace("burst-0-[0-3]", "test9"))
    with pytest.raises(ConfigError, match=r"with burst-1-\[0-1\];"):
        site.plan()
