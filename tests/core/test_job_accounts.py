# SPDX-License-Identifier: MIT
"""Which banks and queues a burst is made for."""

from burst.core.plan.plan_demands import with_accounts
from burst.model.banks import NOT_VERIFIED, Associations, Banks
from tests.builders import job, whole
from tests.lifecycles import LEASE


def test_each_bank_and_queue_of_its_jobs_once() -> None:
    jobs = [
        job(1, whole(1), bank="chem", queue="batch"),
        job(2, whole(1), bank="bio", queue="batch"),
        job(3, whole(1), bank="bio"),
    ]
    found = with_accounts(LEASE, jobs, NOT_VERIFIED)
    assert (found.banks, found.queues) == (("bio", "chem"), ("batch",))


def test_the_default_bank_pays_and_that_of_others_does_not() -> None:
    its = Associations(banks={7: frozenset({"chem"})}, defaults={7: "chem"})
    default = job(1, whole(1), userid=7)
    others = job(2, whole(1), userid=7, bank="bio")
    found = with_accounts(LEASE, [default, others], Banks(its))
    assert (found.banks, found.queues) == (("chem",), ())
