# SPDX-License-Identifier: MIT
"""Which objects of a kind are listed or watched, and in which form they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec

from burst.decode import from_json
from burst.errors import Transient
from burst.kits.kube.kinds import Kind

METADATA = "application/json;as={};g=meta.k8s.io;v=v1"
"""The Accept header with which metadata alone is sent."""
_T = TypeVar("_T")


class Selection(msgspec.Struct, frozen=True):
    """Objects of a kind in a namespace with these labels.

    A label with the value "" is one that they have, whatever its value.
    """

    kind: Kind
    namespace: str
    labels: Mapping[str, str]
    metadata_only: bool = False
    """Whether the API server does not send their content, such as that of a Secret."""

    def query(self) -> dict[str, str]:
        """Return the label selector, as a query has it."""
        words = (f"{k}={v}" if v else k for k, v in self.labels.items())
        chosen = ",".join(words)
        return {"labelSelector": chosen} if chosen else {}

    def headers(self, metadata: str) -> dict[str, str]:
        """Return the headers; `metadata` is the kind that is sent without content."""
        return {"Accept": METADATA.format(metadata)} if self.metadata_only else {}


class _ListMeta(msgspec.Struct):
    version: str = msgspec.field(default="", name="resourceVersion")
    more: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, Generic[_T]):
    """One page of a list."""

    items: list[_T] | None = None
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


def decode(text: bytes, form: type[_T]) -> _T:
    """Return what the API server sent in this form. Raises Transient."""
    try:
        return from_json(text, form)
    except msgspec.MsgspecError as error:
        raise Transient(
            f"the API server's answer is not a JSON object as expected: {error}"
        ) from error
