# SPDX-License-Identifier: MIT
"""What is asked of Google Cloud beside GKE itself, by plain HTTP.

Most of it by `burst doctor`; the VMs of node pools where a burst has shrunk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
import requests

from burst.errors import NotFound, ProviderError, Refused, Transient

# Of one call, in seconds.
_TIMEOUT_S = 20.0
_Answer = TypeVar("_Answer")
_FORBIDDEN, _NOT_FOUND = 403, 404


class Addresses(msgspec.Struct, frozen=True):
    """Where the services are."""

    projects: str = "https://cloudresourcemanager.googleapis.com/v1/projects"
    accounts: str = "https://iam.googleapis.com/v1/projects/-/serviceAccounts"
    compute: str = "https://compute.googleapis.com/compute/v1/projects"


class Quota(msgspec.Struct, frozen=True):
    """A quota of a region, as Compute Engine tells it."""

    metric: str
    """Such as `N2_CPUS`."""
    limit: float
    usage: float = 0.0


class MachineType(msgspec.Struct, frozen=True, rename="camel"):
    """A type of machine, as Compute Engine tells it."""

    guest_cpus: int


class ManagedVm(msgspec.Struct, frozen=True, rename="camel"):
    """A VM of an instance group, or one that the group is making."""

    instance: str
    """Its URL, which ends with its name: that of the node in Kubernetes."""
    current_action: str = "NONE"

    @property
    def name(self) -> str:
        """Its name."""
        return self.instance.rpartition("/")[2]

    @property
    def ending(self) -> bool:
        """Whether its group deletes it, and makes no other in its place."""
        return self.current_action in ("DELETING", "ABANDONING")


class _ManagedVms(msgspec.Struct, frozen=True, rename="camel"):
    # Left out of the answer where there are none.
    managed_instances: tuple[ManagedVm, ...] = ()
    next_page_token: str = ""


class _Begun(msgspec.Struct, frozen=True):
    """An operation of which nothing is read: its effect is looked for."""


class _Granted(msgspec.Struct, frozen=True):
    # Left out of the answer where none is granted.
    permissions: frozenset[str] = frozenset()


class _Region(msgspec.Struct, frozen=True):
    quotas: tuple[Quota, ...] = ()


class GoogleApis:
    """Questions about one project. All raise NotFound, Refused and Transient."""

    def __init__(
        self, project: str, token: Callable[[], str], addresses: Addresses | None = None
    ) -> None:
        self._project, self._token = project, token
        self._at = addresses or Addresses()

    def granted(self, permissions: Sequence[str]) -> frozenset[str]:
        """Return which of these, at most 100, this account has in the project."""
        url = f"{self._at.projects}/{self._project}:testIamPermissions"
        body = {"permissions": list(permissions)}
        return self._ask(url, _Granted, body).permissions

    def may_act_as(self, account: str) -> bool:
        """Tell whether VMs may be made that run as a service account."""
        permission = "iam.serviceAccounts.actAs"
        url = f"{self._at.accounts}/{account}:testIamPermissions"
        found = self._ask(url, _Granted, {"permissions": [permission]})
        return permission in found.permissions

    def quotas(self, region: str) -> dict[str, Quota]:
        """Return the quotas of a region by their metrics."""
        url = f"{self._at.compute}/{self._project}/regions/{region}"
        return {quota.metric: quota for quota in self._ask(url, _Region).quotas}

    def machine_type(self, zone: str, name: str) -> MachineType:
        """Return a type of machine in a zone. Raises NotFound."""
        url = f"{self._at.compute}/{self._project}/zones/{zone}/machineTypes/{name}"
        return self._ask(url, MachineType)

    def vms(self, group: str) -> list[ManagedVm]:
        """Return the VMs of an instance group, `GkeResource.groups`."""
        url = f"{self._at.compute}/{group}/listManagedInstances"
        page = self._ask(url, _ManagedVms, {})
        found = list(page.managed_instances)
        while page.next_page_token:
            token = quote(page.next_page_token, safe="")
            page = self._ask(f"{url}?pageToken={token}", _ManagedVms, {})
            found += page.managed_instances
        return found

    def delete_vms(self, group: str, vms: Sequence[ManagedVm]) -> None:
        """Begin to delete these VMs of a group, which is smaller by them then.

        Those that it deletes already, or that are not in it any more, are skipped.
        """
        url = f"{self._at.compute}/{group}/deleteInstances"
        body = {
            "instances": [vm.instance for vm in vms],
            "skipInstancesOnValidationError": True,
        }
        self._ask(url, _Begun, body)

    def _ask(self, url: str, answer: type[_Answer], body: Any = None) -> _Answer:
        headers = {"Authorization": f"Bearer {self._token()}"}
        method = "GET" if body is None else "POST"
        try:
            found = requests.request(
                method, url, json=body, headers=headers, timeout=_TIMEOUT_S
            )
        except requests.RequestException as error:
            raise Transient(f"no answer from {url}: {error}") from error
        if not found.ok:
            raise _error(found)
        try:
            return msgspec.json.decode(found.content, type=answer)
        except msgspec.MsgspecError as error:
            raise Transient(f"{url} gave an unexpected answer: {error}") from error


class _Failed(msgspec.Struct, frozen=True):
    message: str


class _Failure(msgspec.Struct, frozen=True):
    error: _Failed


def _error(found: requests.Response) -> ProviderError:
    try:
        said = msgspec.json.decode(found.content, type=_Failure).error.message
    except msgspec.MsgspecError:
        said = f"status {found.status_code}"
    if found.status_code == _NOT_FOUND:
        return NotFound(said)
    if found.status_code == _FORBIDDEN:
        return Refused(said)
    return Transient(said)
