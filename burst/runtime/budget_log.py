# SPDX-License-Identifier: MIT
"""Logs each budget whose use is high.

A budget is logged when its use rises that far. At the daemon's start, and when it reads
a new budget, those are logged whose use is that high already.
"""

from __future__ import annotations

from collections.abc import Collection

from burst import log
from burst.config import BudgetSettings
from burst.core.money.budget import Budgets, BudgetState
from burst.core.money.money import format_money
from burst.core.records import Records
from burst.model.decision import moment
from burst.runtime.engine_config import EngineConfig


def log_budget_changes(
    before: Records, after: Records, config: EngineConfig, now: float
) -> None:
    """Log the budgets that warn after this change of the records, but not before it."""
    settings, same = config.settings, before.periods is after.periods
    if not settings.budget or (same and before.entries is after.entries):
        return
    was, is_ = (
        Budgets(settings.budget, records, config.userids, now).states()
        for records in (before, after)
    )
    for old, new in zip(was, is_, strict=True):
        if new.warns and not old.warns:
            _log(new)


def log_new_budgets(
    records: Records,
    config: EngineConfig,
    now: float,
    known: Collection[BudgetSettings] = (),
) -> None:
    """Log the budgets that warn now, except those in `known`."""
    for state in Budgets(config.settings.budget, records, config.userids, now).states():
        if state.warns and state.budget not in known:
            _log(state)


def _log(state: BudgetState) -> None:
    # A budget with the limit 0 is logged when the settings are read.
    if state.limit:
        log.warn(
            "budget %s: %s of %s is settled or reserved, %s is left until %s",
            state.budget,
            format_money(state.used),
            format_money(state.limit),
            format_money(state.left),
            moment(state.window.ends),
        )
