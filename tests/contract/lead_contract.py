# SPDX-License-Identifier: MIT
"""The contract of a lead: everything the engine relies on, whatever it runs on.

A subclass overrides the fixture `instance` (see `tests.contract.instance`). One that
ends and comes back adds LastingContract, one that has guests adds GuestContract.
"""

from __future__ import annotations

from tests.contract.identity import IdentityContract
from tests.contract.jobs import JobsContract
from tests.contract.loss import LossContract
from tests.contract.orders import OrdersContract
from tests.contract.rank_side import RanksContract
from tests.contract.serving import GuestContract, ServiceContract
from tests.contract.storing import LastingStore, StoreContract
from tests.contract.submitting import SubmitContract
from tests.contract.whole_queue import WholeQueueContract

__all__ = ["GuestContract", "LastingContract", "LeadContract"]


class LeadContract(
    IdentityContract,
    JobsContract,
    WholeQueueContract,
    OrdersContract,
    RanksContract,
    StoreContract,
    ServiceContract,
    SubmitContract,
):
    """What every lead must do."""


class LastingContract(LastingStore, LossContract):
    """What a lead must do whose instance is a LastingInstance."""
