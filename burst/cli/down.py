# SPDX-License-Identifier: MIT
"""`burst down`: takes bursts down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import click

from burst.cli.progress import show_wait
from burst.cli.tags import check_tag, tell_of_renewal, tell_of_tag
from burst.cli.target import Target, target_options
from burst.cli.typed_names import complete_burst, find_burst
from burst.cli.wait_for_burst import Row, bursts_of, wait_for_burst
from burst.errors import BurstError, LeadError

_Failed = dict[str, BurstError]


@click.command()
@click.argument("typed", metavar="[BURST...]", nargs=-1, shell_complete=complete_burst)
@click.option(
    "--tag",
    default="",
    callback=check_tag,
    help="In place of BURST: take down all bursts with this tag, and end the waiting"
    " jobs with it.",
)
@click.option("--note", default="", help="Reason, kept in the record.")
@click.option(
    "--provider",
    default="",
    help="Provider that made the burst, if its record cannot be read.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Do not wait for hosts that do not answer, such as a dead Kubernetes node or a"
    " batch system that is gone: the provider, if it can, treats their followers as"
    " ended. Also end Flux's housekeeping on the burst's nodes. Use it only if nothing"
    " runs there: a follower that still runs would disturb the next one of its rank.",
)
@click.option("--no-wait", is_flag=True, help="Return without waiting for the end.")
@target_options
def down(
    typed: Sequence[str],
    tag: str,
    target: Target,
    *,
    no_wait: bool,
    **asked: str | bool,
) -> None:
    """Take each BURST down, once the jobs that run on it have ended.

    A BURST is an id, a prefix of one, or `last`: the burst made last.
    A burst whose record cannot be read can be taken down, too. --force also waits for
    jobs that run.

    If a standing minimum of the settings needs the burst, another one is made in its
    place.
    """
    if bool(typed) == bool(tag):
        raise click.UsageError("name bursts, or a tag by --tag")
    if tag and (asked["provider"] or asked["force"]):
        raise click.UsageError("--tag cannot be used with --provider or --force")
    with target.lead() as lead:

        def look() -> Row:
            return lead.call("status", {})

        def ask(**named: str) -> Row:
            with show_wait("waiting for the daemon"):
                return lead.call("down", {**named, **asked})

        def ask_for(burst: str) -> None:
            told = ask(burst=burst)
            tell_of_renewal(told)
            tell_of_tag(told)

        def wait(burst: str) -> None:
            if no_wait:
                click.echo(f"{burst} is being taken down")
            else:
                wait_for_burst(look, burst, until="inactive")

        failed: _Failed = {}
        # All of them are found before the first is taken down.
        if tag:
            found = _with_tag(tag, look())
            ask(tag=tag)
        else:
            found = list(dict.fromkeys(find_burst(each, look) for each in typed))
            _try_each(found, ask_for, failed)
        _try_each([each for each in found if each not in failed], wait, failed)
    if failed:
        raise _error_of(failed, several=len(found) > 1)


def _try_each(
    bursts: Iterable[str], act: Callable[[str], object], failed: _Failed
) -> None:
    """Act on each burst; add those that it failed for to `failed`.

    Raises BurstError with all of these once the lead or its daemon is gone.
    """
    for burst in bursts:
        try:
            act(burst)
        except LeadError as error:
            # It would fail for the others, too.
            if not failed:
                raise
            raise _error_of({**failed, burst: error}, several=True) from error
        except BurstError as error:
            failed[burst] = error


def _error_of(failed: _Failed, *, several: bool) -> BurstError:
    """Return one error for all bursts; it names each if several were to be ended."""
    if not several:
        return next(iter(failed.values()))
    return BurstError("; ".join(f"{burst}: {why}" for burst, why in failed.items()))


def _with_tag(tag: str, status: Row) -> list[str]:
    """Return the live bursts with a tag; say if there is none."""
    found = [row.id for row in bursts_of(status) if row.live and row.tag == tag]
    if not found:
        click.echo(f"no live burst has tag {tag}; its waiting jobs are canceled")
    return found
