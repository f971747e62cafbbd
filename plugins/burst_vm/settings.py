# SPDX-License-Identifier: MIT
"""The keys of `[providers.NAME]` with `type = "vm"`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec

from burst.config import Price, Seconds

DRIVERS = ("ec2", "openstack", "gce", "azure_arm")
"""Of Libcloud's compute drivers those whose user data and tags are known here."""
_AtLeast1 = Annotated[int, msgspec.Meta(ge=1)]
_AtLeast0 = Annotated[int, msgspec.Meta(ge=0)]
_Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class VmOffer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[providers.NAME.offers.OFFER]`: VMs of one size."""

    size: str
    """The cloud's name of it: an instance type, machine type or flavor."""
    cores: _AtLeast1
    """Of each VM. At least as many as in the lead's R. Most clouds count two vCPUs to a
    core."""
    max_nodes: _AtLeast1
    """Of one burst."""
    gpus: _AtLeast0 = 0
    """Of each VM."""
    total: _AtLeast0 = 0
    """How many VMs all bursts of it may have together, such as by a quota; 0 if that
    is not known."""
    price: Price | None = None
    """Per VM and hour. By default Libcloud's price of the size on demand, in US
    dollars, 0 if it has none."""
    spot: bool = False
    """Whether the cloud may take the VMs back at any time. For `ec2`, `gce` and
    `azure_arm`, of which a spot or preemptible VM is asked for."""
    join_time: Seconds = Seconds(120)
    """From the request until followers join, as far as is known."""


class VmSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`[providers.NAME]` with `type = "vm"`."""

    driver: str
    """The cloud, by Libcloud's name: `"ec2"`, `"openstack"`, `"gce"` or
    `"azure_arm"`."""
    credentials: str
    """A TOML file that only the daemon's user may read. Its keys are arguments of
    Libcloud's driver, such as `key`, `secret` and `token` for `ec2`. It is read again
    when it was changed."""
    image: str
    """The VMs' image, by its id: with Flux of the lead's MAJOR.MINOR, cloud-init and
    systemd ([vm.md](vm.md)). For `azure_arm` PUBLISHER:OFFER:SKU:VERSION, too."""
    offers: Annotated[Mapping[str, VmOffer], msgspec.Meta(min_length=1)]
    """VMs by size."""
    region: str = ""
    """Region, or the zone for `gce`; the driver's default if empty. `azure_arm` has no
    default: set it."""
    endpoint: str = ""
    """URL of the cloud's API, where it is not the driver's own. In `driver_options` set
    instead `ex_force_auth_url` for `openstack`, `cloud_environment` for `azure_arm`."""
    driver_options: Mapping[str, Any] = {}
    """More arguments of the driver that are no secrets, such as `project` for `gce`,
    `ex_tenant_name` and `ex_force_auth_version` for `openstack`, and
    `subscription_id`, `tenant_id` and `resource_group` for `azure_arm`."""
    subnet: str = ""
    """Id of the subnet (`ec2`), of the network (`openstack`), name of the subnetwork
    (`gce`), or NETWORK/SUBNET of the resource group or an id (`azure_arm`)."""
    security_groups: tuple[str, ...] = ()
    """Ids (`ec2`, with `subnet`), names (`openstack`), network tags (`gce`), or a name
    or id (`azure_arm`, one at most). They must let VMs reach the lead's port and
    `port`, and each other where jobs need it."""
    options: Mapping[str, Any] = {}
    """More arguments of Libcloud's `create_node`, such as `ex_keyname`. For `azure_arm`
    `ex_user_name`, `ex_ssh_key`, `ex_disk_size` in GiB and
    `ex_storage_account_type`."""
    address: str = ""
    """At which VMs reach the daemon's host; by default that of the lead's endpoint."""
    bind: str = "0.0.0.0"  # noqa: S104  VMs come from other hosts
    """The address of the daemon's host at which it listens for VMs."""
    port: _Port = 8060
    """Where a VM fetches its certificate once. It is open while one has to."""
    fetch_time: Seconds = Seconds(900)
    """How long a VM may take from its request until it fetches its certificate."""
    user_data: str = ""
    """A file with the template of the user data, in place of that of the package."""
    user: str = "flux"
    """Who runs the followers in the VMs: the image has this user."""
    flux: str = "flux"
    """The program in the image, by path, or by a name on systemd's PATH."""
    munge_key: str = ""
    """A file with munge's key that the VMs are to have, for a lead of many users.
    Without it no jobs of others than the lead's owner run on them."""
    dir: str = ""
    """Where the daemon notes what it has asked for; `/tmp/burst-UID` by default. Change
    it only while no burst lives."""
    lifetime: Seconds = Seconds(math.inf)
    """How long a burst may live at most."""

    def reached_at(self, endpoint: str) -> str:
        """Return where VMs reach the daemon's host; `endpoint` is that of the lead."""
        return self.address or urlsplit(endpoint).hostname or ""

    def __post_init__(self) -> None:
        """Check what the types cannot express. Raises ValueError."""
        if self.driver not in DRIVERS:
            raise ValueError(f"driver: is one of {', '.join(DRIVERS)}")
        for key in ("credentials", "user_data", "munge_key", "dir"):
            value = getattr(self, key)
            if value and not value.startswith("/"):
                raise ValueError(f"{key}: {value!r} is no absolute path")
        where = urlsplit(self.endpoint)
        if self.endpoint and (where.scheme not in ("http", "https") or where.path):
            raise ValueError(
                f"endpoint: {self.endpoint!r} is not http(s)://HOST[:PORT]"
            )
        if self.driver == "azure_arm" and self.endpoint:
            raise ValueError("endpoint: set cloud_environment in driver_options")
        if self.driver == "azure_arm" and len(self.security_groups) > 1:
            raise ValueError("security_groups: azure_arm has one at most")
        if not self.fetch_time > 0:
            raise ValueError("fetch_time: is not above 0")
