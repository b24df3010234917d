"""A scripted target: requests arrive and take effect when they want, within its contract."""

from __future__ import annotations

from dataclasses import dataclass, field

NEVER = 10**18


@dataclass
class Sent:
    """One request: written at `sent`, checked at `arrives`, in effect at `lands` (µs)."""

    key: str
    sent: int
    arrives: int
    lands: int
    fate: str = "creates"  # creates, refused, stored (a refusal that is remembered), never
    state: str = "on its way"  # arrived, absorbed, landed, failed, cancelled
    ref: str | None = None


@dataclass
class Target:
    """What it does with a key: `identity`, `remembers` it for `keeps`, or ignores it."""

    kind: str
    atomic: bool = False
    keeps: int = NEVER
    lag: int = 0
    effects: list[tuple[int, str, str]] = field(default_factory=list)  # when, key, reference
    requests: list[Sent] = field(default_factory=list)
    memory: dict[str, tuple[int, str]] = field(default_factory=dict)  # key: since, done or failed

    def send(self, request: Sent) -> Sent:
        self.requests.append(request)
        return request

    def pass_time(self, now: int) -> None:
        """Let everything happen up to now, in its order."""
        while True:
            due = [(r.arrives, 0, r) for r in self.requests if r.state == "on its way"]
            due += [(r.lands, 1, r) for r in self.requests if r.state == "arrived"]
            due = [d for d in due if d[0] <= now]
            if not due:
                return
            at, what, request = min(due, key=lambda d: d[:2])
            self._land(request, at) if what else self._arrive(request, at)

    def _arrive(self, request: Sent, at: int) -> None:
        key = request.key
        known = self.memory.get(key)
        if self.kind == "remembers" and known and at < known[0] + self.keeps:
            request.state = "absorbed" if known[1] == "done" else "failed"
        elif self._exists(key) or (self.atomic and self._busy(request)):
            request.state = "absorbed"
        elif request.fate in ("refused", "stored", "never"):
            request.state = "failed"
            if request.fate == "stored" and self.kind == "remembers":
                self.memory[key] = (at, "failed")
        else:
            request.state = "arrived"

    def _exists(self, key: str) -> bool:
        return self.kind == "identity" and any(k == key for _, k, _ in self.effects)

    def _busy(self, request: Sent) -> bool:
        return any(r.key == request.key and r.state == "arrived" for r in self.requests)

    def _land(self, request: Sent, at: int) -> None:
        request.state, request.ref = "landed", f"ref-{len(self.effects) + 1}"
        self.effects.append((at, request.key, request.ref))
        self.memory[request.key] = (at, "done")

    def seen(self, now: int, keys: set[str]) -> list[str]:
        """What a look-up by these keys shows: behind by the lag."""
        return [ref for at, key, ref in self.effects if key in keys and at + self.lag <= now]

    def ref_of(self, key: str) -> str | None:
        return next((ref for _, k, ref in reversed(self.effects) if k == key), None)
