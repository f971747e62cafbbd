# SPDX-License-Identifier: MIT
"""Settings: one frozen object from TOML; values have units, unknown keys are errors.

`burst config` prints the effective values and where each came from. Plug-in authors
declare the keys of their table `[providers.NAME]` as a msgspec.Struct, with durations
as `Seconds`; `convert` makes the Struct from the table.
"""

from burst.config.convert import Seconds, convert
from burst.config.file import RANGES, effective, load, parse, read_toml
from burst.config.http import HttpSettings, ListenAddress, parse_listen
from burst.config.money import MOST_UNITS, BudgetMatch, BudgetSettings, Price
from burst.config.notify import NotifySettings
from burst.config.policy import PolicyMatch, PolicyRule
from burst.config.standing import StandingNodes
from burst.config.tables import (
    LONGEST_OWNER,
    DaemonSettings,
    DeadlineSettings,
    GuestSettings,
    IntakeSettings,
    LeadSettings,
    LimitSettings,
    Mode,
    PlanSettings,
    ProviderTable,
    Settings,
)

__all__ = [
    "LONGEST_OWNER",
    "MOST_UNITS",
    "RANGES",
    "BudgetMatch",
    "BudgetSettings",
    "DaemonSettings",
    "DeadlineSettings",
    "GuestSettings",
    "HttpSettings",
    "IntakeSettings",
    "LeadSettings",
    "LimitSettings",
    "ListenAddress",
    "Mode",
    "NotifySettings",
    "PlanSettings",
    "PolicyMatch",
    "PolicyRule",
    "Price",
    "ProviderTable",
    "Seconds",
    "Settings",
    "StandingNodes",
    "convert",
    "effective",
    "load",
    "parse",
    "parse_listen",
    "read_toml",
]
