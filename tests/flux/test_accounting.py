# SPDX-License-Identifier: MIT
"""Users' banks as flux-accounting tells them, from answers that it gave.

The answers are of flux-accounting 0.60: its plugin and its service, built from source
and run with Flux 0.88. test_real_accounting.py has them on a real Flux.
"""

from __future__ import annotations

import errno
import json
from typing import Any

import msgspec
import pytest

from burst.errors import Unreadable
from burst.flux.accounting import PLUGIN, read_associations
from burst.flux.rpc import RequestFailed, RpcClient
from burst.model.accounting import (
    AccountingFacts,
    AssociationLimits,
    AssociationUse,
    QueueLimits,
    UsageWeights,
)
from burst.model.banks import Associations
from tests.flux.fake_handle import FakeHandle, Fault

ROWS = [
    {"userid": 5001, "bank": "physics", "default_bank": "physics", "active": 1},
    {"userid": 5001, "bank": "maths", "default_bank": "physics", "active": 1},
    {"userid": 5002, "bank": "maths", "default_bank": "art", "active": 1},
    {"userid": 5003, "bank": "maths", "default_bank": "maths", "active": 0},
]
LISTED = Associations(
    {5001: frozenset({"physics", "maths"}), 5002: frozenset({"maths"})},
    {5001: "physics"},
    AccountingFacts(),
)
_ENTRY = {
    "fairshare": 0.5,
    "max_run_jobs": 5,
    "cur_run_jobs": 2,
    "max_active_jobs": 7,
    "cur_active_jobs": 3,
    "max_nodes": 4,
    "cur_nodes": 3,
    "max_cores": 2147483647,
    "cur_cores": 12,
    "max_sched_jobs": 2147483647,
    "cur_sched_jobs": 1,
    "queues": ["debug"],
    "queue_factor": 0,
    "queue_usage": {
        "debug": {
            "cur_run_jobs": 1,
            "cur_nodes": 2,
            "cur_sched_jobs": 0,
            "cur_sched_nodes": 0,
            "cur_sched_cores": 0,
        }
    },
    "projects": ["*"],
    "def_project": "*",
    "held_jobs": {},
}
LIMITS = AssociationLimits(
    max_running_jobs=5,
    max_nodes=4,
    running=AssociationUse(2, 3, 12),
    by_queue={"debug": AssociationUse(1, 2)},
    queues=frozenset({"debug"}),
)
QUEUES = {
    "debug": {
        "name": "debug",
        "min_nodes_per_job": 1,
        "max_nodes_per_job": 1,
        "max_time_per_job": 60,
        "priority": 0,
        "max_running_jobs": 3,
        "max_nodes_per_assoc": 2,
        "max_sched_jobs": 2147483647,
        "max_sched_nodes_per_assoc": 2147483647,
        "max_sched_cores_per_assoc": 2147483647,
    }
}
CONFIGS = [
    {"key": "decay_factor", "value": "0.5"},
    {"key": "node_weight", "value": "1.0"},
    {"key": "core_weight", "value": "0.25"},
]
MAP = [
    {"userid": 0, "banks": [{"bank_name": "root", "active": 1}]},
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
    missing = {
        f"accounting.{each}": lambda _: Fault(errno.ENOSYS)
        for each in ("list_users", "list_configs")
    }
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


def test_a_lead_that_shuts_down_has_no_job_manager_and_so_no_flux_accounting() -> None:
    gone = lead({"job-manager.jobtap": lambda _: Fault(errno.ENOSYS)}, {})
    assert read_associations(gone, 1.0) is None


def test_its_service_lists_active_associations_and_defaults() -> None:
    found = read_associations(client(accounting__list_users=listing), 1.0)
    assert found == LISTED


def test_its_plugin_is_asked_first_as_flux_admits_jobs_by_it() -> None:
    answer = {"mf_priority_map": MAP, "queues": QUEUES}
    both = with_plugin(answer, accounting__list_users=listing)
    found = read_associations(both, 1.0)
    assert found is not None
    assert found.facts == AccountingFacts(
        associations={
            (0, "root"): AssociationLimits(),
            (5001, "maths"): LIMITS,
            (5001, "art"): LIMITS,
        },
        queues={"debug": QueueLimits(max_running_jobs=3, max_nodes_per_assoc=2)},
    )
    assert msgspec.structs.replace(found, facts=None) == Associations(
        {0: frozenset({"root"}), 5001: frozenset({"maths"})}
    )


def test_a_plugin_that_knows_fewer_limits_has_none_of_the_others() -> None:
    old = [{"userid": 1, "banks": [{"bank_name": "maths", "max_run_jobs": 2}]}]
    found = read_associations(with_plugin({"mf_priority_map": old}), 1.0)
    assert found is not None
    assert found.facts == AccountingFacts(
        associations={(1, "maths"): AssociationLimits(max_running_jobs=2)}
    )


def configs(answer: Any) -> RpcClient:
    def list_configs(asked: Any) -> Any:
        assert asked == {"json": True, "fields": "key,value", "format": ""}
        return answer

    return client(accounting__list_users=listing, accounting__list_configs=list_configs)


def test_its_service_tells_what_nodes_count_in_the_usage() -> None:
    found = read_associations(configs({"list_configs": json.dumps(CONFIGS)}), 1.0)
    assert found is not None
    assert found.facts == AccountingFacts(weights=UsageWeights(1.0, 0.25, 0.0))


@pytest.mark.parametrize(
    "answer",
    [
        Fault(errno.EPERM),
        Fault(errno.EINVAL, "list-configs: ValueError"),
        {"list_configs": "{"},
        {"list_configs": '[{"key": "node_weight", "value": "much"}]'},
    ],
)
def test_weights_that_cannot_be_read_are_not_known(answer: Any) -> None:
    assert read_associations(configs(answer), 1.0) == LISTED


@pytest.mark.parametrize(
    "known", [[], [{"userid": 0, "banks": [{"bank_name": "DNE", "active": 1}]}]]
)
def test_a_plugin_that_was_given_no_data_yet_knows_nothing(known: Any) -> None:
    answer = {"mf_priority_map": known}
    assert read_associations(with_plugin(answer), 1.0) is None
    both = with_plugin(answer, accounting__list_users=listing)
    assert read_associations(both, 1.0) == LISTED


def test_what_it_noted_before_it_was_given_data_limits_nobody() -> None:
    """Such as for a job that waited at a restart of Flux."""
    noted = {**_ENTRY, "bank_name": "DNE", "active": 1, "max_sched_jobs": 32767}
    users = [*MAP, {"userid": 5002, "banks": [noted]}]
    noted_too, known = (
        read_associations(with_plugin({"mf_priority_map": each}), 1.0)
        for each in (users, MAP)
    )
    assert noted_too is not None
    assert known is not None
    assert noted_too.facts == known.facts


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
