# SPDX-License-Identifier: MIT
"""Users' banks as flux-accounting tells them, from answers that it gave.

The answers are of flux-accounting 0.60: its plugin and its service, built from source
and run with Flux 0.88. On a real Flux a stand-in gives them (`stand_in_accounting.py`).
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from burst.errors import LeadError, Unreadable
from burst.flux import connect
from burst.flux.accounting import PLUGIN, read_associations
from burst.flux.rpc import RequestFailed, RpcClient
from burst.model.banks import Associations
from tests.flux.fake_handle import FakeHandle, Fault
from tests.flux.site import HOSTNAME, Site
from tests.flux_instance import FLUX, MISSING, flux_instance
from tests.support.waiting import wait_until

ROWS = [
    {"userid": 5001, "bank": "physics", "default_bank": "physics", "active": 1},
    {"userid": 5001, "bank": "maths", "default_bank": "physics", "active": 1},
    {"userid": 5002, "bank": "maths", "default_bank": "art", "active": 1},
    {"userid": 5003, "bank": "maths", "default_bank": "maths", "active": 0},
]
LISTED = Associations(
    {5001: frozenset({"physics", "maths"}), 5002: frozenset({"maths"})},
    {5001: "physics"},
)
_ENTRY = {
    "fairshare": 0.5,
    "max_run_jobs": 5,
    "queues": [],
    "projects": ["*"],
    "def_project": "*",
    "held_jobs": {},
}
MAP = [
    {"userid": 0, "banks": [{"bank_name": "root", "active": 1, **_ENTRY}]},
    {
        "userid": 5001,
        "banks": [
            {"bank_name": "maths", "active": 1, **_ENTRY},
            {"bank_name": "art", "active": 0, **_ENTRY},
        ],
    },
]
BUILT_IN = [".priority-default", ".limit-duration"]


def lead(manager: dict[str, Any], services: dict[str, Any]) -> RpcClient:
    missing = {"accounting.list_users": lambda _: Fault(errno.ENOSYS)}
    others = {name.replace("__", "."): each for name, each in services.items()}
    return RpcClient(FakeHandle({**manager, **missing, **others}).as_handle())


def client(**services: Any) -> RpcClient:
    """A lead with these services, their dots written as double underscores."""
    return lead({"job-manager.jobtap": lambda _: {"plugins": BUILT_IN}}, services)


def with_plugin(answer: Any, **services: Any) -> RpcClient:
    def query(asked: Any) -> Any:
        assert asked == {"name": PLUGIN}
        return answer

    manager = {
        "job-manager.jobtap": lambda _: {"plugins": [*BUILT_IN, PLUGIN]},
        "job-manager.jobtap-query": query,
    }
    return lead(manager, services)


def listing(asked: Any) -> Any:
    assert asked["format"] == ""
    columns = asked["fields"].split(",")
    rows = [{name: row[name] for name in columns} for row in ROWS]
    return {"list_users": json.dumps(rows, indent=2)}


def test_there_may_be_no_flux_accounting() -> None:
    assert read_associations(client(), 1.0) is None


def test_its_service_lists_active_associations_and_defaults() -> None:
    found = read_associations(client(accounting__list_users=listing), 1.0)
    assert found == LISTED


def test_its_plugin_is_asked_first_as_flux_admits_jobs_by_it() -> None:
    both = with_plugin({"mf_priority_map": MAP}, accounting__list_users=listing)
    assert read_associations(both, 1.0) == Associations(
        {0: frozenset({"root"}), 5001: frozenset({"maths"})}
    )


@pytest.mark.parametrize(
    "known", [[], [{"userid": 0, "banks": [{"bank_name": "DNE", "active": 1}]}]]
)
def test_a_plugin_that_was_given_no_data_yet_knows_nothing(known: Any) -> None:
    answer = {"mf_priority_map": known}
    assert read_associations(with_plugin(answer), 1.0) is None
    both = with_plugin(answer, accounting__list_users=listing)
    assert read_associations(both, 1.0) == LISTED


def test_an_empty_database_is_an_error_of_the_service() -> None:
    text = "list-users: ValueError: no results found in query"
    fails = client(accounting__list_users=lambda _: Fault(errno.EINVAL, text))
    with pytest.raises(RequestFailed, match="no results found"):
        read_associations(fails, 1.0)


@pytest.mark.parametrize(
    "answer", [{}, {"list_users": "{"}, {"list_users": '[{"userid":"x"}]'}]
)
def test_an_answer_of_another_shape_is_no_answer(answer: Any) -> None:
    with pytest.raises(Unreadable, match="not an answer of flux-accounting"):
        read_associations(client(accounting__list_users=lambda _: answer), 1.0)
    with pytest.raises(Unreadable, match="not an answer of flux-accounting"):
        read_associations(with_plugin({"mf_priority_map": 3}), 1.0)


def test_a_service_that_hangs_is_given_up_at_the_deadline() -> None:
    with pytest.raises(Unreadable, match=r"list_users: no answer within 0\.1s"):
        read_associations(client(accounting__list_users=lambda _: None), 0.1)


# On a real Flux.

real = pytest.mark.skipif(not FLUX, reason=MISSING)
STAND_IN = Path(__file__).with_name("stand_in_accounting.py")
PRICES = {"local.local": 3.6}
SOON = {"idle": "0.3s", "accounting": "1s"}


@contextmanager
def accounting(uri: str, *words: str) -> Iterator[None]:
    """A stand-in for flux-accounting's service at that lead."""
    process = subprocess.Popen(
        [FLUX, "python", str(STAND_IN), *words],
        env={**os.environ, "FLUX_URI": uri},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "serves\n"
        yield
    finally:
        process.kill()
        process.communicate()


def own_rows(*banks: str) -> str:
    """The associations of whoever runs this test; the first bank is his default."""
    rows = [
        {
            "userid": os.getuid(),
            "bank": bank,
            "default_bank": banks[0],
            "active": 1,
        }
        for bank in banks
    ]
    return json.dumps(rows)


@pytest.mark.flux
@real
def test_a_real_lead_tells_whether_flux_accounting_runs() -> None:
    with flux_instance() as instance, closing(connect(instance.uri)) as lead:
        assert lead.associations(10.0) is None
        with accounting(instance.uri, "answers", own_rows("physics", "maths")):
            assert lead.associations(10.0) == Associations(
                {os.getuid(): frozenset({"physics", "maths"})},
                {os.getuid(): "physics"},
            )
        with accounting(instance.uri, "hangs"):
            began = time.monotonic()
            with pytest.raises(LeadError, match=r"no answer within 0\.3s"):
                lead.associations(0.3)
            assert time.monotonic() - began < 10.0
        assert lead.associations(10.0) is None


def spent_by_bank(site: Site) -> dict[str, float]:
    found = site.cli.run("cost", "--by", "bank", "--json").json
    return {row["name"]: row["settled"] + row["reserved"] for row in found["rows"]}


@pytest.mark.flux
@real
def test_on_a_real_lead_a_bank_pays_for_its_users_only(site: Site) -> None:
    budget = [{"limit": 0, "match": {"bank": "art"}}]
    site.write(deadlines=SOON, prices=PRICES, budget=budget)
    with (
        accounting(site.cli.uri, "answers", own_rows("physics", "maths")),
        site.cli.daemon(),
    ):
        foreign = site.submit("-N2", "--requires=burst", "--bank=art", *HOSTNAME)
        default = site.submit("-N2", "--requires=burst", *HOSTNAME)
        site.wait_for_job(default, "COMPLETED")
        assert "bank art is not its user's by flux-accounting" in site.explain(foreign)
        assert site.jobs("{user.burst.state}", foreign) == "waiting"
        assert len(site.bursts()) == 1
        site.flux("cancel", foreign)
        wait_until(lambda: spent_by_bank(site).keys() == {"physics"}, "its bank")
        assert site.cli.status()["banks_unverified"] == ""
        site.check_that_nothing_is_left()


@pytest.mark.flux
@real
def test_a_daemon_goes_on_while_flux_accounting_hangs(site: Site) -> None:
    budget = [{"limit": 1000, "match": {"bank": "physics"}}]
    site.write(deadlines=SOON, prices=PRICES, budget=budget)
    with accounting(site.cli.uri, "hangs"), site.cli.daemon() as daemon:
        job = site.submit("-N2", "--requires=burst", "--bank=art", *HOSTNAME)
        site.wait_for_job(job, "COMPLETED")
        assert spent_by_bank(site).keys() == {"art"}
        why = site.cli.status()["banks_unverified"]
        assert why == "accounting.list_users: no answer within 1s"
        assert f"banks are not verified: {why}; banks are as jobs name" in daemon.log
        site.check_that_nothing_is_left()
