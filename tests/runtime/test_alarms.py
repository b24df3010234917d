"""Law 20: what nobody carries on is seen by somebody, however it came to stand still."""

from pathlib import Path

from ascertain import State
from ascertain.core.model import Change
from ascertain.runtime.alarms import Times
from shop import Shop

DAY = 25 * 3600


def test_an_action_that_no_worker_knows_raises_an_alarm(tmp_path: Path) -> None:
    with Shop(tmp_path) as shop:
        r = shop.order.enqueue(order=1)
        watcher = shop.another()  # a process that does not import the action
        shop.clock.advance(DAY)
        assert watcher.recover().worked == 0
        [alarm] = watcher.alarms()
        assert (alarm.kind, alarm.operation) == ("overdue", r.id)


def test_what_is_due_later_raises_none(tmp_path: Path) -> None:
    with Shop(tmp_path) as shop:
        due = (shop.clock.wall() / 1e6) + 3 * DAY
        shop.order.using(due=due).enqueue(order=1)
        shop.clock.advance(DAY)
        assert shop.ledger.recover().alarms == []


def test_code_that_fails_before_anything_is_sent_is_said_and_raises_an_alarm(
    tmp_path: Path,
) -> None:
    with Shop(tmp_path) as shop:
        broken = [True]

        def prepare(_prepared: object, *, order: int) -> object:
            if broken:
                raise RuntimeError("template file is missing")
            return order

        action = shop.ledger.action("page.put", key="{order}", owner="anna", prepare=prepare)
        put = action(lambda call, *, order: None)
        r = put.enqueue(order=1)
        [told] = shop.ledger.recover().errors
        assert "template file is missing" in told
        stands = shop.ledger.get(r)
        assert (stands.state, stands.attempts) == (State.PENDING, 0)
        assert "own code fails" in stands.next_step["en"]
        shop.clock.advance(DAY)
        assert [a.kind for a in shop.ledger.recover().alarms] == ["stumbled"]


def test_it_goes_on_once_its_code_is_mended(tmp_path: Path) -> None:
    with Shop(tmp_path) as shop:
        asked: list[int] = []

        def key(*, order: int) -> str:
            return f"order-{order}"

        def code(call: object, *, order: int) -> object:
            from ascertain import Done

            asked.append(order)
            return Done(ref=f"r-{order}")

        def prepare(_prepared: object, *, order: int) -> object:
            from ascertain import Request

            if not mended:
                raise RuntimeError("not yet")
            return Request(method="POST", url="mem:x", body=str(order).encode())

        mended: list[bool] = []
        put = shop.ledger.action("page.put", key=key, owner="anna", prepare=prepare)(code)
        r = put.enqueue(order=1)
        shop.ledger.recover()
        mended.append(True)
        shop.clock.advance(61)
        shop.ledger.recover()
        assert (shop.ledger.get(r).state, asked) == (State.DONE, [1])


def test_the_oldest_outcome_that_nobody_knows_is_an_alarm_by_its_age(tmp_path: Path) -> None:
    with Shop(tmp_path) as shop:
        engine = shop.ledger.engine
        first = review(shop)
        shop.clock.advance(3600)
        review(shop, "later")
        assert shop.ledger.alarms() == []
        engine.backlog = 3600 * 1_000_000
        [alarm] = shop.ledger.alarms()
        assert (alarm.kind, alarm.operation) == ("backlog", first)


def review(shop: Shop, name: str = "a") -> str:
    """An operation whose outcome only a person can tell."""
    from ascertain import Unknown

    if "opaque" not in shop.ledger.actions:

        @shop.ledger.action("opaque", key="{name}", owner="anna", sends="own")
        def opaque(call: object, *, name: str) -> Unknown:
            return Unknown(reason="no answer")

    found: str = shop.ledger.actions["opaque"].submit(name=name).id
    return found


def test_a_review_that_nobody_takes_and_one_that_is_snoozed(tmp_path: Path) -> None:
    from msgspec.structs import replace

    with Shop(tmp_path) as shop:
        engine, store = shop.ledger.engine, shop.ledger.store
        minute = 60 * 1_000_000
        ident = review(shop)
        engine.times = {"opaque": Times(respond=10 * minute, decide=60 * minute)}

        def kinds() -> list[str]:
            return [a.kind for a in shop.ledger.alarms()]

        def change(**fields: object) -> None:
            [open_] = store.reviews("default", ident)
            status = store.snapshots([ident])[ident].status
            changed = replace(status, stamp=engine.clock.token())
            new = Change(status=changed, guard=status.stamp, reviews=(replace(open_, **fields),))
            assert store.write([new])[0].applied

        assert kinds() == []
        shop.clock.advance(11 * 60)
        assert kinds() == ["response"]
        change(taken_by="ben")
        assert kinds() == []
        shop.clock.advance(60 * 60)
        assert kinds() == ["review"]
        assert shop.ledger.alarms()[0].owner == "ben"
        change(snoozed_until=shop.clock.wall() + minute)
        assert kinds() == []
        shop.clock.advance(61)
        assert kinds() == ["review"]
        change(road="duplicate")
        assert kinds() == ["duplicate"]
