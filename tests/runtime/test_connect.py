# SPDX-License-Identifier: MIT
"""Where the lead is looked for, and where followers are told to find it."""

from importlib.metadata import EntryPoint
from typing import Any, cast

import pytest

from burst.config import LeadSettings
from burst.errors import ConfigError, LeadError
from burst.runtime.connect import GROUP, connect, is_flux, owner_tag, with_settings
from tests.builders import identity


@pytest.mark.parametrize(
    ("known", "address", "port", "endpoint"),
    [
        ("tcp://lead-0:8050", "", 0, "tcp://lead-0:8050"),
        ("tcp://lead-0:8050", "10.0.0.7", 0, "tcp://10.0.0.7:8050"),
        ("tcp://lead-0:8050", "", 30050, "tcp://lead-0:30050"),
        ("tcp://lead-0:8050", "10.0.0.7", 30050, "tcp://10.0.0.7:30050"),
        ("", "10.0.0.7", 30050, "tcp://10.0.0.7:30050"),
        ("", "fd00::7", 30050, "tcp://[fd00::7]:30050"),
        ("tcp://lead-0:8050", "[fd00::7]", 0, "tcp://[fd00::7]:8050"),
        ("", "", 0, ""),
    ],
)
def test_followers_are_told_what_the_settings_say_and_else_what_the_lead_says(
    known: str, address: str, port: int, endpoint: str
) -> None:
    settings = LeadSettings(address=address, port=port)
    found = with_settings(identity(endpoint=known), settings)
    assert found.endpoint == endpoint


def test_the_settings_give_the_owner_tag_where_they_have_one() -> None:
    lead = identity(owner="lead-0-12345678")
    assert with_settings(lead, LeadSettings()).owner == "lead-0-12345678"
    assert with_settings(lead, LeadSettings(owner="site-a")).owner == "site-a"
    # Where the address is not needed, nobody is asked for it.
    assert owner_tag(lead, LeadSettings(owner="site-a", address="node")) == "site-a"
    assert owner_tag(lead, LeadSettings(port=1)) == "lead-0-12345678"
    with pytest.raises(ConfigError, match=r'lead\.owner = "service" is read from'):
        with_settings(lead, LeadSettings(owner="service"))


def test_half_an_endpoint_is_refused() -> None:
    for half, key in (
        (LeadSettings(address="10.0.0.7"), r"lead\.port: not known from"),
        (LeadSettings(port=30050), r"lead\.address: not known from"),
    ):
        with pytest.raises(ConfigError, match=key + ".*; set both: followers"):
            with_settings(identity(endpoint=""), half)


def test_the_environment_names_the_lead_where_nothing_else_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FLUX_URI", "embedded:///none/of/these")
    with pytest.raises(LeadError, match="/none/of/these"):
        connect("")
    with pytest.raises(LeadError, match="/but/this"):
        connect("embedded:///but/this")


def made_of(uri: str) -> tuple[str]:
    return (uri,)


def test_the_scheme_of_the_uri_chooses_the_lead() -> None:
    mine = EntryPoint("mine", f"{__name__}:made_of", GROUP)
    flux = EntryPoint("flux", "nothing.of.that:name", GROUP)
    found = cast("Any", connect("mine:///a", [flux, mine]))
    assert found == ("mine:///a",)
    with pytest.raises(ModuleNotFoundError):
        connect("ssh://host/run/flux", [flux, mine])
    with pytest.raises(LeadError, match="no lead for ssh://host is installed"):
        connect("ssh://host", [mine])


@pytest.mark.parametrize(
    ("uri", "so"),
    [("local:///run/flux", True), ("ssh://a/b", True), ("embedded:///tmp", False)],
)
def test_what_is_no_stand_in_is_flux(uri: str, so: bool) -> None:
    assert is_flux(uri) is so
