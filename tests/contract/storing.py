# SPDX-License-Identifier: MIT
"""Contract of `Lead.store`."""

from __future__ import annotations

from contextlib import closing

import pytest

from burst.errors import StoreError, Unreadable
from burst.lead import Lead
from tests.contract.base import WithInstance
from tests.contract.instance import Instance, LastingInstance

LARGE = "ƒ" * 300_000


def kept(lead: Lead) -> dict[str, str]:
    """Return what the tests keep; a lead may keep things of its own under meta/."""
    found = lead.store().load()
    return {key: value for key, value in found.items() if not key.startswith("meta/")}


class StoreContract(WithInstance):
    def test_a_new_store_is_empty(self, lead: Lead) -> None:
        assert kept(lead) == {}

    def test_values_are_kept_replaced_and_deleted(self, lead: Lead) -> None:
        lead.store().write({"burst/burst-0-1a": "one", "burst/burst-0-2b": "two"})
        assert kept(lead) == {"burst/burst-0-1a": "one", "burst/burst-0-2b": "two"}
        lead.store().write({"burst/burst-0-1a": "more", "burst/burst-0-2b": None})
        assert kept(lead) == {"burst/burst-0-1a": "more"}
        lead.store().write({"burst/burst-0-1a": None})
        assert kept(lead) == {}

    def test_deleting_what_is_not_there_is_fine(self, lead: Lead) -> None:
        lead.store().write({"burst/none": None, "none": None})
        lead.store().write({})
        assert kept(lead) == {}

    @pytest.mark.parametrize(
        "value", ["", "ƒ \n\t\"'\\ {}", '{"a": 1}', "null", LARGE], ids=len
    )
    def test_any_text_comes_back_as_it_was(self, lead: Lead, value: str) -> None:
        lead.store().write({"burst/text": value})
        assert kept(lead) == {"burst/text": value}

    def test_many_keys_in_one_write(self, lead: Lead) -> None:
        many = {f"burst/burst-{i}-x_Y": f"value {i}" for i in range(300)}
        lead.store().write(many)
        assert kept(lead) == many

    def test_a_key_may_be_the_beginning_of_another(self, lead: Lead) -> None:
        nested = {"a": "1", "a/b": "2", "a/b/c": "3"}
        lead.store().write(nested)
        assert kept(lead) == nested

    @pytest.mark.parametrize("key", ["", "a.b", "a b", "ƒ", "a\n"])
    def test_a_wrong_key_keeps_nothing(self, lead: Lead, key: str) -> None:
        with pytest.raises(StoreError):
            lead.store().write({"burst/good": "1", key: "2"})
        assert kept(lead) == {}

    def test_a_value_that_is_too_large_keeps_nothing(self, lead: Lead) -> None:
        with pytest.raises(StoreError):
            lead.store().write({"burst/good": "1", "burst/big": "x" * (2**20 + 1)})
        assert kept(lead) == {}

    def test_a_second_client_sees_it(self, lead: Lead, instance: Instance) -> None:
        lead.store().write({"burst/burst-0-1a": "one"})
        with closing(instance.lead()) as second:
            assert kept(second) == {"burst/burst-0-1a": "one"}
            second.store().write({"burst/burst-0-1a": "two"})
        assert kept(lead) == {"burst/burst-0-1a": "two"}


class LastingStore(WithInstance):
    @pytest.mark.parametrize("end", ["stop", "kill"])
    def test_what_was_written_survives_the_lead(
        self, end: str, instance: LastingInstance
    ) -> None:
        with closing(instance.lead()) as before:
            before.store().write({"burst/burst-0-1a": "one", "burst/large": LARGE})
            before.store().write({"burst/gone": "x"})
            before.store().write({"burst/gone": None})
        instance.stop() if end == "stop" else instance.kill()
        instance.start()
        with closing(instance.lead()) as after:
            assert kept(after) == {"burst/burst-0-1a": "one", "burst/large": LARGE}

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
