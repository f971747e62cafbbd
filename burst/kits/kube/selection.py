# SPDX-License-Identifier: MIT
"""Selects the objects of a kind to list or watch, and decodes what is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec

from burst.decode import from_json
from burst.errors import Transient
from burst.kits.kube.kinds import Kind

METADATA = "application/json;as={};g=meta.k8s.io;v=v1"
"""The Accept header that requests metadata only."""
_T = TypeVar("_T")


class Selection(msgspec.Struct, frozen=True):
    """The objects of a kind in a namespace that have these labels.

    A label whose value here is "" must be there, with any value.
    """

    kind: Kind
    namespace: str
    labels: Mapping[str, str]
    metadata_only: bool = False
    """Whether the API server sends metadata only, so for instance no Secret's
    content."""

    def query(self) -> dict[str, str]:
        """Return the label selector as query parameters."""
        words = (f"{k}={v}" if v else k for k, v in self.labels.items())
        chosen = ",".join(words)
        return {"labelSelector": chosen} if chosen else {}

    def headers(self, metadata: str) -> dict[str, str]:
        """Return the request's headers; `metadata` is the kind to ask for instead."""
        return {"Accept": METADATA.format(metadata)} if self.metadata_only else {}


class _ListMeta(msgspec.Struct):
    version: str = msgspec.field(default="", name="resourceVersion")
    more: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, Generic[_T]):
    """One page of a list."""

    items: list[_T] | None = None
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


def decode(text: bytes, form: type[_T]) -> _T:
    """Decode an answer of the API server as this type. Raises Transient."""
    try:
        return from_json(text, form)
    except msgspec.MsgspecError as error:
        raise Transient(
            f"the API server's answer is not a JSON object as expected: {error}"
        ) from error
