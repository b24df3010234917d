"""People, tokens and namespaces from the shell: added, listed, shut out, taken out, erased."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from ascertain import Ledger, open_store
from ascertain.core.books import Blob, Event, Gate, Member, Spooled, Watch
from ascertain.core.model import SECOND
from ascertain.runtime import erasing
from ascertain.runtime.accounts import Accounts
from ascertain.runtime.audit import Wanted, Who
from ascertain.store.base import Posting
from ascertain.store.records import TABLES

PASSWORD = "correct horse battery"
TEST = Who(actor="test")
MARK = "Zirkon"


@pytest.fixture
def made(cli: Any) -> Any:
    assert cli("store", "migrate").exit_code == 0
    return cli


@pytest.fixture
def accounts(made: Any) -> Iterator[Accounts]:
    with closing(open_store(str(made.store))) as store:
        yield Accounts(store)


# --- people -----------------------------------------------------------------------------------


def test_a_person_is_added_chooses_a_password_and_is_listed(made: Any, accounts: Accounts) -> None:
    assert "nobody yet" in made("user", "list").output
    told = made.json("user", "add", "Anna", "--name", "Anna A.", "--role", "admin",
                     "--everywhere", "--decides")  # fmt: skip
    assert told["login"] == "anna"
    link = accounts.links.of(told["link"].rpartition("/")[2])
    assert link is not None
    assert link.purpose == "sign_in"
    [listed] = made.json("user", "list")["people"]
    assert listed["memberships"] == {"*": "admin decides"}
    assert listed["standing"] == "no_password"
    done = made("user", "passwd", "ANNA", typed=f"{PASSWORD}\n{PASSWORD}\n")
    assert done.exit_code == 0, done.output
    assert PASSWORD not in done.output
    assert accounts.people.check("anna", PASSWORD) is not None
    assert accounts.links.of(told["link"].rpartition("/")[2]) is None
    assert "Anna A." in made("user", "list").output
    assert "登录名" in made("user", "list", "--lang", "zh").output


def test_a_password_comes_from_standard_input_and_a_weak_one_is_refused(made: Any) -> None:
    made("user", "add", "anna", "--role", "viewer")
    assert made("user", "passwd", "anna", "--stdin", typed="short\n").exit_code == 2
    assert made("user", "passwd", "anna", "--stdin", typed=f"{PASSWORD}\n").exit_code == 0
    assert made("user", "passwd", "nobody", "--stdin", typed="x").exit_code == 2


def test_a_person_is_given_rights_taken_out_disabled_and_let_in_again(
    made: Any, accounts: Accounts
) -> None:
    made("user", "add", "root", "--role", "admin", "--everywhere")
    made("user", "add", "anna", "--role", "viewer", "--namespace", "acme")
    made("user", "passwd", "anna", "--stdin", typed=f"{PASSWORD}\n")
    assert made("user", "grant", "anna", "--role", "operator", "--approves",
                "--namespace", "acme").exit_code == 0  # fmt: skip
    anna = accounts.people.by_login("anna")
    assert anna is not None
    assert accounts.people.members(anna.id) == [
        Member(account=anna.id, namespace="acme", role="operator", approves=1)
    ]
    opened = accounts.sessions.open(anna, TEST)
    assert made("user", "disable", "anna", "--why", "left").exit_code == 0
    assert accounts.sessions.of(opened.secret) is None
    assert accounts.people.check("anna", PASSWORD) is None
    assert made("user", "enable", "anna").exit_code == 0
    assert accounts.people.check("anna", PASSWORD) is not None
    assert made("user", "remove", "anna", "--namespace", "acme").exit_code == 0
    assert made("user", "remove", "anna", "--namespace", "acme").exit_code == 2
    lines = accounts.log.find(None, Wanted(subject=f"account:{anna.id}"))
    assert {"person.disable", "member.set", "member.end"} <= {line.did for line in lines}
    assert {line.actor.partition(":")[0] for line in lines} == {"cli"}
    [why] = [line.reason for line in lines if line.did == "person.disable"]
    assert why == "left"


def test_the_last_one_who_administers_everything_stays(made: Any) -> None:
    made("user", "add", "root", "--role", "admin", "--everywhere")
    for words in (("disable", "root"), ("remove", "root", "--everywhere"),
                  ("grant", "root", "--role", "viewer", "--everywhere")):  # fmt: skip
        done = made("user", *words)
        assert (done.exit_code, "last one" in done.stderr) == (4, True), done.output


@pytest.mark.parametrize(
    "words",
    [("add", "a b", "--role", "viewer"), ("add", "anna"), ("add", "anna", "--role", "king"),
     ("grant", "nobody", "--role", "viewer"), ("confirm",), ("confirm", "x", "--all"),
     ("add", "token:x", "--role", "viewer")],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(made: Any, words: tuple[str, ...]) -> None:
    for lang in ("en", "zh"):
        assert made("user", *words, "--lang", lang).exit_code == 2


def test_a_taken_login_is_refused(made: Any) -> None:
    made("user", "add", "anna", "--role", "viewer")
    assert made("user", "add", "ANNA", "--role", "admin").exit_code == 4


def test_the_link_leads_to_the_address_of_the_configuration(made: Any, monkeypatch: Any) -> None:
    (made.folder / "ascertain.toml").write_text('[server]\npublic_url = "https://a.example"\n')
    link = made.json("user", "add", "anna", "--role", "viewer")["link"]
    assert link.startswith("https://a.example/link/asl_")
    assert made.json("user", "link", "anna")["link"] != link


# --- tokens -----------------------------------------------------------------------------------


def test_a_token_is_made_listed_and_revoked(made: Any, accounts: Accounts) -> None:
    told = made.json("token", "new", "n8n", "--scopes", "ops:read work", "--days", "30",
                     "--namespace", "acme")  # fmt: skip
    found = accounts.token_of(told["secret"])
    assert found is not None
    assert (found.namespace, found.scopes) == ("acme", "ops:read work")
    assert found.ends_at is not None
    listed = made("token", "list", "--namespace", "acme").output
    assert "n8n" in listed
    assert told["secret"] not in listed
    assert found.hash not in listed
    assert "no tokens" in made("token", "list").output
    assert made("token", "revoke", told["id"]).exit_code == 2  # of another namespace
    assert made("token", "revoke", told["id"], "--namespace", "acme").exit_code == 0
    assert accounts.token_of(told["secret"]) is None
    assert made("token", "new", "x", "--scopes", "decide").exit_code == 2


def test_after_a_restore_people_and_tokens_are_confirmed_by_name(
    made: Any, accounts: Accounts
) -> None:
    made("user", "add", "root", "--role", "admin", "--everywhere")
    made("user", "passwd", "root", "--stdin", typed=f"{PASSWORD}\n")
    token = made.json("token", "new", "n8n")
    assert made("store", "restored", "--gap-from", "2026-01-01T00:00:00Z", "--yes").exit_code == 0
    assert accounts.people.check("root", PASSWORD) is None
    assert accounts.token_of(token["secret"]) is None
    assert "held since a restore" in made("user", "list").output
    assert "恢复后待确认" in made("token", "list", "--lang", "zh").output
    assert made.json("user", "confirm", "root")["confirmed"] == ["root"]
    assert made.json("token", "confirm", "--all")["confirmed"] == [token["id"]]
    assert made.json("user", "confirm", "--all")["confirmed"] == []
    assert accounts.people.check("root", PASSWORD) is not None
    assert accounts.token_of(token["secret"]) is not None


# --- namespaces -------------------------------------------------------------------------------


def fill(accounts: Accounts, namespace: str, mark: str) -> None:
    """One of everything, with a mark in all that is a client's own words."""
    store = accounts.store
    ledger = Ledger(store, namespace=namespace)

    @ledger.action("do", key="{order}", owner="anna")
    def act(call: Any, *, order: str, note: str) -> Any:
        from ascertain import Done

        return Done(ref=f"ref-{namespace}", result={"said": mark}, evidence={"seen": mark})

    act.using(title=mark)(order="a", note=mark)
    person = accounts.people.add(
        f"{namespace}-person", mark,
        [Member(account="", namespace=namespace, role="admin")], who=TEST, granter=None,
    )  # fmt: skip
    accounts.people.set_password(person, PASSWORD, who=TEST)
    accounts.sessions.open(person, TEST)
    accounts.new_token(namespace, mark, "ops:read", by=mark)
    accounts.links.guest(namespace, "x", "d", role="r", to=mark, who=TEST)
    now = store.now()
    event = Event(namespace=namespace, source="s", id="e", received_at=now, state="processed",
                  headers=f'{{"x": "{mark}"}}', body=mark)  # fmt: skip
    spooled = Spooled(hash="h", namespace=namespace, action="do", key="a", body=f"b-{namespace}",
                      size=3, parts=1, made_at=now)  # fmt: skip
    store.post([Posting((
        ("event_add", event),
        ("blob_add", Blob(body=f"b-{namespace}", part=0, data=mark)),
        ("spooled_add", spooled),
        ("watch_add", Watch(operation=f"{namespace}-x", namespace=namespace, url=f"http://{mark}",
                            asked_at=now)),
        ("gate_add", Gate(namespace=namespace, target=mark, state="paused", since=now)),
    ))])  # fmt: skip


def test_a_namespace_is_exported_whole_and_without_its_neighbours(
    made: Any, accounts: Accounts
) -> None:
    fill(accounts, "acme", "Zirkon")
    fill(accounts, "beta", "Topas")
    made("user", "add", "root", "--role", "admin", "--everywhere")
    file = made.folder / "acme.jsonl"
    told = made.json("namespace", "export", "acme", str(file))
    text = file.read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    assert told["rows"] == len(rows)
    found = {row["table"] for row in rows}
    assert {"operation", "settled", "attempt", "evidence", "reference", "event", "blob", "spooled",
            "account", "member", "api_token", "audit"} <= found  # fmt: skip
    assert "Topas" not in text
    assert "beta" not in text
    assert "root" not in {row["row"].get("login") for row in rows}
    assert file.stat().st_mode & 0o077 == 0
    assert made("namespace", "export", "acme", str(file)).exit_code == 4
    assert made("namespace", "export", "acme", str(file), "--force").exit_code == 0


@pytest.mark.parametrize(
    "words",
    [("namespace", "export", "acme", "FILE"), ("store", "export", "FILE", "--namespace", "acme"),
     ("store", "export", "FILE", "--all-namespaces")],
)  # fmt: skip
def test_no_export_holds_what_is_there_to_be_compared_with(
    made: Any, accounts: Accounts, words: tuple[str, ...]
) -> None:
    """Hashes of passwords, sessions, tokens and links, and the secret behind the target keys."""
    fill(accounts, "acme", MARK)
    secrets = [
        str(row[name])
        for table, row in accounts.store.rows()
        for name in ("password", "hash")
        if table in ("account", "session", "api_token", "link") and row.get(name)
    ]
    assert len(secrets) == 4
    file = made.folder / "out.jsonl"
    done = made(*(str(file) if word == "FILE" else word for word in words))
    assert done.exit_code == 0, done.output
    text = file.read_text("utf-8")
    assert MARK in text
    for secret in [*secrets, str(accounts.store.meta("secret"))]:
        assert secret not in text


def test_a_namespace_is_erased_but_for_its_tombstones(made: Any, accounts: Accounts) -> None:
    fill(accounts, "acme", "Zirkon")
    fill(accounts, "beta", "Topas")
    beta = [row for row in accounts.store.rows() if "beta" in str(row) or "Topas" in str(row)]
    assert made("namespace", "erase", "acme", typed="beta\n").exit_code == 4
    assert "Zirkon" in str(list(accounts.store.rows()))
    done = made("namespace", "erase", "acme", typed="acme\n")
    assert done.exit_code == 0, done.output
    rows = list(accounts.store.rows())
    left = {table for table, row in rows if "Zirkon" in str(row)}
    # Bodies that no key names are dropped by their own chore; the audit says what was done.
    assert left <= {"blob", "audit"}
    gone = accounts.people.by_login("acme-person")
    assert gone is not None
    assert (gone.name, gone.password, gone.disabled_at is None) == ("", "", False)
    assert accounts.sessions.list(gone.id) == []
    assert accounts.people.check("acme-person", PASSWORD) is None
    assert accounts.people.check("beta-person", PASSWORD) is not None
    [operation] = [row for table, row in rows
                   if table == "operation" and row["namespace"] == "acme"]  # fmt: skip
    assert (operation["key"], operation["input"], operation["title"]) == ("a", None, "")
    assert operation["fingerprint"]
    assert ("ref-acme", operation["id"]) in {
        (row["reference"], row["operation"]) for table, row in rows if table == "reference"
    }
    [settled] = [row for table, row in rows
                 if table == "settled" and row["namespace"] == "acme"]  # fmt: skip
    assert (settled["state"], settled["result"]) == ("done", None)
    for gone in ("member", "api_token", "link", "gate", "watch", "spooled"):
        assert not [row for table, row in rows if table == gone and row["namespace"] == "acme"]
    assert [row for row in rows if "beta" in str(row) or "Topas" in str(row)] == beta
    again = made("namespace", "erase", "acme", "--confirm", "acme")
    assert again.exit_code == 0
    assert [line.reason for line in accounts.log.find("acme", Wanted(did="namespace.erase"))] == [
        "ended", "begun", "ended", "begun",
    ]  # fmt: skip


def test_the_same_key_acts_no_second_time_after_an_erasure(made: Any, accounts: Accounts) -> None:
    fill(accounts, "acme", MARK)
    made("namespace", "erase", "acme", "--confirm", "acme")
    ledger, done = Ledger(accounts.store, namespace="acme"), []

    @ledger.action("do", key="{order}", owner="anna")
    def act(call: Any, *, order: str, note: str) -> None:
        done.append(order)

    receipt = act(order="a", note=MARK)
    assert (receipt.reused, receipt.ref, done) == (True, "ref-acme", [])


@pytest.mark.parametrize("kind", ["operation", "review", "event", "failed", "watch", "bulk"])
def test_nothing_unresolved_is_ever_erased(made: Any, accounts: Accounts, kind: str) -> None:
    """Law 19: it is refused, and what is not resolved is named."""
    from ascertain.core.books import Bulk

    fill(accounts, "acme", MARK)
    store = accounts.store
    now = store.now()
    if kind in ("operation", "review"):
        ledger = Ledger(store, namespace="acme")

        @ledger.action("later", key="{order}", owner="anna", approval=kind == "operation")
        def act(call: Any, *, order: str) -> Any:
            raise TimeoutError

        act.submit(order="open-one")
        ledger.recover()
    elif kind in ("event", "failed"):
        state, due = ("received", now) if kind == "event" else ("failed", None)
        event = Event(namespace="acme", source="s", id="open-one", received_at=now, state=state,
                      due_at=due)  # fmt: skip
        store.post([Posting((("event_add", event),))])
    elif kind == "watch":
        watch = Watch(operation="open-one", namespace="acme", url="x", asked_at=now, due_at=now)
        store.post([Posting((("watch_add", watch),))])
    else:
        bulk = Bulk(id="open-one", namespace="acme", made_at=now, by="x", did="leave",
                    state="running")  # fmt: skip
        store.post([Posting((("bulk_add", bulk),))])
    before = list(store.rows())
    done = made("namespace", "erase", "acme", "--confirm", "acme")
    assert done.exit_code == 3
    assert "open-one" in done.stderr
    told = made.json("namespace", "erase", "acme", "--confirm", "acme", code=3)
    assert told["unresolved"]
    assert list(store.rows()) == before


def test_an_erasure_that_was_interrupted_goes_on(
    made: Any, accounts: Accounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(accounts, "acme", MARK)
    ledger = Ledger(accounts.store, namespace="acme")

    @ledger.action("many", key="{order}", owner="anna")
    def act(call: Any, *, order: str) -> Any:
        from ascertain import Done

        return Done(ref=order)

    for number in range(5):
        act(order=f"o-{number}")
    monkeypatch.setattr(erasing, "AT_ONCE", 2)

    def dies(count: int) -> None:
        if count >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        erasing.erase(accounts.store, "acme", who=TEST, told=dies)
    assert erasing.erase(accounts.store, "acme", who=TEST) == 2
    assert not list(accounts.store.ask(erasing._Due, "erase_due", namespace="acme", after="",
                                       limit=10))  # fmt: skip


def test_every_table_of_a_namespace_is_erased_or_kept_on_purpose() -> None:
    """A new table has to be thought of: in erasing.py, and in docs/security.md."""
    with closing(open_store(":memory:")) as store:
        named = {
            table for table in TABLES
            if store._write_connection().ask(
                "select 1 from pragma_table_info(?) where name = 'namespace'", (table,)
            )
        }  # fmt: skip
    removed = {"event", "approval", "member", "api_token", "link", "gate", "watch", "spooled",
               "bulk"}  # fmt: skip
    assert named - removed - set(erasing.KEPT) == set()
    assert not removed & set(erasing.KEPT)


def test_a_day_is_a_day() -> None:
    from ascertain.cli import token

    assert token.DAY == 86_400 * SECOND
