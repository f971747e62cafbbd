# SPDX-License-Identifier: MIT
"""Contract of `Lead.store`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from burst.errors import StoreError, Unreadable
from burst.lead import Lead
from tests.contract.base import WithInstance
from tests.contract.instance import Instance, LastingInstance

LARGE = "ƒ" * 300_000
TEXTS = ("", "ƒ \n\t\"'\\ {}", '{"a": 1}', "null", LARGE)


def kept(lead: Lead) -> dict[str, str]:
    """Return what the tests keep; a lead may keep things of its own under meta/."""
    found = lead.store().load()
    return {key: value for key, value in found.items() if not key.startswith("meta/")}


class StoreContract(WithInstance):
    def test_values_are_kept_replaced_and_deleted_for_all_clients(
        self, lead: Lead, instance: Instance
    ) -> None:
        assert kept(lead) == {}
        lead.store().write({"burst/burst-0-1a": "one", "burst/burst-0-2b": "two"})
        assert kept(lead) == {"burst/burst-0-1a": "one", "burst/burst-0-2b": "two"}
        lead.store().write({"burst/burst-0-1a": "more", "burst/burst-0-2b": None})
        with closing(instance.lead()) as second:
            assert kept(second) == {"burst/burst-0-1a": "more"}
            second.store().write({"burst/burst-0-1a": "again"})
        assert kept(lead) == {"burst/burst-0-1a": "again"}
        lead.store().write({"burst/burst-0-1a": None})
        assert kept(lead) == {}
        lead.store().write({"burst/none": None, "none": None})
        lead.store().write({})
        assert kept(lead) == {}

    def test_any_text_and_many_keys_come_back_as_they_were(self, lead: Lead) -> None:
        for text in TEXTS:
            lead.store().write({"burst/text": text})
            assert kept(lead) == {"burst/text": text}
        many = {f"burst/burst-{i}-x_Y": f"value {i}" for i in range(300)}
        # A key may be the beginning of another.
        nested = {"a": "1", "a/b": "2", "a/b/c": "3"}
        lead.store().write({"burst/text": None, **many, **nested})
        assert kept(lead) == many | nested

    def test_a_write_that_is_refused_keeps_nothing(self, lead: Lead) -> None:
        wrong_keys = dict.fromkeys(("", "a.b", "a b", "ƒ", "a\n"), "2")
        for key, value in {**wrong_keys, "burst/big": "x" * (2**20 + 1)}.items():
            with pytest.raises(StoreError):
                lead.store().write({"burst/good": "1", key: value})
            assert kept(lead) == {}, key

    def test_it_is_shared_by_threads_while_the_daemon_writes(self, lead: Lead) -> None:
        wanted = {f"novel/{thread}-{n}": "x" for thread in range(3) for n in range(20)}

        def write(thread: int) -> None:
            store = lead.shared_store()
            for n in range(20):
                store.write({f"novel/{thread}-{n}": "x"})
                assert f"novel/{thread}-{n}" in store.load()

        with ThreadPoolExecutor(3) as pool:
            writers = [pool.submit(write, thread) for thread in range(3)]
            while not all(writer.done() for writer in writers):
                lead.store().write({"burst/x": "1"})
        assert [writer.exception() for writer in writers] == [None] * 3
        assert kept(lead) == {**wanted, "burst/x": "1"}


class LastingStore(WithInstance):
    def test_one_that_takes_nothing_says_so_and_takes_it_later(
        self, instance: LastingInstance
    ) -> None:
        """As on a full disk. What it did not take it may have, or not."""
        with closing(instance.lead()) as lead:
            store = lead.store()
            store.write({"burst/kept": "one"})
            instance.lose_disk()
            for _ in range(2):
                with pytest.raises((StoreError, Unreadable)):
                    store.write({"burst/new": "two"})
            instance.restore_disk()
            store.write({"burst/new": "three"})
            assert kept(lead) == {"burst/kept": "one", "burst/new": "three"}
