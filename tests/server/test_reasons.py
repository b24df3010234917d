"""The answer about what was not done carries the reason that the last attempt gave, in short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from server.house import SHOP, Home, house
from server.own import OWN
from server.target import Shop


def detail(answer: Any) -> str:
    return str(answer.json()["detail"])


@pytest.mark.parametrize(
    ("fate", "status", "said"), [("bad", 422, "HTTP 422"), ("refuse", 409, "HTTP 500")]
)
def test_a_refusal_of_the_target_is_named(
    home: Home, target: Shop, fate: str, status: int, said: str
) -> None:
    target.fates["A"] = [fate] * 50
    asked = {"action": "order", "input": {"name": "A"}, "wait": 0.05}
    first = home.client.post("/v1/operations", json=asked)
    assert first.status_code == status
    assert detail(first).startswith("order A: ")
    assert detail(first).endswith(f" Last attempt: {said}.")
    batch = home.client.post("/v1/operations/batch", json={"items": [asked], "wait": 0.05})
    [one] = batch.json()["items"]
    assert one["problem"]["detail"].endswith(f" Last attempt: {said}.")


def test_a_missing_credential_is_named(tmp_path: Path, target: Shop) -> None:
    config = SHOP.format(target=target.url)
    config = config.replace(
        "[targets.shop]", '[targets.shop]\nauth.bearer = { env = "SHOP_TOKEN" }'
    )
    with house(tmp_path, config) as home:
        answer = home.client.post(
            "/v1/operations", json={"action": "order", "input": {"name": "A"}}
        )
    assert answer.status_code == 424
    assert "SHOP_TOKEN is not set; nothing was sent" in detail(answer)


def test_the_reason_of_own_code_is_told_without_credentials(tmp_path: Path, target: Shop) -> None:
    with house(tmp_path, OWN.format(target=target.url, lease="30s")) as home:
        claim = {"action": "own", "input": {"name": "A"}}
        made = home.client.post("/v1/work/claim", json=claim).json()
        said = "sku 17\nis gone; Authorization: Bearer zirkon-bearer-000000000001"
        result = {"finding": "not_done", "kind": "invalid", "reason": said}
        home.client.post(
            f"/v1/work/{made['attempt']}/finding",
            json={"operation": made["operation"]["id"], "report": "1", "result": result},
        )
        answer = home.client.post("/v1/work/claim", json=claim)
    assert answer.status_code == 422
    assert " Last attempt: sku 17 is gone; " in detail(answer)
    assert "zirkon" not in answer.text


def test_what_a_person_has_stopped_is_not_told_as_the_last_attempts_word(
    home: Home, target: Shop
) -> None:
    target.fates["A"] = ["bad"]
    asked = {"action": "order", "input": {"name": "A"}}
    ident = home.client.post("/v1/operations", json=asked).json()["operation"]
    space = home.serving.space("default")
    assert space.ledger.why(ident) == "HTTP 422"
    space.ledger.decide(ident, "leave", by="anna", why="not needed any more")
    assert space.ledger.why(ident) == ""
