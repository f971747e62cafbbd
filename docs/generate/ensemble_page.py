# SPDX-License-Identifier: MIT
"""docs/ensemble-options.md: keys of an ensemble's file, and options of algorithms."""

from __future__ import annotations

import msgspec
from burst_ensemble.config.spec import (
    EnsembleLimits,
    EnsembleSpec,
    JobSpec,
    MemberSpec,
)
from burst_ensemble.core.algorithms.common import IdleOptions
from burst_ensemble.core.algorithms.more_jobs import MoreJobsOptions
from burst_ensemble.core.algorithms.stop import StopOptions
from burst_ensemble.core.algorithms.triggers import TriggerOptions
from burst_ensemble.core.algorithms.workload_demand import DemandOptions

from docs.generate.settings_page import KeyPage

_HEAD = """\
# Options of ensembles

This page is made from the code by `make docs`. [ensembles.md](ensembles.md)
says what each algorithm decides. The time from one *check* to the next is
`checkSeconds`.

`algorithm`, at the top of the file or of a member, is a name, a table with `name` and
`options`, or a list of these, which are asked in this order. The file's `algorithm` is
for members without one of their own; default: `workload-demand`.
"""
_TABLES: tuple[tuple[str, type[msgspec.Struct], str], ...] = (
    ("FILE", EnsembleSpec, "The top of the file; `[custom]` has commands."),
    ("[[members]]", MemberSpec, ""),
    ("[limits]", EnsembleLimits, "Limits of all members together."),
    ("[[jobs]]", JobSpec, "Jobs that are alike; also for `[[members.jobs]]`."),
    ("idling", IdleOptions, "Options that end an idle member."),
    ("workload-demand", DemandOptions, "Nodes follow the queue."),
    ("stop", StopOptions, "The first of these that is reached ends the member."),
    ("more-jobs", MoreJobsOptions, "Jobs of the file when the queue runs dry."),
    ("triggers", TriggerOptions, "Rules of a trigger and an action each."),
)
# Keys that no file has, and tables that are on the page by themselves.
_LEFT_OUT: dict[type[msgspec.Struct], tuple[str, ...]] = {
    EnsembleSpec: (
        *("members", "jobs", "algorithms", "limits", "custom", "directory"),
    ),
    MemberSpec: ("jobs", "algorithms"),
    JobSpec: ("commands",),
}


def ensemble_page() -> str:
    """Return the page, Markdown."""
    return _page().text()


def undocumented_options() -> list[str]:
    """Return the keys on the page that have no docstring, as `Class.key`."""
    return _page().silent


def _page() -> KeyPage:
    page = KeyPage(_HEAD)
    for title, table, lead in _TABLES:
        page.add(table, title, lead, leave_out=_LEFT_OUT.get(table, ()))
    return page
