# SPDX-License-Identifier: MIT
"""What live bursts have left for further jobs."""

import math

import pytest

from burst.core.plan.capacity import lending_bursts, source_of
from burst.core.plan.sources import why_unwanted
from burst.core.records import Records
from burst.model.lead import JobState
from burst.model.request import BurstPreferences
from tests.builders import T0, but, job, settings, view, whole
from tests.lifecycles import run


def free_ranks(*jobs):
    """The ranks that are free for others in a burst of ranks 2 and 3 made for job 1."""
    burst = run("provision-start")
    records = Records(bursts={burst.id: burst})
    (found,) = lending_bursts(records, view(*jobs), settings(), T0)
    return sorted(found.pool.free)


def test_a_job_for_which_it_is_made_takes_what_it_will_have():
    assert free_ranks(job(1, whole(1))) == [3]
    assert free_ranks(job(1, whole(2))) == []


@pytest.mark.parametrize("jobs", [(), (job(1, None),)])
def test_a_job_that_is_gone_or_cannot_be_read_takes_nothing(jobs):
    assert free_ranks(*jobs) == [2, 3]


@pytest.mark.parametrize(
    ("started", "duration", "kept"),
    [
        (0.0, 100.0, 100.0),
        (T0 - 40, 100.0, 60.0),
        (T0 - 140, 100.0, 0.0),
        (T0 - 40, 0.0, math.inf),
    ],
)
def test_a_burst_is_kept_until_its_job_ends(started, duration, kept):
    burst = run("provision-start", "provision-finish", "online", "job-start")
    records = Records(bursts={burst.id: burst})
    state = JobState.RUN if started else JobState.SCHED
    times = {"t_start": started, "duration": duration}
    seen = view(job(1, whole(1), state=state, **times), online=range(4))
    (found,) = lending_bursts(records, seen, settings(), T0)
    assert found.source.stays == kept


def test_a_price_of_the_site_is_named_as_such():
    burst = run("provision-start")
    burst = but(burst, lease=but(burst.lease, price=2.0, priced_by="site"))
    source = source_of(burst, settings().deadlines, T0)
    refused = why_unwanted(BurstPreferences(max_price=1.0), source)
    assert refused is not None
    assert "2.0 per node-hour by [prices]" in refused.text()
