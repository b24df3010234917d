"""People: the first one, what each may give to whom, tokens, links, and the audit of all of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ascertain import open_store
from ascertain.core.books import Account, Member
from ascertain.core.errors import NotAllowed, Refused, UsageError
from ascertain.core.logins import login_of, password_of
from ascertain.core.model import SECOND
from ascertain.runtime import erasing
from ascertain.runtime.accounts import Accounts, hold_everybody
from ascertain.runtime.audit import Wanted
from ascertain.runtime.hashing import Passwords
from ascertain.runtime.links import Links
from ascertain.runtime.people import People, Person
from ascertain.testing import FakeClock
from server.house import Home
from server.persons import ALL, OWN_PAGE, PASSWORD, TEST, account, browser, person, quick, sign_in


def secret_of(link: str) -> str:
    return link.rpartition("/")[2]


def actions(home: Home) -> list[str]:
    log = home.serving.accounts.log
    return [line.did for line in reversed(log.find(None, Wanted(), limit=1000))]


# --- the first user -------------------------------------------------------------------------


def test_the_first_user_comes_by_a_link_that_is_good_once(home: Home) -> None:
    quick(home)
    assert not home.serving.accounts.any_account()
    link = home.serving.first_link()
    nobody = home.as_token(None)
    assert nobody.get(f"/v1/links/{secret_of(link)}").json()["purpose"] == "first_user"
    asked = {"login": "Anna@Example.org", "password": PASSWORD}
    weak = nobody.post(f"/v1/links/{secret_of(link)}", json={**asked, "password": "short"})
    assert (weak.status_code, weak.json()["code"]) == (400, "usage")  # and the link stays good
    done = nobody.post(f"/v1/links/{secret_of(link)}", json=asked)
    assert done.status_code == 200
    me = nobody.get("/v1/me").json()
    assert (me["actor"], me["role"], me["everywhere"]) == ("anna@example.org", "admin", True)
    assert {"decide", "approve", "override", "admin"} <= set(me["rights"])
    assert home.serving.first_link() == ""
    assert nobody.post(f"/v1/links/{secret_of(link)}", json=asked).status_code == 404
    assert sign_in(home, "ANNA@example.org ").status_code == 200
    assert "person.first" in actions(home)


@pytest.mark.parametrize("purpose", ["first", "sign_in"])
def test_of_two_who_use_one_link_at_once_one_wins(home: Home, purpose: str) -> None:
    quick(home)
    accounts = home.serving.accounts
    if purpose == "first":
        made = accounts.links.first()
    else:
        made = accounts.links.sign_in(account(home, "anna"), who=TEST)
    assert made is not None
    link, here = accounts.links.of(made.secret), threading.Barrier(4)
    assert link is not None
    won: list[Any] = []

    def use(number: int) -> None:
        here.wait()
        try:
            if purpose == "first":
                got = accounts.links.redeem_first(link, f"p{number}", "", PASSWORD, who=TEST)
            else:
                who = accounts.people.by_id(link.subject)
                assert who is not None
                password = f"{PASSWORD} {number}"
                got = accounts.links.redeem_sign_in(link, who, password, who=TEST)
            won.append(got.secret)
        except Refused:
            pass

    threads = [threading.Thread(target=use, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert accounts.sessions.of(won[0]) is not None
    assert len(accounts.people.list(None)) == 1


def test_the_first_links_of_two_servers_make_one_first_user(home: Home) -> None:
    """Both were printed; whoever comes first uses up both."""
    quick(home)
    links: Links = home.serving.accounts.links
    one, two = links.first(), links.first()
    assert one is not None
    assert two is not None
    assert [links.of(made.secret) for made in (one, two)] == [one.link, two.link]
    links.redeem_first(one.link, "anna", "", PASSWORD, who=TEST)
    with pytest.raises(Refused):
        links.redeem_first(two.link, "eve", "", PASSWORD, who=TEST)
    assert links.of(two.secret) is None


# --- who may give what ----------------------------------------------------------------------


def test_nobody_gives_a_right_that_he_has_not(home: Home) -> None:
    boss = person(home, "boss", "admin")  # of this namespace, decides nothing himself
    for refused in (
        {"role": "viewer", "decides": True}, {"role": "viewer", "approves": True},
        {"role": "viewer", "overrides": True}, {"role": "viewer", "namespace": "other"},
        {"role": "viewer", "namespace": "*"},
    ):  # fmt: skip
        answer = boss.post("/v1/people", json={"login": "eve", "membership": refused})
        assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed"), refused
    assert home.serving.accounts.people.by_login("eve") is None
    answer = boss.post("/v1/people", json={"login": "eve", "membership": {"role": "operator"}})
    assert answer.status_code == 201
    me = home.serving.accounts.people.by_login("boss")
    assert me is not None
    raised = boss.patch(f"/v1/people/{me.id}",
                        json={"membership": {"role": "admin", "decides": True}})  # fmt: skip
    assert raised.status_code == 403


def test_a_namespaces_admin_cannot_become_somebody_with_more_rights(home: Home) -> None:
    """A link to a new password, or a disabled account, would let him act as or instead of him."""
    account(home, "root", "admin", namespace="*", **ALL)
    strong = account(home, "strong", "viewer", decides=1)
    both = account(home, "both", "viewer")
    home.serving.accounts.people.grant(
        both, Member(account=both.id, namespace="other", role="viewer"), who=TEST, granter=None
    )
    boss = person(home, "boss", "admin")
    root = home.serving.accounts.people.by_login("root")
    assert root is not None
    for victim in (strong, both, root):
        for change in ({"new_link": True}, {"disabled": True}, {"name": "x"}):
            answer = boss.patch(f"/v1/people/{victim.id}", json=change)
            assert answer.status_code == 403, (victim.login, change)
    # To lower what somebody else was given by more than him is to take it over, too.
    change = {"membership": {"role": "viewer"}}
    assert boss.patch(f"/v1/people/{strong.id}", json=change).status_code == 403
    assert boss.delete(f"/v1/people/{strong.id}").status_code == 204  # but he may take him out


def test_a_login_that_is_taken_is_not_taken_over(home: Home) -> None:
    account(home, "anna", "viewer", namespace="other")
    boss = person(home, "boss")
    answer = boss.post("/v1/people", json={"login": "ANNA", "membership": {"role": "viewer"}})
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")
    anna = home.serving.accounts.people.by_login("anna")
    assert anna is not None
    assert [m.namespace for m in home.serving.accounts.people.members(anna.id)] == ["other"]


def test_the_last_one_who_administers_everything_stays(home: Home) -> None:
    root = person(home, "root", "admin", namespace="*")
    mine = home.serving.accounts.people.by_login("root")
    assert mine is not None
    for change in ({"disabled": True}, {"end": "*"},
                   {"membership": {"namespace": "*", "role": "viewer"}}):  # fmt: skip
        answer = root.patch(f"/v1/people/{mine.id}", json=change)
        assert (answer.status_code, answer.json()["code"]) == (409, "refused"), change
    account(home, "second", "admin", namespace="*")
    assert root.patch(f"/v1/people/{mine.id}", json={"disabled": True}).status_code == 200
    assert root.get("/v1/me").status_code == 401


@contextmanager
def both_wait(where: str, threads: list[threading.Thread]) -> Iterator[None]:
    """Hold every row that two servers are about to change, until both stand before it: so each
    has seen the other one's person before it goes on."""
    if not where.startswith("postgres"):
        yield
        return
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
    with psycopg.connect(where) as holder, psycopg.connect(where, autocommit=True) as watcher:
        holder.execute("select 1 from account for update")
        holder.execute("select 1 from member for update")
        yield
        while watcher.execute(waiting).fetchone() != (2,) and any(t.is_alive() for t in threads):
            watcher.execute("select pg_sleep(0.01)")
        holder.rollback()


@pytest.mark.parametrize("how", ["disable", "end", "lower"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_two_last_ones_cannot_remove_each_other(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, how: str
) -> None:
    """Each at a server of its own, in the same instant."""
    where = str(tmp_path / "a.db")
    if kind == "postgres":
        where = request.getfixturevalue("postgres_database")
    stores = [open_store(where), open_store(where)]
    sides = [Accounts(store).people for store in stores]
    members = [Member(account="", namespace="*", role="admin")]
    pair = [sides[0].add(f"p-{n}", "", members, who=TEST, granter=None) for n in range(2)]
    refused: list[str] = []
    threads = [
        threading.Thread(target=remove, args=(*given, how, refused))
        for given in zip(sides, pair, strict=True)
    ]
    with both_wait(where, threads):
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join()
    assert [p.account.login for p in sides[0].list(None) if administers(p)] == refused != []
    for store in stores:
        store.close()


def administers(one: Person) -> bool:
    everywhere = any(m.namespace == "*" and m.role == "admin" for m in one.members)
    return everywhere and one.account.disabled_at is None


def remove(people: People, victim: Account, how: str, refused: list[str]) -> None:
    try:
        if how == "disable":
            people.disable(victim, who=TEST, granter=None)
        elif how == "end":
            people.end(victim, "*", who=TEST, granter=None)
        else:
            low = Member(account=victim.id, namespace="*", role="viewer")
            people.grant(victim, low, who=TEST, granter=None)
    except Refused:
        refused.append(victim.login)


# --- logins and passwords -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("Anna", "anna"), (" anna ", "anna"), ("ＡＮＮＡ", "anna"), ("STRASSE", "strasse"),
        ("straße", "strasse"), ("ﬁona", "fiona"), ("王芳", "王芳"), ("Å", "å"), ("a\u030a", "å"),
        ("o'neil@example.org", "o'neil@example.org"),
    ],
)  # fmt: skip
def test_logins_that_look_alike_are_one(typed: str, kept: str) -> None:
    assert login_of(typed) == kept
    assert login_of(kept) == kept


@pytest.mark.parametrize(
    "typed",
    ["", " ", "a b", "a\u200bb", "a\u202eb", "a\nb", "token:abc", "guest:anna", "link/x", "a" * 129,
     "\ufeff", "аnna", "pаypal", "a\x00", "a%b", "<b>", "ͣ" * 200],
)  # fmt: skip
def test_logins_that_could_be_taken_for_another_one_are_refused(typed: str) -> None:
    with pytest.raises(UsageError):
        login_of(typed)


@pytest.mark.parametrize("typed", ["", "short", "a" * 2000, "my-anna-password", "aaaaaaaaaaaaaa"])
def test_weak_passwords_are_refused(typed: str) -> None:
    with pytest.raises(UsageError):
        password_of(typed, "anna")


def test_a_password_is_hashed_anew_when_its_parameters_changed(home: Home) -> None:
    anna = account(home, "anna")
    people = home.serving.accounts.people
    before = people.by_id(anna.id).password  # type: ignore[union-attr]
    assert before.startswith("$argon2id$v=19$m=64,t=1,")
    people.passwords = Passwords(memory=128, passes=2)
    assert people.check("anna", PASSWORD + "x") is None
    assert people.by_id(anna.id).password == before  # type: ignore[union-attr]
    assert people.check("anna", PASSWORD) is not None
    after = people.by_id(anna.id).password  # type: ignore[union-attr]
    assert after.startswith("$argon2id$v=19$m=128,t=2,")
    assert people.check("anna", PASSWORD) is not None
    decomposed = "pässwörd of anna's"
    people.set_password(anna, decomposed.replace("anna", "emil"), who=TEST)
    assert people.check("anna", "pa\u0308sswo\u0308rd of emil's") is not None


def test_a_person_changes_his_own_password(home: Home) -> None:
    anna = person(home, "anna", "viewer")
    other = browser(home, "anna")
    wrong = anna.post("/v1/me/password", json={"was": "wrong", "new": "a new long password"})
    assert wrong.status_code == 403
    done = anna.post("/v1/me/password", json={"was": PASSWORD, "new": "a new long password"})
    assert done.status_code == 204
    assert anna.get("/v1/me").status_code == 200
    assert other.get("/v1/me").status_code == 401
    assert sign_in(home, "anna").status_code == 401
    assert sign_in(home, "anna", "a new long password").status_code == 200


def test_a_new_link_sets_a_password_and_ends_what_was_open(home: Home) -> None:
    boss = person(home, "boss")
    made = boss.post("/v1/people", json={"login": "eve", "membership": {"role": "viewer"}}).json()
    assert not made["person"]["signs_in"]
    assert sign_in(home, "eve", "").status_code == 401  # no password is no password
    nobody = home.as_token(None)
    link = secret_of(made["link"])
    assert nobody.get(f"/v1/links/{link}").json()["login"] == "eve"
    asked = {"password": PASSWORD}
    assert nobody.post(f"/v1/links/{link}", json=asked).status_code == 200
    assert nobody.get("/v1/me").json()["actor"] == "eve"
    again = boss.patch(f"/v1/people/{made['person']['id']}", json={"new_link": True}).json()
    assert nobody.get("/v1/me").status_code == 200
    fresh = home.as_token(None)
    newer = {"password": "another long password"}
    assert fresh.post(f"/v1/links/{secret_of(again['link'])}", json=newer).status_code == 200
    assert nobody.get("/v1/me").status_code == 401
    third = boss.patch(f"/v1/people/{made['person']['id']}", json={"new_link": True}).json()
    boss.patch(f"/v1/people/{made['person']['id']}", json={"disabled": True})
    answer = home.as_token(None).post(f"/v1/links/{secret_of(third['link'])}", json=asked)
    assert answer.status_code == 404


# --- tokens ---------------------------------------------------------------------------------


def test_a_token_is_shown_once_listed_and_revoked_at_once(home: Home) -> None:
    boss = person(home, "boss")
    asked = {"name": "n8n", "scopes": ["ops:read"], "days": 30}
    made = boss.post("/v1/tokens", json=asked).json()
    client = home.as_token(made["secret"])
    assert client.get("/v1/me").json()["rights"] == ["read"]
    listed = boss.get("/v1/tokens").json()["items"]
    [mine] = [t for t in listed if t["id"] == made["token"]["id"]]
    assert made["secret"] not in str(listed)
    assert mine["made_by"] == "boss"
    assert boss.delete(f"/v1/tokens/{mine['id']}").status_code == 204
    assert client.get("/v1/me").status_code == 401
    assert {"token.new", "token.revoke"} <= set(actions(home))
    for wrong in ({"scopes": ["admin"]}, {"scopes": []}, {"name": ""}, {"scopes": ["decide"]}):
        assert boss.post("/v1/tokens", json=asked | wrong).status_code == 400, wrong


def test_when_a_token_was_used_is_kept_once_a_minute(home: Home) -> None:
    tokens, store = home.serving.accounts.tokens, home.serving.store
    made = tokens.new("default", "t", "ops:read", who=TEST)
    clock, put, posted = store.now, store.put, []

    def noted(change: Any, landed: Any = None) -> Any:
        posted.append(change.lines[0][0])
        return put(change, landed)

    store.put = noted  # type: ignore[method-assign]
    began = clock()
    for after in (0, 1, 59, 61, 62):
        store.now = lambda at=began + after * SECOND: at  # type: ignore[method-assign]
        found = tokens.of(made.secret)
        assert found is not None
        tokens.used(found)
        home.serving.accounts.log.note(TEST, "default", "flush")  # what was queued is written
        store.now = clock  # type: ignore[method-assign]
    assert posted.count("api_token_used") == 2
    used = tokens.get("default", made.token.id)
    assert used is not None
    assert used.used_at is not None


def test_an_ended_token_is_refused(home: Home) -> None:
    soon = home.serving.store.now() + 3600 * SECOND
    secret = home.token("ops:read", ends_at=soon)
    client = home.as_token(secret)
    assert client.get("/v1/me").status_code == 200
    home.serving.store.now = lambda: soon + 1  # type: ignore[method-assign]
    home.serving.tokens.forget()
    assert client.get("/v1/me").status_code == 401


# --- after a restore ------------------------------------------------------------------------


def test_after_a_restore_everybody_is_held_until_confirmed(home: Home) -> None:
    """Who was disabled, revoked or signed out in what was lost is not known (law 21)."""
    root = person(home, "root", "admin", namespace="*")
    made = root.post("/v1/tokens", json={"name": "n8n", "scopes": ["ops:read"]}).json()
    invited = root.post("/v1/people", json={"login": "eve", "membership": {"role": "viewer"}})
    home.serving.space("default").ledger.restored(home.serving.store.now() - SECOND)
    home.serving.tokens.forget()
    client = home.as_token(made["secret"])
    assert root.get("/v1/me").status_code == 401
    assert client.get("/v1/me").status_code == 401
    assert sign_in(home, "root").status_code == 401
    link = secret_of(invited.json()["link"])
    assert home.as_token(None).get(f"/v1/links/{link}").status_code == 404
    people = home.serving.accounts.people
    mine = people.by_login("root")
    assert mine is not None
    people.confirm(mine, who=TEST, granter=None)
    again = browser(home, "root")
    [held] = [p for p in again.get("/v1/people").json()["items"] if p["held"]]
    assert held["login"] == "eve"
    assert again.patch(f"/v1/people/{held['id']}", json={"confirm": True}).status_code == 200
    ident = made["token"]["id"]
    assert again.post(f"/v1/tokens/{ident}/confirm").json()["held"] is False
    assert client.get("/v1/me").status_code == 200
    assert "people.held" in actions(home)


# --- the audit ------------------------------------------------------------------------------


def test_the_audit_is_read_filtered_and_saved_as_a_file_without_formulas(home: Home) -> None:
    boss = person(home, "boss")
    name = "=HYPERLINK(1)"
    boss.post("/v1/tokens", json={"name": name, "scopes": ["ops:read"]})
    boss.post("/v1/people", json={"login": "eve", "membership": {"role": "viewer"}})
    lines = boss.get("/v1/audit", params={"did": "token.new", "actor": "boss"}).json()["items"]
    [line] = lines
    assert line["via"].startswith("session:")
    assert (line["role"], line["after"]) == ("admin", f"{name}: ops:read")
    first = boss.get("/v1/audit", params={"limit": 1}).json()
    rest = boss.get("/v1/audit", params={"after": first["next"]}).json()["items"]
    assert first["items"][0]["id"] not in {one["id"] for one in rest}
    file = boss.get("/v1/audit.csv")
    assert file.headers["content-type"] == "text/csv; charset=utf-8"
    assert file.content.startswith(b"\xef\xbb\xbf")
    assert ",'=HYPERLINK(1)" in file.text
    assert ",=HYPERLINK" not in file.text
    assert boss.get("/v1/audit", params={"everywhere": True}).status_code == 403
    assert boss.get("/v1/audit", params={"since": "2026-01-01T00:00:00"}).status_code == 400


def test_a_change_and_its_line_of_the_audit_are_one(home: Home) -> None:
    """What is refused leaves no line that says it was done."""
    account(home, "root", "admin", namespace="*")
    people = home.serving.accounts.people
    root = people.by_login("root")
    assert root is not None
    before = actions(home)
    with pytest.raises(Refused):
        people.disable(root, who=TEST, granter=None)
    with pytest.raises(NotAllowed):
        people.disable(root, who=TEST, granter=())
    assert actions(home) == before


def test_a_clock_of_its_own_is_used(home: Home) -> None:
    """Ids and times come from the clock and the store, so that tests can set them."""
    clock = FakeClock()
    made = Accounts(home.serving.store, clock).new_token("default", "t", "ops:read", by="t")
    assert len(made.token.id) == 10
    assert home.as_token(None).get("/v1/me", headers=OWN_PAGE).status_code == 401


# --- the other database ---------------------------------------------------------------------


def test_all_of_it_on_postgresql(postgres_database: str) -> None:
    """The same statements, one after the other: links, sessions, rights, tokens, a restore, an
    erasure, the audit."""
    store = open_store(postgres_database)
    found = Accounts(store, passwords=Passwords(memory=64, passes=1))
    first = found.links.first()
    assert first is not None
    opened = found.links.redeem_first(first.link, "root", "", PASSWORD, who=TEST)
    with pytest.raises(Refused):
        found.links.redeem_first(first.link, "eve", "", PASSWORD, who=TEST)
    seen = found.sessions.of(opened.secret)
    assert seen is not None
    granter = found.people.members(seen.account)
    member = Member(account="", namespace="acme", role="operator", approves=1)
    anna = found.people.add("anna", "", [member], who=TEST, granter=granter)
    link = found.links.sign_in(anna, who=TEST).link
    mine = found.links.redeem_sign_in(link, anna, PASSWORD, who=TEST)
    assert [p.account.login for p in found.people.list("acme")] == ["root", "anna"]
    found.people.grant(anna, Member(account=anna.id, namespace="acme", role="admin"), who=TEST,
                       granter=granter)  # fmt: skip
    for _ in range(3):
        found.sessions.open(anna, TEST)
    assert len(found.sessions.list(anna.id)) == 4
    token = found.new_token("acme", "t", "ops:read", by="x")
    used = found.token_of(token.secret)
    assert used is not None
    found.tokens.used(used)
    guest = found.links.guest("acme", "op", "d", role="r", to="x", who=TEST)
    assert found.links.list("acme", "op") == [guest.link]
    found.links.use(guest.link, TEST)
    assert found.links.of(guest.secret) is None
    root = found.people.by_login("ROOT")
    assert root is not None
    with pytest.raises(Refused):
        found.people.disable(root, who=TEST, granter=None)
    hold_everybody(store)
    assert found.sessions.of(mine.secret) is None
    assert found.token_of(token.secret) is None
    found.people.confirm(anna, who=TEST, granter=None)
    assert found.tokens.confirm("acme", token.token.id, who=TEST)
    assert found.people.check("anna", PASSWORD) is not None
    assert found.token_of(token.secret) is not None
    assert {table for table, _ in erasing.rows_of(store, "acme")} >= {"account", "member"}
    assert erasing.erase(store, "acme", who=TEST) == 0
    assert found.people.members(anna.id) == []
    assert found.token_of(token.secret) is None
    lines = found.log.find("acme", Wanted(did="namespace.erase", since=1))
    assert [line.reason for line in lines] == ["ended", "begun"]
    assert len(found.log.find(None, Wanted(actor="test"), limit=5)) == 5
    store.close()
