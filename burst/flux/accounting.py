# SPDX-License-Identifier: MIT
"""Asks flux-accounting which banks users may use.

Its priority plugin (`mf_priority.so`) is asked where it is loaded and has been given
data, as Flux admits jobs by what it knows. It names no default banks: it writes them
into each jobspec. Otherwise its service is asked (`flux account-service`), which reads
the database. Requests and answers as of flux-accounting 0.57: `plugin.query` in
src/plugins/mf_priority.cpp, `list_users` in src/cmd/flux-account-service.py.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from burst.errors import MALFORMED, Unreadable
from burst.flux.rpc import RpcClient, ServiceMissing
from burst.model.banks import Associations

PLUGIN = "mf_priority.so"
_NO_DATA = "DNE"
"""The bank that the plugin notes for users before it was given data."""
_LIST = {
    "json": True,
    "fields": "userid,bank,default_bank,active",
    # It wants the key, and gives no format where it is empty.
    "format": "",
}
_Answer = TypeVar("_Answer")


class _PluginBank(msgspec.Struct):
    bank_name: str
    active: int = 1


class _PluginUser(msgspec.Struct):
    userid: int
    banks: list[_PluginBank]


class _Row(msgspec.Struct):
    userid: int
    bank: str
    default_bank: str
    active: int


def read_associations(client: RpcClient, timeout_s: float) -> Associations | None:
    """Return the associations; None where flux-accounting does not run.

    Each request may take that long. Raises Denied, RequestFailed, LeadGone, and
    Unreadable where no answer came in time, or none that can be read.
    """
    plugins = client.ask("job-manager.jobtap", {"query_only": True}, timeout_s)
    if PLUGIN in plugins.get("plugins", ()):
        query = client.ask("job-manager.jobtap-query", {"name": PLUGIN}, timeout_s)
        found = _of_plugin(query)
        if found.banks:
            return found
    try:
        listed = client.ask("accounting.list_users", _LIST, timeout_s)
    except ServiceMissing:
        return None
    return _of_service(listed)


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
    where = "accounting.list_users"
    try:
        # A text of JSON within the JSON.
        listed = msgspec.json.decode(answer.get("list_users", ""))
    except MALFORMED as error:
        raise _malformed(where, error) from error
    banks: dict[int, frozenset[str]] = {}
    defaults: dict[int, str] = {}
    for row in _converted(listed, list[_Row], where):
        if row.active:
            banks[row.userid] = banks.get(row.userid, frozenset()) | {row.bank}
            defaults[row.userid] = row.default_bank
    own = {user: bank for user, bank in defaults.items() if bank in banks[user]}
    return Associations(banks, own)


def _converted(value: Any, shape: type[_Answer], where: str) -> _Answer:
    try:
        return msgspec.convert(value, shape)
    except MALFORMED as error:
        raise _malformed(where, error) from error


def _malformed(where: str, error: Exception) -> Unreadable:
    return Unreadable(f"{where}: not an answer of flux-accounting: {error}")
