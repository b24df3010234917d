"""Law 20: what nobody carries on is seen by somebody, however it came to stand still."""

from pathlib import Path

from ascertain import State
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
