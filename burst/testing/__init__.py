# SPDX-License-Identifier: MIT
"""The provider contract and a fake provider, for tests in any package. Needs pytest.

    from burst.testing import ProviderContract, example_spec

    class TestMyProvider(ProviderContract):
        ...                     # four fixtures, which its docstring describes

`FakeProvider` is a provider without a cloud, for tests of code that uses providers. Its
attributes produce each kind of failure that a real provider can have.
"""

from __future__ import annotations

import pytest

# Before the modules are imported, so that their failing asserts show what they compare.
pytest.register_assert_rewrite(
    *(
        f"burst.testing.contract{part}"
        for part in ("", "_failures", "_resize", "_threads", "_traces")
    ),
    "burst.testing.trial",
)

from burst.testing.backend import Backend  # noqa: E402
from burst.testing.cloud import FakeCloud, FakeSettings, ProviderCall  # noqa: E402
from burst.testing.contract import ProviderContract  # noqa: E402
from burst.testing.examples import example_lead, example_spec, isolate  # noqa: E402
from burst.testing.fake import FakeProvider  # noqa: E402
from burst.testing.trial import Trial  # noqa: E402
from burst.testing.wrapped import WrappedProvider  # noqa: E402

__all__ = [
    "Backend",
    "FakeCloud",
    "FakeProvider",
    "FakeSettings",
    "ProviderCall",
    "ProviderContract",
    "Trial",
    "WrappedProvider",
    "example_lead",
    "example_spec",
    "isolate",
]
