"""`up --demo`: a newcomer comes in by the link and settles what really happened on real systems."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from ascertain import read_config
from ascertain.acceptance import day, day_config
from console.browsing import Seat
from console.conftest import PASSWORD
from server.processes import Process, client, process

pytestmark = pytest.mark.timeout(150)  # real systems and a browser on a busy machine
USABLE_WITHIN = 25.0  # seconds from the start to a page on which everything has happened
WORDS = {
    "en": {"there": "Use this reference and close", "done": "It is recorded as done.",
           "approve": "Approve exactly this", "approved": "You approved exactly this.",
           "title": "Ticket for B"},
    "zh": {"there": "采用此编号并结案", "done": "已记为完成。", "approve": "批准此内容",
           "approved": "您已批准此内容。", "title": "B 的工单"},
}  # fmt: skip


def played(up: Process) -> dict[str, Any]:
    """Wait until everything has happened."""
    assert up.popen.stdout is not None
    told: dict[str, Any] = json.loads(up.popen.stdout.readline())
    assert told["event"] == "played"
    assert told["wrong"] == "", told
    return told


def ids(desk: str, text: str) -> list[str]:
    """The numbers of the tickets that the help desk's own page lists with a text."""
    page = httpx2.get(desk, trust_env=False, timeout=10).text
    return re.findall(rf'href="issue(\d+)"[^>]*>\s*{re.escape(text)}\s*<', page)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_newcomer_decides_what_really_happened(browser: Any, tmp_path: Path, lang: str) -> None:
    words, texts, kept = WORDS[lang], day.TEXTS[lang], tmp_path / "kept"
    options = ("--json", "--port", "0", "--lang", lang, "--keep", str(kept))
    with process(tmp_path, "up", "--demo", *options) as up:
        link, told = up.listening()["first_link"], played(up)
        assert told["seconds"] < USABLE_WITHIN
        seat = Seat(browser, SimpleNamespace(url=up.url), None, lang=lang)  # type: ignore[arg-type]
        page = seat.page
        seat.goto("/link/" + link.rpartition("/")[2])
        page.fill("[name=login]", "newcomer")
        page.fill("[name=name]", "New Comer")
        page.fill("[name=password]", PASSWORD)
        page.click("button.pri")
        page.wait_for_url(up.url + "/")
        seat.goto(f"/runs/{day.RUN[lang]}")
        assert page.locator(".cells .unk").count() == 2  # B and E
        assert page.locator(".cells .q").count() == 1  # C
        assert page.locator(".cells .done").count() == 2  # A, and D by itself
        # B: the help desk holds it after all, as its own page shows.
        [reference] = ids(told["desk"], texts["B"])
        _decide(page, words, words["title"], reference)
        # E: the target holds two; the person takes the one that was not copied by hand.
        [reference] = ids(told["desk"], texts["E"])
        _decide(page, words, texts["E"], reference, found=True)
        seat.goto("/approvals")
        assert page.locator(".diff ins").count()
        assert page.locator(".diff del").count()
        page.check("#a-approve")
        page.click(f"button:has-text('{words['approve']}'):visible")
        page.wait_for_selector(f".fine:has-text('{words['approved']}')")
        with client(kept / day.OWN, up.url) as caller:  # C, which was missing
            given = {"campaign": day.CAMPAIGN, "item": "C", "title": "C"}
            asked = {"action": "desk.ticket", "input": given, "run": day.RUN[lang]}
            assert caller.post("/v1/operations", json=asked).json()["state"] == "done"
            stands = caller.get(f"/v1/runs/{day.RUN[lang]}").json()
            assert stands["green"] is True
        seat.goto(f"/runs/{day.RUN[lang]}")
        assert page.locator(".cells .done").count() == 5
        assert len(ids(told["desk"], texts["B"])) == 1  # nothing was sent twice
        assert seat.wrong == []
        seat.close()
        up.send(signal.SIGINT)
        assert up.ended() == 0
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix in (".db", ".toml")) == []


def _decide(page: Any, words: dict[str, str], title: str, ref: str, *, found: bool = False) -> None:
    page.click(".nav a[href='/review']")
    page.click(f".row >> text={title}")
    page.wait_for_url("**/review/*")
    page.check("#a-there")
    if found:
        page.check(f"[name=ref][value='{ref}']")
    else:
        page.fill("[name=other_ref]", ref)
    page.fill("[name=why]", "I saw it at the help desk")
    page.click(f"button:has-text('{words['there']}'):visible")
    page.wait_for_selector(f".fine:has-text('{words['done']}')")


def test_what_happened_is_what_the_server_tells(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "ascertain.toml").write_text("not for the demo", "utf-8")
    store = str(tmp_path / "own.db")
    options = ("--json", "--port", "0", "--store", store)
    with process(folder, "up", "--demo", *options) as up:
        up.listening()
        played(up)
        with client(folder, up.url, store) as caller:
            items = caller.get("/v1/operations?limit=100").json()["items"]
            how = {i["key"]: (i["state"], i["confirmed_by"]) for i in items}
            events = caller.get("/v1/events").json()["items"]
        up.send()
        assert up.ended() == 0
    assert how["autumn/A"] == ("done", "answer")
    assert how["autumn/D"] == ("done", "look_up")
    assert how["autumn/B"][0] == how["autumn/E"][0] == "unknown"
    assert "autumn/C" not in how
    assert how["R-1002"] == ("done", "replay")
    assert how["R-2001"] == ("done", "answer")
    assert {e["id"]: (e["state"], e["arrivals"]) for e in events} == {
        "evt-R-2001": ("processed", 3), "evt-R-2002": ("processed", 1),
        "evt-R-2003": ("ignored", 1),
    }  # fmt: skip
    assert (folder / "ascertain.toml").read_text("utf-8") == "not for the demo"
    assert not (folder / "ascertain.db").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_at_once_and_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    made = {"TMPDIR": str(tmp_path)}
    with process(tmp_path, "up", "--demo", "--json", "--port", "0", env=made) as up:
        up.listening()  # the day has just begun
        [folder] = tmp_path.glob("ascertain-demo-*")
        assert (folder / day.OWN).stat().st_mode & 0o777 == 0o700
        up.send(number)
        assert up.ended() == 0
    assert not folder.exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [(["--config", "x.toml"], 2), (["--namespace", "x"], 2), (["--store", "used.db"], 4)],
)
def test_it_touches_nothing_that_is_not_its_own(
    tmp_path: Path, words: list[str], code: int
) -> None:
    (tmp_path / "used.db").write_bytes(b"somebody's")
    with process(tmp_path, "up", "--demo", "--port", "0", *words) as up:
        assert up.ended() == code
    assert (tmp_path / "used.db").read_bytes() == b"somebody's"


def test_a_folder_to_keep_is_the_demos_alone(tmp_path: Path) -> None:
    with process(tmp_path, "up", "--keep", "there") as up:
        assert up.ended() == 2
        assert "--keep belongs to --demo" in up.log()
    assert list(tmp_path.glob("*.toml")) == []


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_configuration_can_be_read_and_holds_no_secret(tmp_path: Path, lang: str) -> None:
    desk = SimpleNamespace(url="http://127.0.0.1:1", password="pass-of-the-desk")
    crm = SimpleNamespace(password="pass-of-the-crm")
    file = day_config.write(
        tmp_path, lang, store="x.db", desk=desk, crm=crm,  # type: ignore[arg-type]
        ports={"desk": 1, "crm": 2},
    )  # fmt: skip
    assert read_config(file).problems == []
    text = file.read_text("utf-8")
    assert not re.search(r"@\w+@", text)
    for secret in (desk.password, crm.password, day_config.SECRET):
        assert secret not in text
    assert {p.name: p.stat().st_mode & 0o777 for p in tmp_path.glob("*.password")} == {
        "desk.password": 0o600, "crm.password": 0o600,
    }  # fmt: skip
