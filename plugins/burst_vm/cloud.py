# SPDX-License-Identifier: MIT
"""VMs by Apache Libcloud. Only this file, `azure` and `gce` import it.

Libcloud's drivers differ in how they take user data, tags, networks and spot; for each
driver there is a function. `burst_vm.failures` reads what Libcloud does not tell, such
as all of an error's code.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from libcloud.compute.providers import get_driver

from burst.errors import BurstError, NotFound, Refused, Transient
from burst_vm.azure import AzureDriver
from burst_vm.credentials import read_credentials
from burst_vm.failures import Throttled, error_of
from burst_vm.gce import GceDriver
from burst_vm.machines import OWNER, CloudVm, state_of
from burst_vm.settings import TAG_OPTIONS, VmOffer, VmSettings

_LIMIT_S = 30.0
"""Timeout of one request, in seconds."""


class VmQuota(NamedTuple):
    """How many of something the account may have in the region."""

    what: str
    """`instances` or `cores`, which are vCPUs."""
    used: int
    limit: int


class NewVm(NamedTuple):
    """What a VM is made of."""

    name: str
    offer: VmOffer
    tags: Mapping[str, str]
    user_data: str


def _ec2(settings: VmSettings, vm: NewVm) -> dict[str, Any]:
    found: dict[str, Any] = {
        **_by_ids(settings, vm),
        "ex_userdata": vm.user_data,
        "ex_metadata": _tags(settings, vm),
        # A VM that is powered off is deleted: it does that itself at its lease's end.
        "ex_terminate_on_shutdown": True,
        "ex_spot": vm.offer.spot,
    }
    if settings.subnet:
        found["ex_subnet"] = SimpleNamespace(id=settings.subnet)
    if settings.security_groups:
        found["ex_security_group_ids"] = list(settings.security_groups)
    return found


def _openstack(settings: VmSettings, vm: NewVm) -> dict[str, Any]:
    groups = [SimpleNamespace(name=name) for name in settings.security_groups]
    subnet = settings.subnet
    return {
        **_by_ids(settings, vm),
        "ex_userdata": vm.user_data,
        "ex_metadata": _tags(settings, vm),
        "networks": [SimpleNamespace(id=subnet)] if subnet else [],
        "ex_security_groups": groups,
    }


def _gce(settings: VmSettings, vm: NewVm) -> dict[str, Any]:
    metadata = {
        each["key"]: each["value"]
        for each in settings.options.get("ex_metadata", {"items": []})["items"]
    } | {"user-data": vm.user_data}
    items = [{"key": key, "value": value} for key, value in metadata.items()]
    found: dict[str, Any] = {
        "size": vm.offer.size,
        "image": settings.image,
        "ex_metadata": {"items": items},
        "ex_labels": _tags(settings, vm),
        "ex_preemptible": vm.offer.spot,
        "ex_tags": list(settings.security_groups),
        # By Libcloud's default, all jobs could act for the project's own account.
        "ex_service_accounts": settings.options.get("ex_service_accounts", []),
    }
    return found | ({"ex_subnetwork": settings.subnet} if settings.subnet else {})


def _azure(settings: VmSettings, vm: NewVm) -> dict[str, Any]:
    return {
        **_by_ids(settings, vm),
        "ex_subnet": settings.subnet,
        "ex_security_group": "".join(settings.security_groups),
        "ex_tags": _tags(settings, vm),
        "ex_customdata": vm.user_data,
        "ex_spot": vm.offer.spot,
    }


def _openstack_quotas(driver: Any) -> Iterator[VmQuota]:
    found = driver.connection.request("/limits").object["limits"]["absolute"]
    for what, word in (("instances", "Instances"), ("cores", "Cores")):
        limit = found.get(f"maxTotal{word}", -1)
        if limit >= 0:  # -1: there is none
            yield VmQuota(what, found.get(f"total{word}Used", 0), limit)


def _gce_quotas(driver: Any) -> Iterator[VmQuota]:
    words = {"INSTANCES": "instances", "CPUS": "cores"}
    for each in driver.region.quotas if driver.region else ():
        if what := words.get(each["metric"]):
            yield VmQuota(what, int(each["usage"]), int(each["limit"]))


def _azure_quotas(driver: Any) -> Iterator[VmQuota]:
    words = {"virtualMachines": "instances", "cores": "cores"}
    for each in driver.ex_usages():
        if what := words.get(each["name"]["value"]):
            yield VmQuota(what, int(each["currentValue"]), int(each["limit"]))


def _by_ids(settings: VmSettings, vm: NewVm) -> dict[str, Any]:
    return {
        "size": SimpleNamespace(id=vm.offer.size),
        "image": SimpleNamespace(id=settings.image),
    }


def _tags(settings: VmSettings, vm: NewVm) -> dict[str, str]:
    """Return the site's tags and ours, without which nobody finds the VM again."""
    return {**settings.options.get(TAG_OPTIONS[settings.driver], {}), **vm.tags}


class _Ways(NamedTuple):
    """How one driver does what Libcloud's drivers do differently."""

    new: Callable[[VmSettings, NewVm], dict[str, Any]]
    tags: str
    """The key of a node's `extra` that has its tags."""
    region: str = "region"
    """The driver's argument for the region."""
    driver: Mapping[str, Any] = {}
    """Further arguments of the driver; then those of its `list_nodes` and
    `destroy_node`."""
    lists: Mapping[str, Any] = {}
    destroys: Mapping[str, Any] = {}
    image: str = "get_image"
    """The method that returns an image."""
    quotas: Callable[[Any], Iterator[VmQuota]] = lambda _: iter(())
    """Yields the quotas that a driver tells. For EC2 Libcloud reads only
    `max-instances`, which is no longer a limit of AWS."""
    own: Callable[..., Any] | None = None
    """The driver's class, if it is not Libcloud's."""
    makes_in_steps: bool = False
    """Whether it asks again until a VM is made, so that there may be one although a
    request was throttled."""


_WAYS = {
    "ec2": _Ways(
        _ec2,
        "tags",
        # In some regions Libcloud's default is a version that AWS phases out.
        driver={"signature_version": "4"},
        lists={"ex_filters": {"tag-key": OWNER}},
    ),
    "openstack": _Ways(
        _openstack,
        "metadata",
        "ex_force_service_region",
        # Libcloud's default is one of 2011, which reads only the first page of VMs.
        driver={"api_version": "2.2"},
        quotas=_openstack_quotas,
    ),
    "gce": _Ways(
        _gce,
        "labels",
        "datacenter",
        destroys={"ex_sync": False},
        image="ex_get_image",
        quotas=_gce_quotas,
        own=GceDriver,
        makes_in_steps=True,
    ),
    "azure_arm": _Ways(
        _azure,
        "tags",
        lists={"ex_tag": OWNER},
        quotas=_azure_quotas,
        own=AzureDriver,
    ),
}


class VmCloud:
    """The VMs of one account that have our tags. Several threads may call it."""

    def __init__(
        self, settings: VmSettings, make: Callable[..., Any] | None = None
    ) -> None:
        """`make` is called with a driver's arguments, in place of Libcloud's class."""
        self._settings = settings
        self._ways = _WAYS[settings.driver]
        self._make = make or self._ways.own or get_driver(settings.driver)
        self._own = threading.local()
        """The driver of each thread: a driver of Libcloud is for one thread only."""

    def machines(self) -> Sequence[CloudVm]:
        """Return the VMs of all owners, also gone ones while they are listed."""
        with _errors("VMs cannot be listed"):
            nodes = self._driver().list_nodes(**self._ways.lists)
        return [found for node in nodes if (found := self._machine(node))]

    def create(self, vm: NewVm) -> str:
        """Request a VM; return its id. If it raises Transient, the VM may exist."""
        arguments = {**self._settings.options, **self._ways.new(self._settings, vm)}
        try:
            with _errors(f"VM {vm.name} cannot be made"):
                return str(self._driver().create_node(name=vm.name, **arguments).id)
        except Throttled as error:
            if self._ways.makes_in_steps:
                raise Transient(error.what, retry_after=error.retry_after) from error
            raise

    def destroy(self, machine: CloudVm) -> None:
        """Request that a VM is deleted. Raises NotFound if it is gone."""
        with _errors(f"VM {machine.id} cannot be deleted", may_be_gone=True):
            self._driver().destroy_node(machine.node, **self._ways.destroys)

    def prices(self) -> Mapping[str, float]:
        """Return Libcloud's prices of sizes, by name, as far as it has any."""
        with _errors("sizes cannot be listed"):
            sizes = self._driver().list_sizes()
        found: dict[str, float] = {}
        for size in sizes:
            price = float(size.price or 0.0)
            found |= {str(size.id): price, str(size.name): price}
        return found

    def quotas(self) -> Sequence[VmQuota]:
        """Return the quotas that Libcloud tells; empty if it tells none."""
        with _errors("quotas cannot be read"):
            return list(self._ways.quotas(self._driver()))

    def kept_volumes(self) -> Sequence[str]:
        """Return the volumes of the image that EC2 keeps when it deletes a VM.

        Raises an error unless the cloud has the image.
        """
        image = self._settings.image
        with _errors(f"image {image} cannot be read"):
            try:
                found = getattr(self._driver(), self._ways.image)(image)
            except IndexError:
                raise Refused(f"there is no image {image}", "set image") from None
        volumes = getattr(found, "extra", {}).get("block_device_mapping", ())
        kept = (v for v in volumes if v.get("ebs", {}).get("delete") == "false")
        return [str(volume["device_name"]) for volume in kept]

    def _machine(self, node: Any) -> CloudVm | None:
        tags = node.extra.get(self._ways.tags) or {}
        if OWNER not in tags:
            return None
        words = (node.extra.get(k) for k in ("status", "task_state", "vm_state"))
        own = str(next(filter(None, words), ""))
        word = str(getattr(node.state, "value", node.state))
        reason = node.extra.get("reason") or node.extra.get("fault") or ""
        if isinstance(reason, Mapping):
            reason = reason.get("message", "")
        return CloudVm(
            id=str(node.id),
            tags=dict(tags),
            state=state_of(own, word),
            word=own or word,
            reason=str(reason),
            spot=node.extra.get("instance_lifecycle") == "spot",
            node=node,
        )

    def _driver(self) -> Any:
        """Return this thread's driver, a new one if the credentials have changed."""
        secrets = read_credentials(self._settings.credentials)
        if getattr(self._own, "secrets", None) != secrets:
            with _errors("the driver cannot be made", secrets=secrets):
                self._own.driver = self._make(**self._arguments(), **secrets)
            self._own.secrets = secrets
        return self._own.driver

    def _arguments(self) -> dict[str, Any]:
        settings = self._settings
        found = {**self._ways.driver, "timeout": _LIMIT_S, **settings.driver_options}
        if settings.region:
            found[self._ways.region] = settings.region
        if settings.endpoint:
            where = urlsplit(settings.endpoint)
            secure = where.scheme == "https"
            found |= {"host": where.hostname, "secure": secure}
            found["port"] = where.port or (443 if secure else 80)
        return found


@contextlib.contextmanager
def _errors(
    what: str, *, may_be_gone: bool = False, secrets: Mapping[str, Any] | None = None
) -> Iterator[None]:
    """Raise errors of `burst.errors` in place of those of Libcloud and the network.

    No text of Libcloud's own that has a part of `secrets` is told.
    """
    try:
        yield
    except (BurstError, NotImplementedError):
        raise
    except Exception as error:
        found = error_of(error, what, secrets or {})
        if isinstance(found, NotFound) and not may_be_gone:
            found = Refused(found.what, "compare this table with what the cloud has")
        if secrets:
            raise found from None  # a traceback would have the text of the error
        raise found from error
