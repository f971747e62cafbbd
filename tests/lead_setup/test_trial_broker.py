# SPDX-License-Identifier: MIT
"""A broker that is tried as another user; test_adopted.py tries real ones."""

from __future__ import annotations

import pytest

from burst.errors import ConfigError
from burst.lead_setup.trial_broker import try_broker


def test_root_starts_no_broker_as_a_user_without_a_name() -> None:
    tables = {"bootstrap": {"hosts": [{"host": "lead-0"}]}, "resource": {}}
    with pytest.raises(ConfigError, match="no user of this host is called 54321"):
        try_broker(tables, "flux", "54321")
