# SPDX-License-Identifier: MIT
"""The keys of `[providers.NAME]` with `type = "vm"`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

import msgspec

from burst.config import Price, Seconds

DRIVERS = ("ec2", "openstack", "gce", "azure_arm")
"""Libcloud's compute drivers whose user data and tags this provider can set."""
PROJECT_OPTIONS = (
    "ex_force_auth_url",
    "ex_tenant_name",
    "project",
    "subscription_id",
    "resource_group",
)
"""The `driver_options` that select the account or project: with other values, VMs that
were made before are not seen."""
TAG_OPTIONS = {
    "ec2": "ex_metadata",
    "openstack": "ex_metadata",
    "gce": "ex_labels",
    "azure_arm": "ex_tags",
}
"""The argument of each driver's `create_node` that has the VM's tags."""
_SPOT = "spot of the offer"
_NOT_OPTIONS = {
    "ec2": {
        "ex_userdata": "user_data",
        "ex_mincount": "",
        "ex_maxcount": "",
        "ex_terminate_on_shutdown": "",
        "ex_spot": _SPOT,
        "ex_subnet": "subnet",
        "ex_security_group_ids": "security_groups",
    },
    "openstack": {
        "ex_userdata": "user_data",
        "networks": "subnet",
        "ex_security_groups": "security_groups",
    },
    "gce": {
        # If `region` is another zone, VMs are not listed.
        "location": "region",
        "ex_preemptible": _SPOT,
        "ex_tags": "security_groups",
        "ex_subnetwork": "subnet",
    },
    "azure_arm": {
        "ex_customdata": "user_data",
        "ex_spot": _SPOT,
        "ex_subnet": "subnet",
        "ex_security_group": "security_groups",
    },
}
"""Arguments of `create_node` that follow from other keys, next to name, size and
image, and the key to set instead: with other values, VMs would be made that are not
seen, or not deleted, or are not what these keys say."""
_AtLeast1 = Annotated[int, msgspec.Meta(ge=1)]
_AtLeast0 = Annotated[int, msgspec.Meta(ge=0)]
_Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class VmOffer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[providers.NAME.offers.OFFER]`: VMs of one size."""

    size: str
    """The cloud's name of the size: an instance type, machine type or flavor."""
    cores: _AtLeast1
    """Cores of each VM, at least as many as in the lead's R. In most clouds a core is
    two vCPUs."""
    max_nodes: _AtLeast1
    """Maximum number of VMs in one burst."""
    gpus: _AtLeast0 = 0
    """GPUs of each VM."""
    total: _AtLeast0 = 0
    """Maximum number of VMs in all bursts of the offer together, such as a quota; 0 if
    that is not known."""
    price: Price | None = None
    """Price per VM and hour. Default: Libcloud's on-demand price of the size, in US
    dollars, or 0 if it has none."""
    spot: bool = False
    """Whether the cloud may take the VMs back at any time. Only for `ec2`, `gce` and
    `azure_arm`: the provider then requests spot or preemptible VMs from them."""
    join_time: Seconds = Seconds(120)
    """Expected time from the request until followers join."""


class VmSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`[providers.NAME]` with `type = "vm"`."""

    driver: str
    """The cloud, by Libcloud's name: `"ec2"`, `"openstack"`, `"gce"` or
    `"azure_arm"`."""
    credentials: str
    """Path of a TOML file that only the daemon's user may read. Its keys are arguments
    of Libcloud's driver, such as `key`, `secret` and `token` for `ec2`. A change of it
    needs no restart."""
    image: str
    """Id of the VMs' image, which has Flux of the lead's MAJOR.MINOR, cloud-init and
    systemd ([vm.md](vm.md)). For `azure_arm` PUBLISHER:OFFER:SKU:VERSION, too."""
    offers: Annotated[Mapping[str, VmOffer], msgspec.Meta(min_length=1)]
    """VM size of each offer, by the offer's name; at least one."""
    region: str = ""
    """Region, or the zone for `gce`; the driver's default if empty. `azure_arm` and
    `gce` have no default: set it."""
    endpoint: str = ""
    """URL of the cloud's API, if it is not the driver's own; not for `gce`. In
    `driver_options` set instead `ex_force_auth_url` for `openstack`,
    `cloud_environment` for `azure_arm`."""
    driver_options: Mapping[str, Any] = {}
    """More arguments of the driver that are not secret, such as `project` for `gce`,
    `ex_tenant_name` and `ex_force_auth_url` (without `/v3`) for `openstack`, and
    `subscription_id`, `tenant_id` and `resource_group` for `azure_arm`."""
    subnet: str = ""
    """Id of the subnet (`ec2`), id of the network (`openstack`), name of the subnetwork
    (`gce`), or NETWORK/SUBNET of the resource group or an id (`azure_arm`)."""
    security_groups: tuple[str, ...] = ()
    """Ids (`ec2`, with `subnet`), names (`openstack`), network tags (`gce`), or a name
    or id (`azure_arm`, one at most). They must let VMs reach the lead's port and
    `port`, and each other where jobs need it."""
    options: Mapping[str, Any] = {}
    """More arguments of Libcloud's `create_node`, such as `ex_keyname`, but none that
    other keys of this table set. For `azure_arm` `ex_user_name`, `ex_ssh_key`,
    `ex_disk_size` in GiB and `ex_storage_account_type`. Tags of `ex_metadata` (`ec2`,
    `openstack`), `ex_labels` (`gce`) or `ex_tags` (`azure_arm`), and for `gce` the
    `items` of `ex_metadata`, are added to the provider's own."""
    address: str = ""
    """Address at which VMs reach the daemon's host; default: that of the lead's
    endpoint."""
    bind: str = "0.0.0.0"  # noqa: S104  VMs come from other hosts
    """Address of the daemon's host at which it listens for VMs."""
    port: _Port = 8060
    """Port at which each VM fetches its certificate, once: another for each table. It
    is open while bursts live."""
    user_data: str = ""
    """Path of a template for the user data, in place of the package's own."""
    user: str = "flux"
    """User that runs the followers in the VMs; the image must have this user."""
    flux: str = "flux"
    """The program in the image, by path, or by a name on systemd's PATH."""
    munge_key: str = ""
    """Path of a file with munge's key for the VMs, for a lead of many users. Without
    it the VMs run no jobs of users other than the lead's owner."""
    dir: str = ""
    """Directory of the daemon's notes of what it has requested; default:
    `/tmp/burst-UID`. Change it only while no burst lives."""
    lifetime: Seconds = Seconds(math.inf)
    """Longest lifetime of a burst."""

    retired: ClassVar[Mapping[str, str]] = {
        "fetch_time": "remove it: a VM has 15m to fetch its certificate"
    }

    def reached_at(self, endpoint: str) -> str:
        """Return the address of the daemon's host for VMs; `endpoint` is the lead's."""
        return self.address or urlsplit(endpoint).hostname or ""

    def __post_init__(self) -> None:
        """Check what the types cannot express. Raises ValueError."""
        if self.driver not in DRIVERS:
            raise ValueError(f"driver: must be one of {', '.join(DRIVERS)}")
        for key in ("credentials", "user_data", "munge_key", "dir"):
            value = getattr(self, key)
            if value and not value.startswith("/"):
                raise ValueError(f"{key}: {value!r} is not an absolute path")
        where = urlsplit(self.endpoint)
        if self.endpoint and (where.scheme not in ("http", "https") or where.path):
            raise ValueError(
                f"endpoint: {self.endpoint!r} is not http(s)://HOST[:PORT]"
            )
        if self.driver == "azure_arm" and self.endpoint:
            raise ValueError("endpoint: set cloud_environment in driver_options")
        if self.driver == "gce" and self.endpoint:
            # Libcloud gives the host to its connection as the kind of login.
            raise ValueError("endpoint: Libcloud's driver of gce can use its own alone")
        if self.driver == "gce" and not self.region:
            raise ValueError("region: set it to a zone; gce has no default")
        if self.driver == "ec2" and self.security_groups and not self.subnet:
            raise ValueError("security_groups: set subnet, too")
        if self.driver == "azure_arm" and len(self.security_groups) > 1:
            raise ValueError("security_groups: azure_arm accepts only one")
        self._check_options()

    def _check_options(self) -> None:
        always = {"name": "", "size": "size of the offer", "image": "image"}
        keys = {**always, **_NOT_OPTIONS[self.driver]}
        for name in sorted(keys.keys() & self.options.keys()):
            key = keys[name]
            why = f"set {key} instead" if key else "the provider itself sets this"
            raise ValueError(f"options: {name}: {why}")
        tags = TAG_OPTIONS[self.driver]
        if not _is_text_table(self.options.get(tags, {})):
            raise ValueError(f"options: {tags}: must be a table of text")
        if self.driver == "gce" and not _is_metadata(self.options.get("ex_metadata")):
            raise ValueError(
                'options: ex_metadata: must be { items = [{ key = "...", value ='
                ' "..." }] }'
            )


def _is_text_table(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(each, str) for each in value.values()
    )


def _is_metadata(value: Any) -> bool:
    """Tell whether the value is metadata of Compute Engine, or None."""
    if value is None:
        return True
    return (
        isinstance(value, Mapping)
        and value.keys() == {"items"}
        and isinstance(value["items"], list)
        and all(
            _is_text_table(each) and each.keys() == {"key", "value"}
            for each in value["items"]
        )
    )
