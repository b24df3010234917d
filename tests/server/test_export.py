"""Spans go where OTEL_EXPORTER_OTLP_ENDPOINT says, and tell no path, query, input or credential."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

from ascertain import open_store
from server.processes import client, get_ready, process, until
from server.target import Shop
from server.test_up import written

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLERS = f"00-{TRACE}-b7ad6b7169203331-01"
NOTE = "a secret wish"
SECRETS = ("anna@example.com", "asl_0123456789", NOTE, "asc_", "url.")


class Collector(ThreadingHTTPServer):
    """Takes what an exporter sends by OTLP over HTTP, as a collector would."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.taken: list[ResourceSpans] = []

    def spans(self) -> list[Span]:
        return [s for r in self.taken for scope in r.scope_spans for s in scope.spans]

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans() if span.name == name]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        assert self.path == "/v1/traces"
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.extend(ExportTraceServiceRequest.FromString(body).resource_spans)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def collecting() -> Iterator[Collector]:
    with Collector() as collector:
        thread = threading.Thread(target=collector.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield collector
        finally:
            collector.shutdown()
            thread.join()


def facts(span: Span) -> dict[str, object]:
    return {a.key: a.value.string_value or a.value.int_value for a in span.attributes}


@pytest.mark.timeout(60)
def test_requests_attempts_and_look_ups_arrive_once_and_tell_no_secret(
    tmp_path: Path, target: Shop
) -> None:
    written(tmp_path, target)
    open_store(str(tmp_path / "ascertain.db")).close()
    target.fates["A"] = ["drop"]  # made, and the answer is lost
    target.fates["B"] = ["refuse"] * 100
    with collecting() as collector:
        address = f"http://127.0.0.1:{collector.server_port}"
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_SERVICE_NAME": "server"}
        words = ("--config", "ascertain.toml", "--json")
        with process(tmp_path, "serve", *words, "--port", "0", env=env) as server:
            server.listening()
            get_ready(server.url)
            with client(tmp_path, server.url) as caller:
                headers = {"traceparent": CALLERS}
                asked = {"action": "searched", "input": {"name": "A"}, "wait": 20}
                caller.post("/v1/operations", json=asked, headers=headers)
                asked = {"action": "order", "input": {"name": "B", "note": NOTE}, "wait": 0}
                caller.post("/v1/operations", json=asked)
                caller.get("/v1/operations?q=anna@example.com")
                caller.get("/link/asl_0123456789")
            server.send()
            assert server.ended() == 0, server.log()
        asked_so_far = len(target.asked)
        with process(tmp_path, "work", *words, env=env | {"OTEL_SERVICE_NAME": "worker"}) as worker:
            until(lambda: len(target.asked) > asked_so_far, 30)
            worker.send()
            assert worker.ended() == 0, worker.log()
    # What had ended before its process did has arrived.
    [request] = [s for s in collector.named("POST /v1/operations") if s.trace_id.hex() == TRACE]
    [attempt] = collector.named("execute searched")
    assert attempt.trace_id.hex() == TRACE
    assert attempt.parent_span_id == request.span_id
    assert facts(attempt)["ascertain.found"] == "unknown"
    assert facts(request)["http.route"] == "/v1/operations"
    assert facts(collector.named("look_up searched")[-1])["ascertain.found"] == "done"
    names = {span.name.split()[0] for span in collector.spans()}
    assert names == {"GET", "POST", "execute", "look_up"}
    services = {a.value.string_value: r for r in collector.taken for a in r.resource.attributes}
    assert {"server", "worker"} <= set(services)
    assert [s for s in SECRETS if s in str(collector.taken)] == []
