# SPDX-License-Identifier: MIT
"""What fits where, as the planner has it, against Flux's own Rv1Pool."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from burst.core.constraint import Constraints
from burst.core.demand import Pool, nodes_needed
from burst.model.lead import Bootstrap, LeadIdentity
from burst.model.ranks import format_hostlist, format_idset
from burst.model.request import parse_request
from burst.model.shape import Shape
from tests.conftest import COUNTS
from tests.embedded import rv1pool_script
from tests.flux_instance import FLUX, MISSING

pytestmark = [pytest.mark.flux, pytest.mark.skipif(not FLUX, reason=MISSING)]
