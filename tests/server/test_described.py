"""The OpenAPI document against the running server: no 5xx, no answer that is not described.

EXAMPLES=n tries n requests per route; the default keeps `make test` short.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import hypothesis
import pytest
import schemathesis
from schemathesis.specs.openapi.checks import positive_data_acceptance

from server.house import SHOP, house
from server.target import Shop

EXAMPLES = int(os.environ.get("EXAMPLES", "3"))


@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_every_answer_is_described_and_none_is_a_crash(tmp_path: Path, target: Shop) -> None:
    with house(tmp_path, SHOP.format(target=target.url)) as home:
        document = home.client.get("/v1/openapi.json").json()
        schema = schemathesis.openapi.from_dict(document)
        met: Counter[int] = Counter()
        for found in schema.get_all_operations():
            operation = found.ok()
            tried = _tried(operation, home.url, home.secret, met)
            tried()
    assert met.keys() & {200, 404, 422}
    assert not [status for status in met if status >= 500 and status != 503]


def _tried(operation, url, secret, met):
    @hypothesis.given(case=operation.as_strategy())
    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    def tried(case) -> None:
        answer = case.call(base_url=url, headers={"Authorization": f"Bearer {secret}"})
        met[answer.status_code] += 1
        # What is as described may still be refused for what it means, e.g. two different keys.
        case.validate_response(answer, excluded_checks=[positive_data_acceptance])

    return tried
