"""What Prometheus is told: requests, the store, work under way, and the counts of SEMANTICS apart.

Labels come from the configuration and the routes alone, so there are never many of them; nothing
that a caller sends becomes a label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sized
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest

from ascertain.config.spaces import Spaces
from ascertain.core.model import SECOND
from ascertain.runtime.alarms import alarms
from ascertain.runtime.clock import Clock
from ascertain.runtime.figures import Counts, Period
from ascertain.runtime.telemetry import telemetry
from ascertain.store.base import Store

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
OTHER = "other"
ALARMS_EVERY = 30 * SECOND  # µs that alarms once looked for are good enough
COUNTS: dict[str, str] = {  # names of counts: what they are, as in SEMANTICS
    "events": "business events received",
    "deliveries": "arrivals of events by their own id",
    "operations": "operations submitted",
    "attempts": "technical tries that may have had an effect",
    "lookups": "look-ups at targets",
    "done": "effects that are confirmed",
    "accepted": "effects that a target took over and has not confirmed",
    "unknown": "operations whose outcome is not known",
    "not_done": "operations that are stopped",
    "folded": "repeats answered from the ledger",
    "duplicates": "operations whose effect was found more than once",
    "reviewed": "operations that needed a person",
}


class Measured(Protocol):
    """A process that is measured: a server, or a worker by itself."""

    @property
    def store(self) -> Store:
        """The store that it works on."""

    @property
    def spaces(self) -> Spaces:
        """The namespaces that it works for."""

    @property
    def in_flight(self) -> Sized:
        """The operations that requests have under way."""


class Meters:
    """The metrics of one process; a scrape reads the store, so it does not belong on a loop."""

    def __init__(self, serving: Measured) -> None:
        """Listen to what is told in this process, until `close`."""
        self.serving = serving
        self.registry = CollectorRegistry()
        self.requests = Histogram(
            "ascertain_request_seconds", "How long requests took.", ("route", "method", "status"),
            buckets=BUCKETS, registry=self.registry,
        )  # fmt: skip
        self.sweeps = Histogram(
            "ascertain_sweep_seconds", "How long sweeps of a worker in this process took.",
            buckets=BUCKETS, registry=self.registry,
        )  # fmt: skip
        self.broken = Counter(
            "ascertain_requests_broken", "Requests that met a fault of ours.",
            registry=self.registry,
        )  # fmt: skip
        self.registry.register(_Standing(serving))
        self.close = telemetry.listen(self._heard)

    def text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self.registry)

    def _heard(self, event: str, facts: Mapping[str, Any]) -> None:
        if event == "request":
            method = facts["method"] if facts["method"] in METHODS else OTHER
            status = f"{facts['status'] // 100}xx" if facts["status"] else "none"
            self.requests.labels(facts["route"] or OTHER, method, status).observe(
                facts["ms"] / 1000
            )
        elif event == "request.broken":
            self.broken.inc()
        elif event == "sweep" and "ms" in facts:
            self.sweeps.observe(facts["ms"] / 1000)


class _Standing:
    """What the store says at the moment of a scrape."""

    def __init__(self, serving: Measured) -> None:
        self.serving, self.clock = serving, Clock()

    def describe(self) -> list[Metric]:
        """Name nothing beforehand: reading it would ask the store."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Read everything once."""
        serving = self.serving
        began = self.clock.boottime()
        now = serving.store.now()
        yield _one(
            "ascertain_in_flight", "Operations that requests have under way.",
            len(serving.in_flight),
        )  # fmt: skip
        yield from self._counted(now)
        yield from self._open(now)
        yield from self._gates()
        spent = (self.clock.boottime() - began) / SECOND
        yield _one("ascertain_store_read_seconds", "How long this scrape's reading took.", spent)

    def _counted(self, now: int) -> Iterator[Metric]:
        found: list[tuple[str, str, str, Counts]] = []
        for space in self.serving.spaces:
            read = self.serving.spaces.figures.counts(space.namespace, Period.of(0, now))
            actions: dict[str, Counts] = {}
            for name, counts in read.groups.items():
                known = name if name in space.engine.actions or not name else OTHER
                into = actions.setdefault(str(known), {})
                for count, value in counts.items():
                    into[count] = into.get(count, 0) + value
            target_of = self.serving.spaces.target_of
            found += [(space.namespace, a, target_of(a), c) for a, c in actions.items()]
        for name, said in COUNTS.items():
            metric = GaugeMetricFamily(
                f"ascertain_{name}", f"All {said}, by what is known now.",
                labels=("namespace", "action", "target"),
            )  # fmt: skip
            for namespace, action, target, counts in found:
                if counts.get(name):
                    metric.add_metric((namespace, action, target), counts[name])
            yield metric

    def _open(self, now: int) -> Iterator[Metric]:
        by_state = GaugeMetricFamily(
            "ascertain_open", "Operations that are not settled now.", labels=("namespace", "state")
        )
        oldest = GaugeMetricFamily(
            "ascertain_oldest_seconds", "Age of the oldest open operation.",
            labels=("namespace", "state"),
        )  # fmt: skip
        waiting = GaugeMetricFamily(
            "ascertain_waiting",
            "What waits for people or is missing.",
            labels=("namespace", "what"),
        )
        for space in self.serving.spaces:
            name, states = space.namespace, dict[str, tuple[int, int]]()
            for one in self.serving.spaces.figures.open_now(name):
                count, since = states.get(one.state, (0, now))
                states[one.state] = (count + one.count, min(since, one.oldest))
            for state, (count, since) in sorted(states.items()):
                by_state.add_metric((name, state), count)
                oldest.add_metric((name, state), (now - since) / SECOND)
            reviews = self.serving.store.counts(name).get("reviews", 0)
            waiting.add_metric((name, "reviews"), reviews)
            kinds: dict[str, int] = {}
            for alarm in self._alarms(space.engine):
                kinds[alarm.kind] = kinds.get(alarm.kind, 0) + 1
            for kind, count in sorted(kinds.items()):
                waiting.add_metric((name, f"alarm_{kind}"), count)
        yield from (by_state, oldest, waiting)

    def _alarms(self, engine: Any) -> list[Any]:
        at = engine.clock.boottime()
        if engine.alarms_at is None or at - engine.alarms_at >= ALARMS_EVERY:
            engine.alarms_at, engine.alarms = at, alarms(engine)
        return list(engine.alarms)

    def _gates(self) -> Iterator[Metric]:
        metric = GaugeMetricFamily(
            "ascertain_gate", "1 for the state that a target's gate is in.",
            labels=("namespace", "target", "state"),
        )  # fmt: skip
        for space in self.serving.spaces:
            gates = space.engine.gates
            if gates.stale:
                gates.refresh()
            for target in gates.targets:
                metric.add_metric((space.namespace, target, gates.of(target).state), 1)
        yield metric


def _one(name: str, said: str, value: float) -> Metric:
    metric = GaugeMetricFamily(name, said)
    metric.add_metric((), value)
    return metric
