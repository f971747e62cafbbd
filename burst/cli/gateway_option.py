# SPDX-License-Identifier: MIT
"""The option `--gateways [ADDRESS...]` of commands that declare rank slots."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

_NAME = "--gateways"
# It matches no directory, which may be the next argument.
_WITH_PORT = re.compile(r"(tcp://.+|[^/:]+:[0-9]+|\[[^]/]+\](:[0-9]+)?)")


class GatewayCommand(click.Command):
    """A command whose option takes all addresses that follow it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Join the addresses into one value, as click's options have."""
        return super().parse_args(ctx, list(_joined(args)))


def gateway_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option; the command gets `gateways`: addresses, None if not given."""
    return click.option(
        _NAME,
        metavar="[ADDRESS[:PORT]...]",
        callback=_split,
        help="Let the hosts of each slot join through its first host. The addresses of"
        " these first hosts, one for each slot in order, are tcp://NAME:PORT, NAME:PORT"
        " or an IP address. Default: the name of the first host.",
    )(function)


def _split(
    _ctx: click.Context, _option: click.Parameter, value: str | None
) -> tuple[str, ...] | None:
    return None if value is None else tuple(filter(None, value.split(",")))


def _joined(args: Sequence[str]) -> Iterator[str]:
    rest = list(args)
    while rest:
        word = rest.pop(0)
        if word == "--":
            yield from (word, *rest)
            return
        if word != _NAME:
            yield word
            continue
        found = []
        while rest and all(map(_is_address, rest[0].split(","))):
            found.append(rest.pop(0))
        yield f"{_NAME}={','.join(found)}"


def _is_address(word: str) -> bool:
    try:
        ipaddress.ip_address(word)
    except ValueError:
        return _WITH_PORT.fullmatch(word) is not None
    return True
