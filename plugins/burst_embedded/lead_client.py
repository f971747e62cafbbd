# SPDX-License-Identifier: MIT
"""The embedded lead as a `burst.lead.Lead`, `WholeQueue`, `JobSubmitter`, `OrderlyEnd`.

Everyone who can connect is its owner.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

import msgspec

from burst.decode import from_plain, prepared
from burst.errors import ConfigError, StoreError
from burst.flux.base_lead import BaseLead
from burst.flux.journal import Journal
from burst.flux.rpc import RequestFailed, RpcClient
from burst.lead import Store
from burst.model.jobid import JobId
from burst.model.lead import JobView, LeadIdentity, LeadView
from burst_embedded.handle import connect_handle
from burst_embedded.wire import PROTOCOL, Output, is_same_protocol


class EmbeddedLead(BaseLead):
    """A client that does with the embedded lead what `burst.flux` does with Flux."""

    def __init__(self, uri: str) -> None:
        """`uri` is `embedded://PATH`.

        Raises LeadGone if there is no lead, ConfigError if the URI has another form or
        the lead is of another version.
        """
        super().__init__(lambda: connect_handle(uri))
        try:
            found = self._client.ask("embedded.identity")
            _check_version(uri, found["version"])
            self._identity = from_plain(found, LeadIdentity)
        except BaseException:
            self.close()
            raise

    def identity(self) -> LeadIdentity:
        """Return the facts that are fixed while the lead runs."""
        return self._identity

    def read_ranks(self, journal: Journal, jobs: Mapping[JobId, JobView]) -> LeadView:  # noqa: ARG002 - see BaseLead
        """Return a view of the ranks as they are now, with the given jobs."""
        found = self._client.ask("embedded.ranks")
        view = msgspec.convert(found, prepared(LeadView), str_keys=True)
        return msgspec.structs.replace(view, read_at=time.time(), jobs=jobs)

    def forget_ranks(self, ranks: frozenset[int]) -> None:
        """Do nothing: all ranks are read each time."""

    def finish_job(self, job: JobId, exit_status: int, output: str) -> bool:
        """Give a held job the result of a run elsewhere."""
        asked = {"id": job, "exit_status": exit_status, "output": output}
        return bool(self._client.ask("embedded.finish", asked)["done"])

    def output(self, job: JobId) -> list[Output]:
        """Return the output of the job's tasks so far. Raises LeadError."""
        found = self._client.ask("embedded.output", {"id": job})
        return from_plain(found["pieces"], list[Output])

    def store(self) -> Store:
        """Return the store, which the lead keeps in a file."""
        return _LeadStore(self._client.ask)

    def shared_store(self) -> Store:
        """Return the store with a connection of its own for each request."""
        return _LeadStore(self._ask_anew)

    def _ask_anew(self, topic: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        with closing(self._connect()) as handle:
            return RpcClient(handle).ask(topic, payload)


connect = EmbeddedLead
"""The object of the entry point in group `burst.leads`."""


def _check_version(uri: str, version: str) -> None:
    """Raise ConfigError if the lead's answers may be other than we expect."""
    if not is_same_protocol(version):
        raise ConfigError(
            f"the embedded lead at {uri} is of another version: {version}, and not"
            f" {PROTOCOL}",
            "start it anew",
        )


class _LeadStore:
    """The store, read and written by requests to the lead."""

    def __init__(self, ask: Callable[[str, Mapping[str, Any]], dict[str, Any]]) -> None:
        self._ask = ask

    def load(self) -> dict[str, str]:
        """Return all records."""
        return self._ask("embedded.load", {})

    def write(self, changes: Mapping[str, str | None]) -> None:
        """Write all of these values, or none."""
        try:
            self._ask("embedded.write", {"changes": changes})
        except RequestFailed as error:
            raise StoreError(error.what) from error
        except UnicodeEncodeError as error:
            raise StoreError(f"a value is not text: {error.reason}") from error
