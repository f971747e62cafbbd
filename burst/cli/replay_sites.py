# SPDX-License-Identifier: MIT
"""The files of `burst replay --policy`, and how nodes are bought by each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
import msgspec

from burst.cli.listing import money
from burst.config import Settings, load
from burst.config.policy import as_tuple
from burst.core.worth.budget import budget_warnings
from burst.core.worth.rule_warnings import find_rule_warnings, named_users
from burst.core.worth.rules import RuleSet
from burst.errors import BurstError, ConfigError
from burst.model.fsd import format_fsd
from burst.model.scheduler import Order
from burst.provider import Offer
from burst.replay.policies import AT_ONCE, NEVER, FilePolicy, Policy, worth_policy
from burst.replay.replay_bursts import Site
from burst.replay.sold_nodes import DEFAULT_PRICE, SoldNodes, sold_nodes
from burst.replay.trace import Machine, Trace
from burst.runtime.engine_config import find_userids
from burst.runtime.provider_registry import load_providers

BOOT_S = 300.0


class SiteOptions(msgspec.Struct, frozen=True):
    """What the command line says of bought nodes, in seconds; None: as the file."""

    boot: float | None
    teardown: float
    idle: float | None
    price: float | None
    order: Order


class PolicyFile(msgspec.Struct, frozen=True):
    """A settings file, what its providers sell, and how bursts behave by it."""

    settings: Settings
    sold: SoldNodes
    site: Site


class PolicyFiles:
    """All files, and which policies are tried. A file of rules alone has the nodes of
    the first that names providers, and so have policies without a file.
    """

    def __init__(
        self, files: Sequence[Path], options: SiteOptions, machine: Machine
    ) -> None:
        """Read them. Raises ConfigError."""
        self._options = options
        self._machine = machine
        read = {path: load(path) for path in files}
        price = DEFAULT_PRICE if options.price is None else options.price
        usual = PolicyFile(Settings(), SoldNodes(price), self._site(None, ()))
        found = {
            path: self._with_providers(path, settings)
            for path, settings in read.items()
            if settings.providers
        }
        self.usual = next(iter(found.values()), usual)
        self._files = {
            path: found.get(path) or msgspec.structs.replace(self.usual, settings=its)
            for path, its in read.items()
        }

    def policies(
        self, trace: Trace, worths: Sequence[float]
    ) -> Iterator[tuple[Policy, PolicyFile]]:
        """Yield each policy, each name once, with the nodes that it has."""
        fixed = (NEVER, AT_ONCE, *map(worth_policy, dict.fromkeys(worths)))
        yield from ((policy, self.usual) for policy in fixed)
        for path, file in self._files.items():
            rules = RuleSet(file.settings.rules, userids_of(file.settings, trace))
            started = trace.started
            policy = FilePolicy(str(path), rules, file.sold, started, self._machine)
            yield policy, file

    def warnings(self, trace: Trace) -> Iterator[str]:
        """Yield what rules and budgets of the files may not be meant to say."""
        for path, file in self._files.items():
            settings = file.settings
            # Of a lead's intake nothing is asked: all jobs may burst in a replay.
            intake = msgspec.structs.replace(settings.intake, any_job=True, mode="hold")
            alone = msgspec.structs.replace(settings, intake=intake)
            userids = userids_of(settings, trace) if trace.numbers_of_host else None
            found = find_rule_warnings(alone, userids)
            for text in (*found, *_budget_warnings(settings, userids, trace)):
                yield f"{path}: {text}"

    def _with_providers(self, path: Path, settings: Settings) -> PolicyFile:
        options = self._options
        sold = sold_nodes(
            settings, _offers(path, settings), options.price, options.boot
        )
        site = self._site(settings, [each.offer for each in sold.offers])
        if math.isinf(site.idle):
            raise ConfigError(
                f"{path}: deadlines.idle: inf: no burst would end", "give --idle"
            )
        of = f" ({sold.offers[0].key})" if sold.offers else ""
        click.echo(
            f"{path}: a node and hour costs {money(sold.price)}{of}, nodes are online"
            f" in {format_fsd(site.boot)}, idle bursts stay {format_fsd(site.idle)}",
            err=True,
        )
        return PolicyFile(settings, sold, site)

    def _site(self, settings: Settings | None, offers: Sequence[Offer]) -> Site:
        """Return the site by the options, else by the settings of a file, if any."""
        options = self._options
        boot = options.boot
        if boot is None:
            boot = offers[0].join_time if offers else 0.0
            boot = boot or BOOT_S
        idle, known = options.idle, settings or Settings()
        if idle is None:
            idle = 0.0 if settings is None else known.deadlines.idle
        return Site(
            machine=self._machine,
            order=options.order,
            boot=boot,
            teardown=options.teardown,
            idle=float(idle),
            share_users=known.plan.share_users,
            share=known.plan.share,
        )


def _budget_warnings(
    settings: Settings, userids: Mapping[str, int] | None, trace: Trace
) -> Iterator[str]:
    """Yield them; `userids` is None where users are not numbers of this host."""
    if userids is None:
        named = [name for each in settings.budget for name in as_tuple(each.match.user)]
        unknown = [
            str(name)
            for name in named
            if not str(name).isdecimal() and name not in trace.users
        ]
        why = (
            "has no job of that name"
            if trace.users
            else "has numbers of its own for users"
        )
        if unknown:
            yield f"no budget counts for user {', '.join(unknown)}: the trace {why}"
        userids = {**trace.users, **dict.fromkeys(unknown, 0)}
    yield from budget_warnings(settings.budget, userids, trace.started)


def _offers(path: Path, settings: Settings) -> Mapping[str, Sequence[Offer]]:
    """Return what the plug-ins of a file offer; nothing is made, and no cloud asked."""
    try:
        providers = load_providers(settings, "replay")
        return {name: provider.offers() for name, provider in providers.items()}
    except BurstError as error:
        click.echo(f"{path}: its offers are not known: {error}", err=True)
        return {}


def userids_of(settings: Settings, trace: Trace) -> Mapping[str, int]:
    """Return the numbers of users that rules name, as far as the trace knows them."""
    if trace.numbers_of_host:
        return find_userids(named_users(settings))
    return trace.users
