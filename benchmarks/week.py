# SPDX-License-Identifier: MIT
"""How much of the paid node time is used, and how long jobs wait.

Jobs of 1 to 8 nodes and 1 to 8 s come every 2.2 s: about as many as eight lent nodes
and an own one can run. The baseline is the same jobs on nine nodes that are always
there. There are several layouts of rank slots, in modes hold and scheduler, with
`[deadlines] idle` of 2 s and of 5 min.

By default it runs in virtual time, with followers that join after 1 s, and after 60 s.
With --real 1 it runs on real Flux and the local provider, in real time.

    python -m benchmarks.week [--json] [--jobs 200] [--seed 1] [--real 1] [--layout 0]
        [--frugal 1]

--frugal 1 sets a worth of 0.1, in virtual time: an idle burst is given back once
keeping it costs more than making it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from benchmarks.table import Goal, Measure, main_of
from benchmarks.week_flux import run_on_flux
from benchmarks.week_jobs import (
    LENT_NODES,
    RunResult,
    WeekJob,
    make_jobs,
    run_on_nodes,
)
from benchmarks.week_model import LOCAL_BOOT_S, run_model

CLOUD_BOOT_S = 60.0
PAID = Goal("<=", 1.35)
MAKESPAN = Goal("<=", 1.25)
WAIT = Goal("<=", 2.0)


class Layout(msgspec.Struct, frozen=True):
    """A division of the lent ranks into slots, and settings of the daemon."""

    mode: str
    size: int
    """Nodes of each slot."""
    idle: str

    @property
    def name(self) -> str:
        """The layout in words."""
        return f"{self.mode}, slots of {self.size}, idle {self.idle}"


FRUGAL = 0.1

LAYOUTS = (
    Layout("hold", 4, "2s"),
    Layout("scheduler", 4, "2s"),
    Layout("scheduler", 1, "2s"),
    Layout("scheduler", 8, "2s"),
    Layout("hold", 4, "5m"),
    Layout("scheduler", 4, "5m"),
    Layout("scheduler", 1, "5m"),
    Layout("scheduler", 8, "5m"),
    Layout("hold", 8, "5m"),
)


def measure(jobs: int, seed: int, real: int, layout: int, frugal: int) -> list[Measure]:
    """Return the measures of all layouts, or of one; `layout` counts from 1."""
    made = make_jobs(jobs, seed)
    first = run_on_nodes(made, LENT_NODES + 1, "first come first served")
    fit = run_on_nodes(made, LENT_NODES + 1, "first fit")
    found = [
        Measure("always there, first come first served: makespan", first.makespan, "s"),
        Measure("always there, first fit: makespan", fit.makespan, "s"),
        Measure("always there, first come first served: wait", first.mean_wait, "s"),
    ]
    for chosen in LAYOUTS[layout - 1 : layout] if layout else LAYOUTS:
        if real:
            done = run_on_flux(made, chosen.mode, chosen.size, chosen.idle)
            found += tell(chosen.name, done, first)
            continue
        for boot in (LOCAL_BOOT_S, CLOUD_BOOT_S):
            done = run_layout(made, chosen, boot, FRUGAL if frugal else 0.0)
            found += tell(f"{chosen.name}, boot {boot:g}s", done, first)
    return found


def run_layout(
    jobs: Sequence[WeekJob], layout: Layout, boot: float, worth: float = 0.0
) -> RunResult:
    """Run a layout in virtual time."""
    tables = {"deadlines": {"idle": layout.idle}, "plan": {"worth": worth}}
    return run_model(jobs, layout.mode, layout.size, boot, **tables)


def tell(name: str, done: RunResult, first: RunResult) -> Iterator[Measure]:
    """Yield the measures of one run, with their goals.

    `paid by used` counts until the last job has ended. The time for which bursts then
    stay idle, as the settings say, is included in a separate measure.
    """
    slower = done.makespan / first.makespan
    yield Measure(f"{name}: makespan, by first come", slower, "x", MAKESPAN)
    yield Measure(f"{name}: paid by used", done.paid_at_end / done.used, "x", PAID)
    yield Measure(f"{name}: longest mean wait", done.worst_wait, "x", WAIT)
    yield Measure(f"{name}: mean wait", done.mean_wait, "s")
    yield Measure(f"{name}: bursts", done.bursts, "")
    yield Measure(f"{name}: with idle at the end", done.paid / done.used, "x")


if __name__ == "__main__":
    main_of(
        __doc__,
        measure,
        jobs=(200, "number of jobs"),
        seed=(1, "seed of the random jobs"),
        real=(0, "1: run on real Flux"),
        layout=(0, "number of the one layout to run, from 1; 0 for all"),
        frugal=(0, "1: set a worth of 0.1, in virtual time"),
    )
