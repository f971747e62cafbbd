# SPDX-License-Identifier: MIT
"""Entries are added to TOML of any form, and all that was there stays."""

import tomllib

import pytest

from burst.errors import ConfigError
from burst.lead_setup.toml_edits import add_entries, set_key

NEW = [{"host": "burst-0-[0-3]"}, {"host": "b", "parent": "burst-0-0"}]

FORMS = {
    "one line": 'a.hosts = [{host="x"}]',
    "a comma at the end": '[a]\nhosts = [ { host = "x" }, ] # why\nb = 1\n',
    "many lines": "# 1\n[a]\nhosts = [\n  # 2\n  {host='x'}, # 3\n {host='y'} # 4\n]\n",
    "lines and commas": '[a]\nhosts = [\n\t{host="x"},\n\n\t{host="y"}, # 4\n\t#5\n]\n',
    "windows": '[a]\r\nhosts = [\r\n {host="x"},\r\n]\r\n[b]\r\n',
    "a tab, a blank": "[ a ]\n\thosts\t=\t[{ host='x' }]   ",
    "within a table": 'a = { hosts = [{ host = "x" }] }\n',
    "tables": '[[a.hosts]]\nhost = "x"\n\n[b]\nc = """\n[[a.hosts]]\n"""',
    "tables apart": '[[a.hosts]]\nhost="x"\n[b]\n[[a.hosts]]\nhost="y"\n[a.c]\nd = 1\n',
    "its table after it": '[[a.hosts]]\nhost = "x"\n[b]\n[a]\nc = 1\n',
    "tables apart, not in tables": '[a.c]\nd = 1\n[b]\n[a]\nhosts = [{ host = "x" }]\n',
    "quoted": "['a']\n\"hosts\" = [{host='x'}]\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_entries_come_after_all_others(form: str) -> None:
    text = FORMS[form]
    before = tomllib.loads(text)
    new = add_entries(text, "a", "hosts", NEW)
    after = tomllib.loads(new)
    assert after["a"]["hosts"] == [*before["a"]["hosts"], *NEW]
    after["a"]["hosts"] = before["a"]["hosts"]
    assert after == before
    rest = iter(new)
    assert all(letter in rest for letter in text)


def test_a_key_is_set_beside_what_is_there() -> None:
    assert set_key("[a] # x\nb = 1\n", "a", "c", value=True) == (
        "[a] # x\nb = 1\nc = true\n"
    )
    assert set_key("[a] # x\nc = false\n", "a", "c", value=True) == (
        "[a] # x\nc = true\n"
    )


def test_what_cannot_be_added_to_is_to_be_changed_by_hand() -> None:
    """A form in which the array is read-only to the program must not lose a byte."""
    with pytest.raises(ConfigError, match="cannot be edited"):
        add_entries("a.hosts = 1\n", "a", "hosts", NEW)
