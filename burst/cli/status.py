# SPDX-License-Identifier: MIT
"""`burst status`: bursts, rank slots and providers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from burst.cli.colours import (
    NOTICE,
    WRONG,
    Line,
    result_style,
    state_style,
)
from burst.cli.daemon_call import ask_or_read
from burst.cli.listing import (
    Column,
    Listing,
    Row,
    fsd,
    listing_options,
    money,
    print_json,
    print_rows,
    print_text,
)
from burst.cli.progress import show_wait
from burst.cli.target import Target, target_options
from burst.errors import START_A_DAEMON
from burst.model.burst import PRICE_SOURCES
from burst.model.decision import count_nodes, moment, name_ranks
from burst.model.fsd import rounded_span

# A node with many cores may run hundreds of jobs, and a thousand more may be held;
# --json has them all.
_SHOWN_JOBS = 3

_BURSTS = (
    Column("BURST", lambda row: row["id"]),
    Column("PROVIDER", lambda row: f"{row['provider']}/{row['offer']}"),
    Column("STATE", lambda row: row["state"], state_style),
    Column("FOR", lambda row: fsd(row["age"])),
    Column("NODES", lambda row: f"{_known(row['online'])}/{row['nodes']}"),
    Column("RANKS", lambda row: row["ranks"]),
    Column("RESULT", lambda row: row["result"] or "-", result_style),
    Column("JOBS", lambda row: some_jobs(row["jobs"])),
    Column("NOTE", lambda row: _with_reason(row, row["note"] or idle_text(row))),
)


SLOTS = (
    Column("SLOT", lambda row: row["name"]),
    Column("RANKS", lambda row: row["ranks"]),
    Column("NODES", lambda row: row["shape"]),
    Column("STATE", lambda row: row["state"], state_style),
    Column("BURST", lambda row: row["burst"] or "-"),
)


@click.command()
@click.option("-a", "--all", "everything", is_flag=True, help="Show ended bursts too.")
@target_options
@listing_options
def status(everything: bool, target: Target, listing: Listing) -> None:
    """Show the bursts, the rank slots and the providers.

    Users other than the instance owner see the bursts of their own jobs. Without a
    daemon, the owner sees what is on record.
    """
    with target.lead() as lead, show_wait("waiting for the daemon"):
        found = ask_or_read(lead, target, "status")
    if not everything:
        found["bursts"] = [b for b in found["bursts"] if b["state"] != "inactive"]
    if listing.as_json:
        print_json(found)
        return
    if found["bursts"]:
        ended = any(row["result"] for row in found["bursts"])
        columns = [each for each in _BURSTS if ended or each.title != "RESULT"]
        print_rows(found["bursts"], columns, listing)
    if listing.form is not None:
        return
    if not found["bursts"]:
        click.echo("no bursts")
    click.echo()
    print_rows(found["slots"], SLOTS, listing)
    for line in notices(found):
        print_text(line)


def some_jobs(jobs: Sequence[str]) -> str:
    """Return the first of these jobs, and how many more there are."""
    more = len(jobs) - _SHOWN_JOBS
    told = ",".join(jobs[:_SHOWN_JOBS]) or "-"
    return f"{told} +{more}" if more > 0 else told


def _with_reason(row: Row, note: str) -> str:
    """Return a note on a burst, and the standing minimum it was made for, if any."""
    standing = row["standing"] and f"made for the standing minimum of {row['standing']}"
    return "; ".join(filter(None, (note, standing)))


def idle_text(row: Row) -> str:
    """Return how long a burst has been idle and when it goes; empty if it is not."""
    if row["idle"] is None:
        return ""
    left = "" if row["down_in"] is None else f", down in {rounded_span(row['down_in'])}"
    return f"idle {rounded_span(row['idle'])}{left}"


def _known(online: int | None) -> str:
    return "?" if online is None else str(online)


def lead_troubles(lead: Row) -> list[str]:
    """Return what is wrong with the lead and its store, from an answer to `status`."""
    why = lead["trouble"] and f"the lead cannot be read: {lead['trouble']}"
    return [text for text in (why, lead["halt"]) if text]


def notices(found: Row) -> list[Line]:
    """Return a line for everything that a person should know of."""
    lines: list[Line] = []
    if found["totals"]["nodes"]:
        lines.append([bill(found["totals"])])
    used = (used_text(budget) for budget in found["budgets"] if budget["warns"])
    lines += [[(line, NOTICE)] for line in used]
    if found["banks_unverified"]:
        lines.append([f"banks of jobs are not verified: {found['banks_unverified']}"])
    if found["daemon"] is None:
        lines.append([(_no_daemon(found), WRONG)])
    lines += [[(text, WRONG)] for text in lead_troubles(found["lead"])]
    for slot in found["slots"]:
        if slot["state"] == "occupied":
            text = f"slot {slot['name']} is in use, and not by a burst"
            lines.append([(f"{text}; burst doctor says by what", WRONG)])
        lines += [
            [(drain_text(slot["name"], ranks, why), NOTICE)]
            for why, ranks in slot["drained"].items()
        ]
    for provider in found["providers"]:
        lines += provider_notices(provider, found["now"])
    if found["held"]:
        lines.append([f"held: {some_jobs(found['held'])}"])
    for orphan in found["orphans"]:
        text = f"orphan {orphan['id']} of {orphan['provider']}: {orphan['why']}"
        lines.append([(f"{text}; burst gc", NOTICE)])
    lines += [
        [(f"standing minimum of {text} is not met: {why}", NOTICE)]
        for text, why in found["standing"].items()
    ]
    lines += [
        [(f"notices cannot be sent: {why}", WRONG)] for why in found["untold"].values()
    ]
    for key, why in found["unreadable"].items():
        lines.append([(f"record {key} cannot be read: {why}", WRONG)])
    return lines


def drain_text(slot: str, ranks: str, why: str) -> str:
    """Return that a person has drained `ranks`, an idset, and how to undo that."""
    verb = "is" if ranks.isdigit() else "are"
    return (
        f"{name_ranks(ranks)} of slot {slot} {verb} drained by hand: {why};"
        f" when that no longer holds: flux resource undrain {ranks}"
    )


def bill(totals: Row) -> str:
    """Return how many nodes are rented, and what they cost, if anything."""
    text = count_nodes(totals["nodes"])
    if totals["of"]:
        text = f"{totals['nodes']} of {count_nodes(totals['of'])}"
    if totals["per_hour"] or totals["cost"]:
        text += f", {money(totals['per_hour'])} an hour, {money(totals['cost'])} so far"
    return text


def used_text(budget: Row) -> str:
    """Return how much of a budget is used, and until when the rest has to last."""
    used = money(budget["settled"] + budget["reserved"])
    return (
        f"budget {budget['budget']}: {used} of {money(budget['limit'])} is settled or"
        f" reserved, {money(budget['left'])} is left until {moment(budget['anew'])}"
    )


def provider_notices(provider: Row, now: float) -> list[Line]:
    """Return a line for everything that a person should know of a provider."""
    lines: list[Line] = []
    name = provider["name"]
    if provider["disabled"]:
        text = f"provider {name} is disabled: {provider['disabled']}"
        lines.append([(f"{text}; burst enable {name}", WRONG)])
    if (until := provider["breaker_until"]) and until > now:
        left = fsd(round(until - now))
        text = f"provider {name} gets no new bursts for {left}: its calls failed in a"
        lines.append([(f"{text} row; burst enable {name} ends that", WRONG)])
    if provider["trouble"]:
        lines.append([(f"provider {name}: {provider['trouble']}", NOTICE)])
    lines += [
        [learnt(f"{name}/{offer['name']}", offer)]
        for offer in provider["offers"]
        if offer["online"]
    ]
    for offer in provider["offers"]:
        lines += [
            [(text, NOTICE)] for text in _closed(f"{name}/{offer['name']}", offer, now)
        ]
    return lines


def _closed(key: str, offer: Row, now: float) -> Iterator[str]:
    """Yield which bursts of an offer are not made for a while, and why."""
    until = offer["set_aside_until"]
    if until and until > now:
        why = offer["set_aside_why"]
        left = f"offer {key} is set aside for {fsd(round(until - now))}"
        yield ": ".join(filter(None, (left, why)))
    for spec in offer["refused"]:
        if spec["until"] > now:
            these = f"bursts of {spec['nodes']} nodes in slot {spec['slot']}"
            what = these if spec["slot"] else "all bursts"
            left = fsd(round(spec["until"] - now))
            yield f"offer {key}: {what} are refused for {left}: {spec['why']}"


def learnt(key: str, offer: Row) -> str:
    """Return what a node of an offer costs, and in what time its bursts are online."""
    online = offer["online"]
    median, slow = rounded_span(online["p50"]), rounded_span(online["p90"])
    count = online["bursts"]
    if count == 1:
        text = f"offer {key}: its last burst was online within {median}"
    else:
        half = f"half of its last {count} bursts were online within {median}"
        text = f"offer {key}: {half}, 9 of 10 within {slow}"
    if offer["price"]:
        source = PRICE_SOURCES[offer["priced_by"]]
        text += f", {money(offer['price'])} per node-hour {source}"
    if offer["fee"]:
        text += f", {money(offer['fee'])} per burst and hour"
    return text


def _no_daemon(found: Row) -> str:
    live = [row["id"] for row in found["bursts"] if row["state"] != "inactive"]
    lost = f"nothing takes {', '.join(live)} down" if live else "no burst is live"
    return (
        "no daemon serves this lead; this is what is on record, and"
        f" {lost}: start one ({START_A_DAEMON})"
    )
