"""What it cost: lines in the commit of their finding, exact sums, and cost per accepted asset."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ascertain.core import costs
from ascertain.core.books import Cost
from ascertain.core.costs import Sum, plain, report
from ascertain.runtime.recovery import ALARMS_EVERY
from server.house import SHOP, Home, house
from server.target import Shop

PRICED = (
    SHOP
    + """
[prices.order]
amount = "0.10"
currency = "EUR"
payer = "acme"
cause = "generation"

[prices.searched]
amount = "2"
currency = "CNY"
look_up = "0.05"

[costs]
rate = "60"
currency = "EUR"
"""
)


@pytest.fixture
def priced(tmp_path: Path, target: Shop) -> Iterator[Home]:
    with house(tmp_path, PRICED.format(target=target.url)) as running:
        yield running


def lines(home: Home, **asked: Any) -> list[dict[str, Any]]:
    answer = home.client.get("/v1/costs", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


def of(home: Home, **asked: Any) -> dict[str, Any]:
    answer = home.client.get("/v1/costs/report", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def submit(home: Home, action: str, name: str) -> Any:
    return home.client.post(
        "/v1/operations", json={"action": action, "input": {"name": name}, "wait": 5}
    )


def entered(home: Home, *given: dict[str, Any], code: int = 200) -> Any:
    answer = home.client.post("/v1/costs", json={"lines": list(given)})
    assert answer.status_code == code, answer.text
    return answer.json()


PLATFORM = {"key": "n8n-2026-11", "kind": "normal", "cause": "platform", "payer": "acme",
            "price": {"amount": "20.00", "currency": "EUR"}}  # fmt: skip


def at(amount: str, currency: str = "EUR") -> dict[str, Any]:
    return {"price": {"amount": amount, "currency": currency}}


def test_an_attempt_is_charged_once_in_the_commit_of_its_finding(priced: Home) -> None:
    for _ in range(2):  # the second is answered from the ledger and costs nothing
        assert submit(priced, "order", "A").status_code == 200
    [line] = lines(priced)
    assert (line["kind"], line["cause"], line["amount"], line["currency"], line["payer"]) == (
        "normal", "generation", "0.10", "EUR", "acme",
    )  # fmt: skip
    assert line["evidence"].endswith(": done")
    assert not line["doubtful"]


def test_a_refusal_is_charged_and_so_is_the_repeat(priced: Home, target: Shop) -> None:
    target.fates["A"] = ["busy"]  # sent, and refused
    submit(priced, "order", "A")
    assert [line["kind"] for line in lines(priced)] == ["normal", "repeat"]


def test_what_was_never_sent_costs_nothing(tmp_path: Path) -> None:
    with house(tmp_path, PRICED.format(target="http://127.0.0.1:9")) as home:  # nobody listens
        answer = submit(home, "order", "A")
        assert answer.json()["code"] == "gave_up", answer.text  # it was tried, and more than once
        assert lines(home) == []


def test_a_look_up_is_recovery_and_an_unknown_outcome_is_doubtful(
    priced: Home, target: Shop
) -> None:
    target.fates["A"] = ["drop"]  # saved, then cut off
    submit(priced, "searched", "A")
    space = priced.serving.space("default")
    for _ in range(100):
        if space.ledger.find(key="A")[0].done:
            break
        space.ledger.sweep(alarms_every=ALARMS_EVERY)
    found = lines(priced)
    assert target.made() == {"A": 1}
    assert {line["kind"] for line in found} == {"normal", "recovery"}
    assert [line["doubtful"] for line in found if line["kind"] == "normal"] == [True]
    assert of(priced)["total"]["doubtful"] == 1


def test_an_attempt_that_never_reported_is_a_line_without_a_price_until_it_does(
    tmp_path: Path,
) -> None:
    from ascertain.core.model import Done
    from ascertain.core.reconcile import Do
    from shop import Shop as Local

    with Local(tmp_path) as shop:
        engine = shop.ledger.engine
        engine.prices = {"shop.order": costs.Price(amount="1.50", currency="EUR")}
        ticket = engine.claim(shop.ledger.case_of(shop.order.enqueue(order=1).id), Do.EXECUTE)
        shop.clock.advance(3600)
        shop.ledger.recover()

        def known() -> list[Cost]:
            return engine.store.ask(
                Cost, "costs_of", operation=ticket.case.operation.id, namespace="default", limit=9
            )

        [silent] = [line for line in known() if line.kind == "normal"]
        assert (silent.amount, silent.doubt) == ("", 1)
        for _ in range(2):  # reported late, and twice
            engine.finish(ticket, Done(ref="r-1"))
        [told] = [line for line in known() if line.kind == "normal"]
        assert (told.amount, told.doubt) == ("1.50", 0)


def test_what_code_reports_is_entered_as_reported_and_never_stops_it(tmp_path: Path) -> None:
    from ascertain import Done
    from shop import Shop as Local

    with Local(tmp_path) as shop:

        @shop.ledger.action("page.write", key="{name}", owner="anna", settle="durable")
        def write(call: Any, *, name: str) -> Done:
            call.cost("0.0000012345", "USD", what="generation", payer="us", asset="lamp/de")
            call.cost("a lot", "USD", what="prompt cache")
            return Done(ref=name)

        assert write(name="x").done
        found = shop.ledger.store.ask(
            Cost, "costs", namespace="default", since=0, until=2**62, after_at=-1, after_id="",
            kind="", cause="", only="", rate="", rate_currency="", limit=9,
        )  # fmt: skip
        assert [(c.amount, c.currency, c.cause, c.asset) for c in found] == [
            ("0.0000012345", "USD", "generation", "lamp/de"), ("", "", "call", ""),
        ]  # fmt: skip
        assert "'a lot'" in found[1].evidence


def test_one_bulk_call_costs_once_however_many_items_it_has(tmp_path: Path) -> None:
    from ascertain import Done
    from shop import Shop as Local

    with Local(tmp_path) as shop:

        @shop.ledger.action("page.all", key="{name}", owner="anna", batch=True)
        def write(call: Any, items: list[Any]) -> list[Done]:
            call.cost("3", "USD")
            return [Done(ref=item.key) for item in items]

        write.batch([{"name": n} for n in "abc"])
        rows = [row for table, row in shop.ledger.store.rows() if table == "cost"]
        assert [row["amount"] for row in rows] == ["3"]


def test_a_line_that_is_entered_again_is_there_once(home: Home) -> None:
    first, again = entered(home, PLATFORM), entered(home, PLATFORM)
    assert (first["items"][0]["reused"], again["items"][0]["reused"]) == (False, True)
    assert len(lines(home)) == 1
    other = entered(home, PLATFORM | at("21.00"), code=409)
    assert (other["code"], other["fields"]) == ("conflict", ["amount"])
    assert entered(home, PLATFORM | {"key": "x"}, PLATFORM | {"key": "x"}, code=409)


def test_all_lines_of_a_request_are_entered_or_none(home: Home) -> None:
    for wrong in (
        at("NaN"),
        at("1e3"),
        at("1", "euro"),
        {"minutes": "-3"},
        {"kind": "usual"},
        {"amount": "1"},
    ):
        entered(home, PLATFORM, PLATFORM | {"key": "x"} | wrong, code=422)
    assert lines(home) == []


def test_cost_per_accepted_asset_is_the_formula_with_its_parts(priced: Home) -> None:
    entered(
        priced,
        PLATFORM,
        {"key": "review-1", "kind": "recovery", "cause": "people", "minutes": "10"},
        {"key": "fix-1", "kind": "clean_up", "cause": "people", "minutes": "5.5"},
        {"key": "storage", "kind": "normal", "cause": "storage"},  # nobody knows yet
    )
    for name in ("lamp/de", "lamp/fr", "lamp/it"):
        assert submit(priced, "order", name).status_code == 200
    assert of(priced)["total"]["calculable"] is False
    for key in ("lamp/de", "lamp/fr", "lamp/de"):  # accepted again, it counts once
        assert priced.client.post(f"/v1/assets/{key}/accept", json={}).status_code == 200
    assert priced.client.post("/v1/assets/lamp%2Fit/reject", json={"note": "blurred"}).json() == {
        **priced.client.get("/v1/assets/lamp%2Fit").json(), "state": "rejected",
    }  # fmt: skip
    total = of(priced)["total"]
    assert (total["accepted_assets"], total["calculable"]) == (2, True)
    # 20.00 + 3 × 0.10 + 15.5 min × 60 / h = 35.80 over two
    assert total["money"] == [{"currency": "EUR", "total": "35.8", "per_asset": "17.9"}]
    assert {(p["cause"], p["kind"]): p["amount"] for p in total["parts"]} == {
        ("generation", "normal"): "0.3", ("people", "clean_up"): "5.5",
        ("people", "recovery"): "10", ("platform", "normal"): "20",
    }  # fmt: skip
    assert (total["unpriced"], total["doubtful"]) == (1, 0)


def test_currencies_are_never_added_and_groups_are_told_apart(priced: Home) -> None:
    submit(priced, "order", "A")
    submit(priced, "searched", "B")
    entered(priced, PLATFORM | {"asset": "A"})
    money = of(priced)["total"]["money"]
    assert [(m["currency"], m["total"], m["per_asset"]) for m in money] == [
        ("CNY", "2", None), ("EUR", "20.1", None),
    ]  # fmt: skip
    priced.client.post("/v1/assets/A/accept", json={})
    groups = {g["group"]: g for g in of(priced, by="asset")["groups"]}
    assert groups["A"]["money"] == [{"currency": "EUR", "total": "20.1", "per_asset": "20.1"}]
    assert groups["B"]["calculable"] is False
    for by, names in {
        "action": {"order", "searched", ""},
        "payer": {"acme", ""},
        "kind": {"normal"},
        "cause": {"generation", "call", "platform"},
    }.items():
        assert {g["group"] for g in of(priced, by=by)["groups"]} == names


def test_sums_are_exact_and_quotients_say_where_they_end() -> None:
    alike = Sum("", "normal", "call", "EUR", "0.1", "", 0, 3)
    huge = Sum("", "normal", "call", "EUR", "123456789012345.000000000001", "", 0, 1)
    found = report([alike, huge], 7)
    assert found.money[0].total == "123456789012345.300000000001"
    assert found.money[0].per_asset == "17636684144620.757142857143"  # it ends there
    assert plain(Fraction(1, 3)) == "0.333333"
    assert plain(Fraction(-5, 4)) == "-1.25"
    assert plain(Fraction(0)) == "0"


def test_minutes_without_a_rate_stand_beside_the_figure() -> None:
    found = report([Sum("", "recovery", "people", "", "", "12.5", 0, 2)], 1)
    assert (found.money, found.unpriced, found.unpriced_minutes) == ([], 2, "25")


def test_lists_are_paged_and_files_hold_no_formula(home: Home) -> None:
    bad = {"payer": "=1+1", **at("-3.50")}
    entered(home, *(PLATFORM | bad | {"key": f"k{n}"} for n in range(5)))
    seen: list[str] = []
    after = ""
    for _ in range(9):
        page = home.client.get("/v1/costs", params={"limit": 2, "after": after}).json()
        seen += [line["id"] for line in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert seen == sorted(set(seen))
    assert len(seen) == 5
    file = home.client.get("/v1/costs.csv")
    assert file.content.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(file.content.decode("utf-8-sig"))))
    assert {(r["amount"], r["payer"]) for r in rows} == {("-3.50", "'=1+1")}


def test_nothing_crosses_a_namespace(tmp_path: Path, target: Shop) -> None:
    config = PRICED.format(target=target.url) + '\n[server]\nnamespaces = ["default", "other"]\n'
    with house(tmp_path, config) as home:
        submit(home, "order", "A")
        entered(home, PLATFORM)
        home.client.post("/v1/assets/A/accept", json={})
        other = home.as_token(home.token(namespace="other"))
        operation = lines(home)[0]["operation"]
        assert other.get("/v1/costs").json()["items"] == []
        assert other.get("/v1/costs", params={"operation": operation}).json()["items"] == []
        assert other.get("/v1/assets/A").status_code == 404
        assert other.get("/v1/costs/report").json()["total"]["money"] == []
        made = other.post("/v1/costs", json={"lines": [PLATFORM]}).json()
        assert made["items"][0]["reused"] is False  # the same key is another's


def test_an_asset_is_judged_by_whom_the_audit_names(home: Home) -> None:
    assert home.client.post("/v1/assets/A/accept", json={}).status_code == 200
    first = home.client.get("/v1/assets/A").json()
    home.client.post("/v1/assets/A/accept", json={})
    assert home.client.get("/v1/assets/A").json() == first  # its time does not move
    home.client.post("/v1/assets/A/reject", json={"note": "colour is wrong"})
    rows = [row for table, row in home.serving.store.rows() if table == "audit"]
    mine = [
        (r["did"], r["subject"], r["before"], r["reason"]) for r in rows if "asset." in r["did"]
    ]
    assert mine == [
        ("asset.accepted", "A", "", ""),
        ("asset.rejected", "A", "accepted", "colour is wrong"),
    ]
    reader = home.as_token(home.token("ops:read"))
    assert reader.post("/v1/assets/A/accept", json={}).status_code == 403
    assert reader.post("/v1/costs", json={"lines": [PLATFORM]}).status_code == 403


@pytest.mark.parametrize("asked", [{"from": "yesterday"}, {"by": "colour"}])
def test_what_cannot_be_asked_is_a_clear_refusal(home: Home, asked: dict[str, str]) -> None:
    answer = home.client.get("/v1/costs/report", params=asked)
    assert answer.status_code == 422
    assert answer.json()["code"] == "body_invalid"


def test_a_time_is_from_until_and_in_utc_unless_it_says(home: Home) -> None:
    at_noon = {"at": "2026-03-01T12:00:00+08:00"}  # 04:00 UTC
    entered(home, PLATFORM | at_noon)
    for asked, found in (
        ({"from": "2026-03-01T04:00:00", "to": "2026-03-01T04:00:01Z"}, 1),
        ({"from": "2026-03-01T03:00:00Z", "to": "2026-03-01T12:00:00+08:00"}, 0),
        ({"from": "2026-03-02", "to": "2026-03-01"}, 0),
        ({"from": "0001-01-01", "to": "2026-04-01"}, 1),
    ):
        assert len(lines(home, **asked)) == found
