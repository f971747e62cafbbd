# SPDX-License-Identifier: MIT
"""`burst cost`: what bursts have cost, what is reserved, and what is left."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

import click

from burst.cli.daemon_call import ask_or_read
from burst.cli.listing import (
    Column,
    Listing,
    Row,
    listing_options,
    money,
    print_json,
    print_rows,
)
from burst.cli.numbers import Day
from burst.cli.progress import show_wait
from burst.cli.target import Target, target_options
from burst.core.money.cost_report import DIMENSIONS
from burst.kits import user_names
from burst.model.decision import moment


def _amount(key: str) -> Column:
    return Column(key.upper().replace("_", " "), lambda row: money(row[key]))


def _note(row: Row) -> str:
    if row["unread"]:
        return f"record {row['unread']} cannot be read, so nothing is bought"
    if row["over"]:
        return f"its last day was {row['until']}; nothing is bought"
    return f"begins anew on {moment(row['anew'])}"


_KINDS = ("work", "idle", "boot", "teardown", "never_joined")
_AMOUNTS = tuple(map(_amount, ("settled", *_KINDS, "wasted", "reserved")))
_SOURCES = {"offer": "as its provider says", "site": "[prices]"}
_PRICES = (
    Column("OFFER", lambda row: row["offer"]),
    Column("PRICE", lambda row: money(row["price"])),
    Column("FROM", lambda row: _SOURCES[row["from"]]),
    Column("RECLAIMED", lambda row: f"{row['reclaimed']} of {row['ended']}"),
)
_BUDGETS = (
    Column("BUDGET", lambda row: row["budget"]),
    *map(_amount, ("limit", "settled", "reserved", "left")),
    Column("NOTE", _note),
)


@click.command()
@click.option(
    "--by",
    type=click.Choice(DIMENSIONS),
    help="Show a row for each of these, in addition to the months.",
)
@click.option(
    "--since",
    type=Day(),
    help="Count only bursts made on that day (UTC) or later; default: all.",
)
@target_options
@listing_options
def cost(
    by: str | None,
    since: datetime.date | None,
    target: Target,
    listing: Listing,
) -> None:
    """Show what bursts have cost, what is reserved for live ones, and what is left.

    Amounts are in the unit of the prices. The cost of time without a job counts as
    wasted. Costs are known by day for at least 40 days, then by month. Without --since,
    --by job counts only the last 1,000 bursts. Users other than the instance owner see
    their own part. Without a daemon, the owner sees what is on record. A FORMAT is for
    the rows of --by, else for the months.
    """
    day = since.isoformat() if since else ""
    asked = {"by": by or "", "since": day}
    with target.lead() as lead, show_wait("adding up what bursts have cost"):
        found = ask_or_read(lead, target, "cost", asked)
    if by == "user":
        found["rows"] = [
            {**row, "name": name_of_user(row["name"])} for row in found["rows"]
        ]
    if listing.as_json:
        print_json(found)
        return
    if listing.form is not None:
        # The fields of the tables differ, so a format is for one of them.
        print_rows(found["rows"] if by else found["months"], (), listing)
        return
    if not found["months"]:
        click.echo("nothing is settled or reserved" + (f" since {day}" if day else ""))
    for title, rows in _tables(found):
        print_rows(rows, title, listing)
        click.echo()
    for line in _notes(found):
        click.echo(line)
    if found["budgets"]:
        print_rows(found["budgets"], _BUDGETS, listing)


def _notes(found: Row) -> Iterator[str]:
    """Yield lines about what the rows do not show."""
    if found["left_out"]:
        yield f"{found['left_out']} earlier bursts are left out; use a later --since\n"
    if found["by"] == "bank" and found["banks_unverified"]:
        yield f"banks of jobs are not verified: {found['banks_unverified']}\n"
    yield from (f"{line}\n" for line in found["usage"])


def _tables(found: Row) -> Iterator[tuple[tuple[Column, ...], Sequence[Row]]]:
    """Yield the columns and rows of each table: months, what `--by` names, prices."""
    if found["months"]:
        month = Column("MONTH", lambda row: row["month"])
        yield (month, *_AMOUNTS), found["months"]
    if found["rows"]:
        name = Column(found["by"].upper(), lambda row: row["name"])
        yield (name, *_AMOUNTS), found["rows"]
    if found["prices"]:
        yield _PRICES, found["prices"]


def name_of_user(name: str) -> str:
    """Return the name of a user whose number is given; the number if it is unknown."""
    return user_names.user_name(int(name)) if name.isdecimal() else name
