# SPDX-License-Identifier: MIT
"""Asks flux-accounting which banks users may use, within which limits.

Its priority plugin (`mf_priority.so`) is asked if it is loaded and has been given data,
as Flux admits jobs by what the plugin knows. The plugin names no default banks: it
writes them into each jobspec. Otherwise the service (`flux account-service`) is asked,
which reads the database. Only the plugin is asked for limits, as only it keeps jobs
within them; only the service knows the weights of usage. Requests and answers are those
of flux-accounting 0.60: `plugin.query` in src/plugins/mf_priority.cpp, `list_users` and
`list_configs` in src/cmd/flux-account-service.py.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from burst.decode import from_plain
from burst.errors import MALFORMED, Denied, LeadError, LeadGone, Unreadable
from burst.flux.rpc import RpcClient, ServiceMissing
from burst.model.accounting import (
    UNLIMITED,
    AccountingFacts,
    AssociationLimits,
    AssociationUse,
    QueueLimits,
    UsageWeights,
)
from burst.model.banks import Associations

PLUGIN = "mf_priority.so"
_NO_DATA = "DNE"
"""The bank that the plugin notes for users before it was given data, such as users of
jobs that wait while Flux is restarted. The entry stays, but no job is in that bank."""
_LIST = {
    "json": True,
    "fields": "userid,bank,default_bank,active",
    # The service requires this key. If it is empty, the answer has no format.
    "format": "",
}
_CONFIGS = {"json": True, "fields": "key,value", "format": ""}
_Answer = TypeVar("_Answer")


class _PluginUse(msgspec.Struct):
    cur_run_jobs: int = 0
    cur_nodes: int = 0


class _PluginBank(msgspec.Struct):
    """An association as the plugin has it. Older plugins have fewer limits."""

    bank_name: str
    active: int = 1
    max_run_jobs: int = UNLIMITED
    max_nodes: int = UNLIMITED
    max_cores: int = UNLIMITED
    max_sched_jobs: int = UNLIMITED
    cur_run_jobs: int = 0
    cur_nodes: int = 0
    cur_cores: int = 0
    queue_usage: dict[str, _PluginUse] = {}
    queues: frozenset[str] | None = None

    def limits(self) -> AssociationLimits:
        return AssociationLimits(
            max_running_jobs=self.max_run_jobs,
            max_nodes=self.max_nodes,
            max_cores=self.max_cores,
            max_sched_jobs=self.max_sched_jobs,
            running=AssociationUse(self.cur_run_jobs, self.cur_nodes, self.cur_cores),
            by_queue={
                queue: AssociationUse(use.cur_run_jobs, use.cur_nodes)
                for queue, use in self.queue_usage.items()
            },
            queues=self.queues,
        )


class _PluginUser(msgspec.Struct):
    userid: int
    banks: list[_PluginBank]


class _Config(msgspec.Struct):
    key: str
    value: str


class _Row(msgspec.Struct):
    userid: int
    bank: str
    default_bank: str
    active: int


def read_associations(client: RpcClient, timeout_s: float) -> Associations | None:
    """Return the associations, with limits; None if flux-accounting does not run.

    Each request may take `timeout_s` seconds. Raises Denied, RequestFailed, LeadGone,
    and Unreadable if no answer came in time, or it cannot be read.
    """
    try:
        plugins = client.ask("job-manager.jobtap", {"query_only": True}, timeout_s)
        if PLUGIN in plugins.get("plugins", ()):
            query = client.ask("job-manager.jobtap-query", {"name": PLUGIN}, timeout_s)
            found = _of_plugin(query)
            if found.banks:
                facts = _limits_of_plugin(query, _weights(client, timeout_s))
                return msgspec.structs.replace(found, facts=facts)
        listed = client.ask("accounting.list_users", _LIST, timeout_s)
    except ServiceMissing:
        # While Flux shuts down it has no job manager either.
        return None
    facts = AccountingFacts(weights=_weights(client, timeout_s))
    return msgspec.structs.replace(_of_service(listed), facts=facts)


def _weights(client: RpcClient, timeout_s: float) -> UsageWeights | None:
    """Return the weights of usage; None if they cannot be read."""
    try:
        answer = client.ask("accounting.list_configs", _CONFIGS, timeout_s)
        found = _rows(answer, "list_configs", list[_Config])
        values = {each.key: each.value for each in found}
        given = (
            float(values.get(f"{each}_weight", default))
            for each, default in (("node", 1.0), ("core", 0.0), ("gpu", 0.0))
        )
        return UsageWeights(*given)
    except LeadGone:
        raise
    except (Denied, LeadError, ValueError):
        # Older services have no such request. No decision depends on the weights.
        return None


def _limits_of_plugin(
    answer: dict[str, Any], weights: UsageWeights | None
) -> AccountingFacts:
    users = _converted(answer.get("mf_priority_map"), list[_PluginUser], PLUGIN)
    queues = answer.get("queues", {})
    return AccountingFacts(
        associations={
            (user.userid, bank.bank_name): bank.limits()
            for user in users
            for bank in user.banks
            if bank.bank_name != _NO_DATA
        },
        queues=_converted(queues, dict[str, QueueLimits], PLUGIN),
        weights=weights,
    )


def _of_plugin(answer: dict[str, Any]) -> Associations:
    users = _converted(answer.get("mf_priority_map"), list[_PluginUser], PLUGIN)
    banks = {
        user.userid: frozenset(
            bank.bank_name
            for bank in user.banks
            if bank.active and bank.bank_name != _NO_DATA
        )
        for user in users
    }
    known = any(banks.values())
    return Associations(banks if known else {})


def _of_service(answer: dict[str, Any]) -> Associations:
    banks: dict[int, frozenset[str]] = {}
    defaults: dict[int, str] = {}
    for row in _rows(answer, "list_users", list[_Row]):
        if row.active:
            banks[row.userid] = banks.get(row.userid, frozenset()) | {row.bank}
            defaults[row.userid] = row.default_bank
    own = {user: bank for user, bank in defaults.items() if bank in banks[user]}
    return Associations(banks, own)


def _rows(answer: dict[str, Any], request: str, shape: type[_Answer]) -> _Answer:
    where = f"accounting.{request}"
    try:
        # The value is itself a text of JSON.
        listed = msgspec.json.decode(answer.get(request, ""))
    except MALFORMED as error:
        raise _malformed(where, error) from error
    return _converted(listed, shape, where)


def _converted(value: Any, shape: type[_Answer], where: str) -> _Answer:
    try:
        return from_plain(value, shape)
    except MALFORMED as error:
        raise _malformed(where, error) from error


def _malformed(where: str, error: Exception) -> Unreadable:
    return Unreadable(f"{where}: not an answer of flux-accounting: {error}")
