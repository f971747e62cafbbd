# SPDX-License-Identifier: MIT
"""What flux-security still needs, and what Flux's installation tells of itself."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from burst.errors import ConfigError
from burst.lead_setup.flux_install import FluxInstall, read_tables, security_directory
from burst.lead_setup.security_files import plan_security

SHELL = "/usr/libexec/flux/flux-shell"
INSTALL = FluxInstall(
    flux="/usr/bin/flux",
    shell=SHELL,
    imp=Path("/usr/libexec/flux/flux-imp"),
    security=Path("/etc/flux"),
)
SIGN, EXEC = "/etc/flux/security/conf.d/site.toml", "/etc/flux/imp/conf.d/site.toml"
SIGNED = {"max-ttl": 600, "default-type": "munge", "allowed-types": ["munge"]}
GOOD_SIGN = {SIGN: {"sign": SIGNED}}
RUNS = {"allowed-users": ["flux"], "allowed-shells": [SHELL]}
GOOD_EXEC = {EXEC: {"exec": RUNS}}


def test_where_there_is_nothing_both_files_are_wanted() -> None:
    plan = plan_security(INSTALL, "flux", {}, {})
    assert not plan.kept
    assert not plan.by_hand
    said = {str(path): tomllib.loads(text) for path, text in plan.wanted.items()}
    assert said == {
        "/etc/flux/security/conf.d/security.toml": {
            "sign": {
                "max-ttl": 1209600,
                "default-type": "munge",
                "allowed-types": ["munge"],
            }
        },
        "/etc/flux/imp/conf.d/imp.toml": {"exec": RUNS},
    }


def test_files_of_the_site_that_say_it_are_kept() -> None:
    plan = plan_security(INSTALL, "flux", GOOD_SIGN, GOOD_EXEC)
    assert (plan.wanted, plan.by_hand) == ({}, ())
    assert plan.kept == (SIGN, EXEC)


@pytest.mark.parametrize(
    ("sign", "run", "expected"),
    [
        # What flux-security does not read as an array, or as a number, says nothing.
        ({}, {"allowed-users": ["other"]}, 'add "flux" to allowed-users under [exec]'),
        ({}, {"allowed-users": "flux"}, 'add "flux" to allowed-users under [exec]'),
        ({}, {"allowed-shells": []}, f'add "{SHELL}" to allowed-shells under [exec]'),
        (
            {"allowed-types": ["none"]},
            {},
            'add "munge" to allowed-types under [sign]',
        ),
        ({"allowed-types": "munge"}, {}, 'add "munge" to allowed-types under [sign]'),
        (
            {"max-ttl": True},
            {},
            "set max-ttl under [sign] to seconds, such as 1209600",
        ),
        (
            {"default-type": "curve"},
            {},
            "set default-type under [sign] to one of allowed-types: jobs are signed by"
            " curve, which is not accepted",
        ),
        (
            {"allowed-types": ["munge", "curve"]},
            {},
            "add the table [sign.curve] with require-ca",
        ),
    ],
)
def test_files_of_the_site_that_do_not_are_left_for_the_site_to_change(
    sign: dict[str, Any], run: dict[str, Any], expected: str
) -> None:
    tables = {SIGN: {"sign": SIGNED | sign}}, {EXEC: {"exec": RUNS | run}}
    plan = plan_security(INSTALL, "flux", *tables)
    assert plan.wanted == {}
    assert f"{SIGN if sign else EXEC}: {expected}" in plan.by_hand


def test_of_several_files_the_whole_table_of_the_last_counts() -> None:
    sign, run = SIGN.replace("site", "z"), EXEC.replace("site", "z")
    tables = GOOD_SIGN | {sign: {"sign": {}}}, GOOD_EXEC | {run: {"exec": {}}}
    told = plan_security(INSTALL, "flux", *tables).by_hand
    assert f'{sign}: add "munge" to allowed-types under [sign]' in told
    assert f'{run}: add "flux" to allowed-users under [exec]' in told


def test_a_file_of_the_site_without_the_table_is_not_installed_over() -> None:
    """Such as one in which all lines are comments."""
    sign, run = SIGN.replace("site", "security"), EXEC.replace("site", "imp")
    plan = plan_security(INSTALL, "flux", {sign: {}}, {run: {}})
    assert {path.name for path in plan.wanted} == {
        "burst-security.toml",
        "burst-imp.toml",
    }


def test_an_imp_tells_where_its_files_are(tmp_path: Path) -> None:
    imp = tmp_path / "flux-imp"
    with pytest.raises(ConfigError, match="there is no IMP at"):
        security_directory(imp)
    imp.write_bytes(b"\x7fELF\0a\0/opt/x/etc/flux/imp/conf.d/*.toml\0b\0")
    assert security_directory(imp) == Path("/opt/x/etc/flux")
    imp.write_bytes(b"\x7fELF\0")
    assert security_directory(imp) is None


def test_all_files_of_a_directory_are_read(tmp_path: Path) -> None:
    assert read_tables(tmp_path / "none") == {}
    (tmp_path / "a.toml").write_text("[sign]\nmax-ttl = 1\n")
    (tmp_path / "b.txt").write_text("not read")
    assert read_tables(tmp_path) == {str(tmp_path / "a.toml"): {"sign": {"max-ttl": 1}}}
    (tmp_path / "c.toml").write_text("[")
    with pytest.raises(ConfigError, match=r"c\.toml: cannot be read"):
        read_tables(tmp_path)
