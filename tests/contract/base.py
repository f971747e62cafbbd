# SPDX-License-Identifier: MIT
"""Fixtures that all parts of the lead's contract share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from burst.lead import Lead
from tests.contract.instance import Instance
from tests.contract.watching import Watch


class WithInstance:
    """An instance, a client of it, and a client that listens."""

    @pytest.fixture
    def instance(self) -> Iterator[Instance]:
        raise NotImplementedError("a subclass provides the instance")

    @pytest.fixture
    def lead(self, instance: Instance) -> Iterator[Lead]:
        lead = instance.lead()
        yield lead
        lead.close()

    @pytest.fixture
    def watch(self, lead: Lead) -> Watch:
        return Watch(lead)
