"""The pages about `ascertain.toml` name every key that the loader knows, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ascertain.config import hooks, passages, schema, telling
from ascertain.core.signatures import Generic
from ascertain.targets import credentials, describing
from ascertain.targets import placeholders as slots

DOCS = Path(__file__).parents[2] / "docs"
TABLES = {
    "[store]": (schema.StoreTable,),
    "[server]": (schema.ServerTable,),
    "[retention]": (schema.RetentionTable,),
    "[contracts]": (schema.AcceptTable,),
    "[targets.NAME]": (schema.TargetTable,),
    "[[targets.NAME.gateway]]": (passages.GatewayTable,),
    "breaker": (schema.BreakerTable,),
    "auth": (credentials.Auth, credentials.OAuth),
    "[approvers]": (),  # its keys are roles
    '[prices."ACTION"]': (telling.PriceTable,),
    "[costs]": (telling.CostsTable,),
    "[alarms]": (telling.AlarmsTable,),
    "[notify.NAME]": (telling.NotifyTable,),
    "[actions.NAME]": (schema.ActionTable,),
    "[hooks.NAME]": (hooks.HookTable, Generic),
    "[[hooks.NAME.map]]": (hooks.MapTable,),
    "request": (describing.Asked, describing.Search, describing.ReadBack),
}


def keys(page: str) -> dict[str, set[str]]:
    """Each section's documented keys, by what its head begins with."""
    text = (DOCS / page).read_text("utf-8")
    parts = re.split(r"^#+ `([^`]+)`.*$", text, flags=re.MULTILINE)
    rows = [re.findall(r"^\| ([^|]+) \|", part, re.MULTILINE) for part in parts[2::2]]
    # The head of a table names no key of it, but what it is the head of.
    named = [
        {k for row in found for k in re.findall(r"`(\w+)`", row) if "`[" not in row}
        for found in rows
    ]
    return dict(zip(parts[1::2], named, strict=True))


@pytest.mark.parametrize("page", ["config.md", "zh/config.md"])
def test_every_key_is_documented_and_no_other(page) -> None:
    documented = keys(page)
    assert set(documented) == set(TABLES)
    for head, tables in TABLES.items():
        known = {k for table in tables for k in schema.known(table)}
        assert documented[head] == known, head


@pytest.mark.parametrize("page", ["config.md", "zh/config.md"])
def test_the_functions_and_what_a_secret_has_are_named(page) -> None:
    text = (DOCS / page).read_text("utf-8")
    named = [*slots.FUNCTIONS, *filter(None, slots.ESCAPES), *schema.known(describing.Input)]
    assert [n for n in named if f"`{n}`" not in text] == []
    assert [n for n in schema.known(credentials.Source) if f"{n} = " not in text] == []


@pytest.mark.parametrize("language", ["toml", "sh", "text"])
def test_both_languages_show_the_same_example(language) -> None:
    def bare(page: str) -> list[str]:
        text = (DOCS / page).read_text("utf-8")
        found = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
        return [re.sub(r" +# .*", "", block) for block in found]

    assert bare("howto/rest-target.md") == bare("zh/howto/rest-target.md") != []
