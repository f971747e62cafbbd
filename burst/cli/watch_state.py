# SPDX-License-Identifier: MIT
"""What `burst watch` remembers between two keys, and what each key does. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from rich.text import Text

from burst.cli.explain_text import story_lines
from burst.cli.listing import Row
from burst.cli.status import lead_troubles, learnt, used_text
from burst.cli.terminal import rich_text
from burst.cli.watch_rows import Item, Key, Section, sections
from burst.model.decision import moment
from burst.model.printable import printable

JOBS = 200
"""So many of the jobs that wait are asked for."""
_PAGE = 10


class WatchCall(msgspec.Struct, frozen=True):
    """What the daemon is to be asked, besides how it all is."""

    method: str
    payload: Mapping[str, Any]
    about: str
    """What a person calls it."""


class WatchState(msgspec.Struct, frozen=True):
    """The screen, but for its size."""

    found: Row | None = None
    """The daemon's last answer to `status`; None: none yet."""
    failure: str = ""
    """Why there was no answer to the last question; empty if there was one."""
    selected: Key | None = None
    everything: bool = False
    """Whether bursts that have ended are shown too."""
    page: tuple[Text, ...] | None = None
    """What is read instead of the tables."""
    offset: int = 0
    """So many lines of the page are above the screen."""
    confirm: str | None = None
    """The burst that is to be taken down if the next key is y."""
    message: str = ""
    over: bool = False
    """Whether the user has quit."""

    def change(self, **changes: Any) -> WatchState:
        """Return the state with some fields changed."""
        return msgspec.structs.replace(self, **changes)

    def troubles(self) -> list[str]:
        """Return a line for each thing that makes what is shown old or wrong."""
        lines = []
        if self.failure:
            lines.append(f"no answer: {self.failure}; it is tried again")
        if self.found:
            lines += lead_troubles(self.found["lead"])
        if self.found and self.found["daemon"] is None:
            lines.append("no daemon serves this lead; this is what is on record")
        return lines

    def items(self) -> list[Item]:
        """Return all rows that can be selected, in their order."""
        return [item for section in self._sections() for item in section.items]

    def selected_in(self, section: Section) -> int | None:
        """Return which row of a section is selected; None for none of it."""
        keys = [item.key for item in section.items]
        return keys.index(self.selected) if self.selected in keys else None

    def item(self) -> Item | None:
        """Return what is selected; None for nothing, or for what is there no more."""
        return next((i for i in self.items() if i.key == self.selected), None)

    def answered(self, found: Row) -> WatchState:
        """Return the state after an answer to `status`.

        Of a selected row that is gone, the one that has its place is selected.
        """
        before = [item.key for item in self.items()]
        state = self.change(found=found, failure="")
        keys = [item.key for item in state.items()]
        if self.selected in keys:
            return state
        place = before.index(self.selected) if self.selected in before else 0
        chosen = keys[min(place, len(keys) - 1)] if keys else None
        return state.change(selected=chosen)

    def _sections(self) -> list[Section]:
        if self.found is None:
            return []
        return sections(self.found, 0, everything=self.everything)

    def move(self, by: int) -> WatchState:
        """Select a row further down, or up; or scroll what is read."""
        if self.page is not None:
            last = len(self.page) - 1
            return self.change(offset=max(0, min(self.offset + by, last)))
        keys = [item.key for item in self.items()]
        if not keys:
            return self
        place = keys.index(self.selected) if self.selected in keys else 0
        return self.change(selected=keys[max(0, min(place + by, len(keys) - 1))])

    def next_table(self) -> WatchState:
        """Select the first row of the next table that has one."""
        tables = [section.items for section in self._sections() if section.items]
        if not tables:
            return self
        here = [self.selected in [item.key for item in items] for items in tables]
        following = (here.index(True) + 1) % len(tables) if True in here else 0
        return self.change(selected=tables[following][0].key)


Step = tuple[WatchState, WatchCall | None]


def press(state: WatchState, key: str, help_page: Sequence[str]) -> Step:
    """Return the state after a key, and what the daemon is to be asked for it."""
    if state.confirm is not None:
        return _confirmed(state, key)
    state = state.change(message="")
    if key in _MOVES:
        return state.move(_MOVES[key]), None
    if key in {"?", "h"}:
        return state.change(page=tuple(map(Text, help_page)), offset=0), None
    act = _ACTS.get(key)
    if state.page is not None:
        over = key in {"q", "escape"}
        return (state.change(page=None, offset=0) if over else state), None
    return act(state) if act else (state, None)


def told(state: WatchState, call: WatchCall, answer: Row) -> WatchState:
    """Return the state after what the daemon was asked for a key is answered."""
    if call.method == "explain":
        page = tuple(map(rich_text, story_lines(answer)))
        return state.change(page=page, offset=0)
    if call.method == "release":
        released = " ".join(answer["released"]) or "nothing is held"
        return state.change(message=f"released: {released}")
    return state.change(message=f"{call.about} is being taken down")


def _confirmed(state: WatchState, key: str) -> Step:
    burst = state.confirm or ""
    state = state.change(confirm=None, message="")
    if key != "y":
        return state.change(message=f"{burst} is left as it is"), None
    note = "taken down in burst watch"
    return state, WatchCall("down", {"burst": burst, "note": note}, burst)


def _explain(state: WatchState) -> Step:
    item = state.item()
    if item is None:
        return state.change(message="nothing is selected"), None
    kind, name = item.key
    if kind == "slot":
        kind, name = "burst", item.row["burst"].partition(",")[0]
    if kind in {"job", "burst"} and name:
        return state, WatchCall("explain", {"id": name}, name)
    return state.change(page=_described(item), offset=0), None


def _described(item: Item) -> tuple[Text, ...]:
    """Return what the last answer says of a row about which nobody has to be asked."""
    kind, name = item.key
    if kind == "slot":
        lines = [f"slot {name}: {item.row['state']}", f"  hosts {item.row['hosts']}"]
    elif kind == "budget":
        lines = [used_text(item.row)]
    else:
        lines = _of_provider(item.row)
    return tuple(Text(printable(line)) for line in lines)


def _of_provider(row: Row) -> list[str]:
    lines = [f"provider {row['name']}"]
    if row["disabled"]:
        lines.append(f"  disabled: {row['disabled']}; burst enable {row['name']}")
    if row["breaker_until"]:
        lines.append(f"  gets no new bursts until {moment(row['breaker_until'])}")
    if row["trouble"]:
        lines.append(f"  {row['trouble']}")
    for offer in row["offers"]:
        lines.append(f"  offer {offer['name']}: {offer['shape']}")
        if offer["online"]:
            lines.append(f"    {learnt(offer['name'], offer)}")
    return lines


def _take_down(state: WatchState) -> Step:
    item = state.item()
    name = ""
    if item is not None:
        name = item.key[1] if item.key[0] == "burst" else item.row.get("burst") or ""
    if not name:
        return state.change(message="select a burst to take it down"), None
    return state.change(confirm=name.partition(",")[0]), None


def _release(state: WatchState) -> Step:
    item = state.item()
    if item is None or item.key[0] != "job":
        return state.change(message="select a job to release it"), None
    if not item.row["held"]:
        return state.change(message=f"{item.key[1]} is not held"), None
    return state, WatchCall("release", {"ids": [item.key[1]]}, item.key[1])


def _show_all(state: WatchState) -> Step:
    shown = "live bursts" if state.everything else "all bursts on record"
    return state.change(
        everything=not state.everything, message=f"{shown} are shown"
    ), None


_MOVES = {
    "up": -1,
    "k": -1,
    "down": 1,
    "j": 1,
    "page-up": -_PAGE,
    "page-down": _PAGE,
    "home": -10_000,
    "end": 10_000,
}
_ACTS: dict[str, Callable[[WatchState], Step]] = {
    "enter": _explain,
    "e": _explain,
    "d": _take_down,
    "r": _release,
    "a": _show_all,
    "tab": lambda state: (state.next_table(), None),
    "q": lambda state: (state.change(over=True), None),
}
