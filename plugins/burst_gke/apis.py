# SPDX-License-Identifier: MIT
"""Calls of Google Cloud's other APIs than GKE's, by plain HTTP.

`burst doctor` makes most of them; the VMs of a node pool are listed and deleted when a
burst shrinks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
import requests

from burst.decode import from_json
from burst.errors import NotFound, ProviderError, Transient
from burst_gke.failures import CloudFailure

# Timeout of one call, in seconds.
_TIMEOUT_S = 20.0
_Answer = TypeVar("_Answer")
_NOT_FOUND = 404


class Addresses(msgspec.Struct, frozen=True):
    """The URLs of the services."""

    projects: str = "https://cloudresourcemanager.googleapis.com/v1/projects"
    accounts: str = "https://iam.googleapis.com/v1/projects/-/serviceAccounts"
    compute: str = "https://compute.googleapis.com/compute/v1/projects"
    quotas: str = "https://cloudquotas.googleapis.com/v1/projects"


class Quota(msgspec.Struct, frozen=True):
    """A quota of a region or of the project, as Compute Engine reports it."""

    metric: str
    """Such as `N2_CPUS`."""
    limit: float
    usage: float | None = 0.0
    """None if it is not reported."""


class MachineType(msgspec.Struct, frozen=True, rename="camel"):
    """A machine type, as Compute Engine reports it."""

    guest_cpus: int


class ManagedVm(msgspec.Struct, frozen=True, rename="camel"):
    """A VM of an instance group, or one that the group is making."""

    instance: str
    """Its URL, which ends with its name. The node in Kubernetes has the same name."""
    current_action: str = "NONE"

    @property
    def name(self) -> str:
        """The VM's name."""
        return self.instance.rpartition("/")[2]

    @property
    def ending(self) -> bool:
        """Whether its group deletes it, and makes no other in its place."""
        return self.current_action in ("DELETING", "ABANDONING")


class _ManagedVms(msgspec.Struct, frozen=True, rename="camel"):
    # Missing from the answer if there are none.
    managed_instances: tuple[ManagedVm, ...] = ()
    next_page_token: str = ""


class _Begun(msgspec.Struct, frozen=True):
    """An operation that is not read: the caller looks for its effect."""


class _Granted(msgspec.Struct, frozen=True):
    # Missing from the answer if none is granted.
    permissions: frozenset[str] = frozenset()


class _WithQuotas(msgspec.Struct, frozen=True):
    quotas: tuple[Quota, ...] = ()


class _Value(msgspec.Struct, frozen=True):
    # A number as text; missing if it is 0.
    value: str = "0"


class _ByDimensions(msgspec.Struct, frozen=True):
    details: _Value = _Value()
    dimensions: dict[str, str] = {}


class _QuotaInfo(msgspec.Struct, frozen=True, rename="camel"):
    dimensions_infos: tuple[_ByDimensions, ...] = ()


class GoogleApis:
    """Calls about one project. All methods raise NotFound, Refused and Transient."""

    def __init__(
        self, project: str, token: Callable[[], str], addresses: Addresses | None = None
    ) -> None:
        self._project, self._token = project, token
        self._at = addresses or Addresses()

    def granted(self, permissions: Sequence[str]) -> frozenset[str]:
        """Return which of at most 100 permissions this account has in the project."""
        url = f"{self._at.projects}/{self._project}:testIamPermissions"
        body = {"permissions": list(permissions)}
        return self._ask(url, _Granted, body).permissions

    def may_act_as(self, account: str) -> bool:
        """Tell whether this account may make VMs that run as a service account."""
        permission = "iam.serviceAccounts.actAs"
        url = f"{self._at.accounts}/{account}:testIamPermissions"
        found = self._ask(url, _Granted, {"permissions": [permission]})
        return permission in found.permissions

    def quotas(self, region: str) -> dict[str, Quota]:
        """Return the quotas of a region, by metric."""
        return self._quotas(f"{self._at.compute}/{self._project}/regions/{region}")

    def project_quotas(self) -> dict[str, Quota]:
        """Return the quotas of the project over all regions, by metric."""
        return self._quotas(f"{self._at.compute}/{self._project}")

    def _quotas(self, url: str) -> dict[str, Quota]:
        return {quota.metric: quota for quota in self._ask(url, _WithQuotas).quotas}

    def family_quota(self, region: str, family: str) -> Quota | None:
        """Return the quota of vCPUs of a family of machines, such as `C4`, in a region.

        For newer families, which the region's own quotas do not have. None if none is
        reported. Source: the Cloud Quotas API, QuotaInfo.
        """
        name = "CPUS-PER-VM-FAMILY-per-project-region"
        at = "locations/global/services/compute.googleapis.com/quotaInfos"
        url = f"{self._at.quotas}/{self._project}/{at}/{name}"
        for found in self._ask(url, _QuotaInfo).dimensions_infos:
            if found.dimensions == {"region": region, "vm_family": family}:
                limit = float(found.details.value)
                return Quota(f"CPUS_PER_VM_FAMILY of {family}", limit, None)
        return None

    def machine_type(self, zone: str, name: str) -> MachineType:
        """Return a machine type in a zone. Raises NotFound."""
        url = f"{self._at.compute}/{self._project}/zones/{zone}/machineTypes/{name}"
        return self._ask(url, MachineType)

    def vms(self, group: str) -> list[ManagedVm]:
        """Return the VMs of an instance group, one of `GkeResource.groups`."""
        url = f"{self._at.compute}/{group}/listManagedInstances"
        page = self._ask(url, _ManagedVms, {})
        found = list(page.managed_instances)
        while page.next_page_token:
            token = quote(page.next_page_token, safe="")
            page = self._ask(f"{url}?pageToken={token}", _ManagedVms, {})
            found += page.managed_instances
        return found

    def delete_vms(self, group: str, vms: Sequence[ManagedVm]) -> None:
        """Begin to delete these VMs of a group, and make its size smaller by them.

        VMs that are being deleted, or are no longer in the group, are skipped.
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
            return from_json(found.content, answer)
        except msgspec.MsgspecError as error:
            raise Transient(f"{url} gave an unexpected answer: {error}") from error


class _Detail(msgspec.Struct, frozen=True):
    # Fields of google.rpc.ErrorInfo; other details have neither.
    reason: str = ""
    metadata: dict[str, str] = {}


class _Failed(msgspec.Struct, frozen=True):
    message: str
    status: str = ""
    errors: tuple[_Detail, ...] = ()
    """Details in the form of older APIs."""
    details: tuple[_Detail, ...] = ()


class _Failure(msgspec.Struct, frozen=True):
    error: _Failed


# The google.rpc codes of answers that do not tell theirs, by HTTP status.
_CODES = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED"}


def _error(found: requests.Response) -> ProviderError:
    try:
        failed = from_json(found.content, _Failure).error
    except msgspec.MsgspecError:
        failed = _Failed(f"status {found.status_code}")
    if found.status_code == _NOT_FOUND:
        return NotFound(failed.message)
    details = (*failed.details, *failed.errors)
    fault = CloudFailure(
        code=failed.status or _CODES.get(found.status_code, "UNKNOWN"),
        message=failed.message,
        # "forbidden" says no more than the code does.
        reasons=tuple(d.reason for d in details if d.reason not in ("", "forbidden")),
        metadata={key: d.metadata[key] for d in details for key in d.metadata},
    )
    return fault.as_error(fault.words)
