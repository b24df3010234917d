"""One trace from a caller through this server to the target: W3C Trace Context by OpenTelemetry.

Only its API is needed: a caller's `traceparent` is then handed on to the target. With the extra
`otel` and the standard environment variables, spans are exported too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ascertain.runtime.telemetry import Facts, telemetry

ASKS_FOR_EXPORT = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
CARRIED = ("traceparent", "tracestate")  # never baggage: a caller's own words go to no target


class Tracing:
    """Makes spans with whatever provider this process has."""

    def __init__(self, provider: Any = None) -> None:
        """Use a provider, else the global one."""
        self._tracer = trace.get_tracer("ascertain", tracer_provider=provider)
        self._carried = TraceContextTextMapPropagator()

    @contextmanager
    def request(self, method: str, headers: Iterable[tuple[bytes, bytes]]) -> Iterator[Span]:
        """Begin the span of a request, within its caller's trace if it names one."""
        given = {n: v.decode("latin-1") for n, v in _names(headers) if n in CARRIED}
        parent = self._carried.extract(given)
        with self._tracer.start_as_current_span(method, parent, SpanKind.SERVER) as span:
            yield span

    def answered(self, span: Span, method: str, route: str, status: int) -> None:
        """Note how a request was answered."""
        span.update_name(f"{method} {route}".rstrip())
        span.set_attributes({
            "http.request.method": method, "http.route": route,
            "http.response.status_code": status,
        })  # fmt: skip

    @contextmanager
    def span(self, name: str, facts: Facts) -> Iterator[Callable[[Facts], None]]:
        """Begin a span within the current one; what is yielded adds facts to it."""
        with self._tracer.start_as_current_span(
            name, kind=SpanKind.CLIENT, attributes=_attributes(facts)
        ) as span:
            yield lambda more: span.set_attributes(_attributes(more))

    def headers(self) -> dict[str, str]:
        """Return the headers that name the current span to a target."""
        found: dict[str, str] = {}
        self._carried.inject(found)
        return found


def trace_from_now(environ: Mapping[str, str] = os.environ) -> None:
    """Trace in this process; export where the environment says to and the SDK is installed."""
    if any(environ.get(name) for name in ASKS_FOR_EXPORT):
        _export()
    telemetry.tracer = Tracing()


def _export() -> None:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        telemetry.tell("tracing.no_sdk", missing="pip install 'ascertain[otel]'")
        return
    provider = TracerProvider()  # its resource and sampler come from OTEL_* as well
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


def _names(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[str, bytes]]:
    return ((name.decode("latin-1").lower(), value) for name, value in headers)


def _attributes(facts: Facts) -> dict[str, Any]:
    return {f"ascertain.{n}": v for n, v in facts.items() if v is not None}
