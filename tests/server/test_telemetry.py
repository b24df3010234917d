"""What is logged and traced: enough to follow one request to the target, and nothing secret."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ascertain import open_store
from ascertain.core.books import Gate
from ascertain.core.errors import StoreError, StoreUnavailable
from ascertain.runtime.telemetry import Telemetry, bound, telemetry
from ascertain.server.logs import log_from_now
from ascertain.server.tracing import Tracing
from ascertain.store.base import Posting
from server.house import Home
from server.processes import client, process
from server.target import Shop
from server.test_up import written

CALLERS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE = int("0af7651916cd43dd8448eb211c80319c", 16)
ASKED = {"action": "order", "input": {"name": "A", "note": "a secret wish"}}


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """All spans that end within the test."""
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    telemetry.tracer = Tracing(provider)
    yield kept
    telemetry.tracer = None
    provider.shutdown()


@pytest.fixture
def events() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    told: list[tuple[str, dict[str, Any]]] = []
    end = telemetry.listen(lambda event, facts: told.append((event, dict(facts))))
    yield told
    end()


def test_one_trace_leads_from_the_caller_to_the_target(
    home: Home, target: Shop, spans: InMemorySpanExporter
) -> None:
    answer = home.client.post("/v1/operations", json=ASKED, headers={"traceparent": CALLERS})
    assert answer.status_code == 200
    [request, attempt] = sorted(spans.get_finished_spans(), key=lambda span: span.start_time or 0)
    assert {span.context.trace_id for span in (request, attempt)} == {TRACE}
    assert request.name == "POST /v1/operations"
    assert attempt.name == "execute order"
    assert attempt.parent.span_id == request.context.span_id
    assert attempt.attributes["ascertain.operation"] == answer.json()["id"]
    assert attempt.attributes["ascertain.found"] == "done"
    [effect] = target.effects()
    sent = effect["headers"]["traceparent"].split("-")
    assert (int(sent[1], 16), int(sent[2], 16)) == (TRACE, attempt.context.span_id)
    assert "secret" not in str([span.to_json() for span in (request, attempt)])


def test_trace_headers_lie_outside_what_was_frozen(
    home: Home, target: Shop, spans: InMemorySpanExporter
) -> None:
    """Law 11: the stored request has none, and its replay, under another trace, is the same."""
    target.fates["A"] = ["drop"]
    home.client.post("/v1/operations", json={**ASKED, "wait": 0})
    home.client.post("/v1/operations", json=ASKED, headers={"traceparent": CALLERS})
    first, second = target.effects()
    assert first["headers"]["traceparent"] != second["headers"]["traceparent"]
    assert first["body"] == second["body"]
    [ident] = [r.id for r in home.serving.space("default").ledger.find()]
    requests = home.serving.store.requests(ident)
    assert "traceparent" not in str(requests)
    assert target.made() == {"A": 1}


def test_a_callers_trace_goes_on_even_where_nobody_exports(home: Home, target: Shop) -> None:
    telemetry.tracer = Tracing()
    try:
        home.client.post("/v1/operations", json=ASKED, headers={"traceparent": CALLERS})
        assert target.effects()[0]["headers"]["traceparent"].split("-")[1] == CALLERS.split("-")[1]
        home.client.post("/v1/operations", json={"action": "order", "input": {"name": "B"}},
                         headers={"traceparent": "nonsense", "baggage": "user=anna"})  # fmt: skip
        headers = {n.lower() for n in target.effects()[1]["headers"]}
        assert not headers & {"traceparent", "baggage"}
    finally:
        telemetry.tracer = None


def test_each_request_is_told_with_who_called_and_what_it_did(
    home: Home, events: list[tuple[str, dict[str, Any]]]
) -> None:
    answer = home.client.post("/v1/operations?x=secret", json=ASKED, headers={"X-Request-Id": "r1"})
    assert answer.headers["x-request-id"] == "r1"
    told = dict(events)
    assert set(told) >= {"attempt", "request"}
    assert told["attempt"]["request"] == told["request"]["request"] == "r1"
    assert told["request"]["namespace"] == "default"
    assert told["request"]["actor"].startswith("token:")
    assert told["request"]["route"] == "/v1/operations"
    assert told["request"]["status"] == 200
    assert told["attempt"]["operation"] == answer.json()["id"]
    assert told["attempt"]["attempt"].isdecimal()
    assert "secret" not in str(events)
    assert home.secret not in str(events)


def test_of_a_path_only_the_route_is_told(
    home: Home, events: list[tuple[str, dict[str, Any]]]
) -> None:
    home.client.get("/v1/operations/0123456789abcdef0123456789")
    home.as_token(None).get("/there/is/no/such-secret-page")
    routes = [facts["route"] for event, facts in events if event == "request"]
    assert routes == ["/v1/operations/{operation}", ""]


def test_an_id_that_is_no_id_is_replaced(home: Home) -> None:
    given = home.client.get("/healthz", headers={"X-Request-Id": "a b\tc" * 40})
    assert len(given.headers["x-request-id"]) == 16


@pytest.mark.timeout(60)
def test_the_log_of_a_process_is_lines_of_json_without_secrets(
    tmp_path: Path, target: Shop
) -> None:
    written(tmp_path, target)
    with process(tmp_path, "up", "--port", "0", "--json") as up:
        up.listening()
        with client(tmp_path, up.url) as ours:
            ours.post("/v1/operations?token=secret", json=ASKED)
            secret = ours.headers["authorization"].split()[1]
        up.send()
        assert up.ended() == 0
    lines = up.log().splitlines()
    found = [json.loads(line) for line in lines]
    assert all({"event", "level", "time"} <= set(one) for one in found)
    named = {one["event"] for one in found}
    assert {"attempt", "request", "server.stopping", "server.stopped"} <= named
    assert "secret" not in up.log()
    assert secret not in up.log()


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    out = io.StringIO()
    telemetry_before = telemetry._listeners
    log_from_now(out)
    yield out
    telemetry._listeners = telemetry_before
    root.handlers[:] = before
    root.setLevel(level)
    structlog.reset_defaults()


def test_an_exception_is_logged_by_its_kind_and_place(logged: io.StringIO) -> None:
    def fails() -> None:
        raise ValueError("Authorization: Bearer asc_verysecret")

    try:
        fails()
    except ValueError as error:
        telemetry.tell("request.broken", route="/x", exception=error)
        logging.getLogger("some.library").exception("it went wrong")
    first, second = [json.loads(line) for line in logged.getvalue().splitlines()]
    assert (first["event"], first["level"]) == ("request.broken", "error")
    assert "ValueError" in first["error"]
    assert "test_telemetry.py" in str(first["at"])
    assert second["event"] == "it went wrong"
    assert "ValueError" in second["error"]
    assert "verysecret" not in logged.getvalue()


def test_on_a_terminal_it_is_for_people() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    root = logging.getLogger()
    before, level, listeners = list(root.handlers), root.level, telemetry._listeners
    out = Terminal()
    try:
        log_from_now(out)
        telemetry.tell("server.stopped")
    finally:
        root.handlers[:] = before
        root.setLevel(level)
        telemetry._listeners = listeners
        structlog.reset_defaults()
    assert "server.stopped" in out.getvalue()
    assert not out.getvalue().startswith("{")


def test_whoever_listens_is_told_what_is_bound_and_only_while_he_listens() -> None:
    hears: list[Any] = []
    own = Telemetry()
    own.tell("before")
    end = own.listen(lambda event, facts: hears.append((event, dict(facts))))
    with bound(request="r1"):
        own.tell("one", operation="x")
    own.tell("two")
    end()
    own.tell("three")
    assert hears == [("one", {"request": "r1", "operation": "x"}), ("two", {})]


# --- the store's own words ---


def test_what_is_wrong_with_the_store_is_the_operators_to_know(
    home: Home, monkeypatch: pytest.MonkeyPatch, events: list[tuple[str, dict[str, Any]]]
) -> None:
    """Everybody who asked /readyz was told its host, its name and its user."""

    def broken(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("The store postgresql://db.internal/x: no password for user ops")

    monkeypatch.setattr(home.serving.store, "meta", broken)
    monkeypatch.setattr(home.serving.store, "snapshots", broken)
    ready = home.as_token(None).get("/readyz")
    read = home.client.get("/v1/operations/06h2krhl926q60jgu6mh2vdqc8")
    for answer in (ready, read):
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
        assert "internal" not in answer.text
        assert "ops" not in answer.json()["detail"]
    told = [facts for event, facts in events if event == "store.failed"]
    assert len(told) == 2
    assert "db.internal" in told[0]["error"]


def test_the_words_of_the_database_hold_nothing_of_a_row(postgres_database: str) -> None:
    """PostgreSQL shows the whole row that it refuses: an input would stand in the log."""
    store = open_store(postgres_database)
    gate = Gate(namespace="default", target="cms", state="paused", since=1, why="a secret wish")
    wrong = msgspec.structs.replace(gate, by=None)
    with pytest.raises(StoreError, match="null value") as caught:
        store.post([Posting((("gate_add", wrong),))])
    assert "secret" not in str(caught.value)
    store.close()
