# SPDX-License-Identifier: MIT
"""The `vm` provider type: what is known before a provider is made."""

from __future__ import annotations

from burst.provider_type import ProviderType, TableRequest

_TABLE = """\
[providers.vm]
# Each follower is a virtual machine of a cloud. `burst doctor` says what is missing.
type = "vm"
# Fill in. Of "ec2", "openstack", "gce" and "azure_arm", which needs more (docs/vm.md);
# a file that only the daemon's user may read, with lines such as key = "..."; an image
# with Flux of the lead's version, cloud-init and systemd.
# driver = "ec2"
# credentials = "/etc/flux/burst/cloud.toml"
# image = "ami-0123456789abcdef0"
# By default the driver's region, and the account's own network.
# region = "eu-central-1"
# subnet = "subnet-0123456789abcdef0"
# security_groups = ["sg-0123456789abcdef0"]
# VMs fetch the certificate from this host at this port.
port = 8060
# After this time VMs power off, with or without a daemon: longer than your longest job.
lifetime = "24h"
"""
_OFFER = """
[providers.vm.offers.{name}]
# Fill in. It has at least this many cores; most sizes have two vCPUs to a core.
# size = "c7i.4xlarge"
cores = {cores}
gpus = {gpus}
# The most VMs of one burst.
max_nodes = {nodes}
# Per VM and hour; by default Libcloud's.
# price = 0.75
"""


class VmType(ProviderType):
    """Virtual machines of a cloud."""

    def table_template(self, wanted: TableRequest) -> str:
        """Return the table, with comments for what only the site knows."""
        offers = (
            _OFFER.format(
                name=each.name,
                cores=each.shape.cores,
                gpus=each.shape.gpus,
                nodes=each.nodes,
            )
            for each in wanted.each
        )
        return "".join((_TABLE, *offers))


TYPE = VmType()
