# SPDX-License-Identifier: MIT
"""Checks of tags, and messages on what may undo a change made to a burst by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click


def check_tag(_: click.Context, __: click.Parameter, tag: str) -> str:
    """Return a tag that a person may give to a burst. Raises BadParameter."""
    if not (tag.isascii() and tag.isprintable() and not set(tag) & set(" /")):
        raise click.BadParameter(
            f"{tag!r} may have letters, digits and signs other than /, which is for the"
            " tags of programs, such as ENSEMBLE/MEMBER"
        )
    return tag


def tell_of_tag(answer: Mapping[str, Any]) -> None:
    """Print who may undo what was done to a burst by hand."""
    if tag := answer.get("tag"):
        click.echo(
            f"it has tag {tag}: what requested it, such as an ensemble, may undo this",
            err=True,
        )


def tell_of_renewal(answer: Mapping[str, Any]) -> None:
    """Print that another burst replaces one that was taken down by hand, if so."""
    if again := answer.get("again"):
        click.echo(again, err=True)
