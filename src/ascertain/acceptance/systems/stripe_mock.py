"""stripe-stateful-mock, a simulator of Stripe's charges."""

from __future__ import annotations

from collections.abc import Sequence

from .base import Effect, System, mentions
from .installed import home
from .web import answers, ask_json

# Its own command line listens on every interface.
SERVE = """require('loglevel').setLevel('silent');
require('http').createServer(require('stripe-stateful-mock').createExpressApp())
  .listen({port}, '{host}')"""


class StripeMock(System):
    """Charges in the memory of a simulator that honours Idempotency-Key and forgets nothing.

    The same key with other parameters is answered 400 ``idempotency_error``. It does not count
    charges that were asked for twice as two. Measured with stripe-stateful-mock 0.0.16 on
    2026-11-29.
    """

    name = "Stripe simulator"
    install = "make accept-full"

    @property
    def authorization(self) -> str:
        """Value of the HTTP Authorization header."""
        return "Bearer sk_test_1"

    def effects(self, marker: str) -> list[Effect]:
        """Return the charges whose description or metadata mention the marker."""
        match = mentions(marker)
        headers = {"Authorization": self.authorization}
        _, said = ask_json(self.port, "GET", "/v1/charges?limit=100", headers=headers)
        return [
            Effect(row["id"], row["created"], f"charge {row['id']}")
            for row in said["data"]
            if match(f"{row.get('description')}\n{row['metadata'].get('op', '')}")
        ]

    def creations(self, marker: str) -> int:
        """Count the charges; none is ever deleted."""
        return len(self.effects(marker))

    def _command(self) -> Sequence[str]:
        script = SERVE.format(port=self.port, host=self.host)
        return ["node", "-e", script]

    def _environment(self) -> dict[str, str]:
        modules = str(home("stripe") / "node_modules")
        return {**super()._environment(), "NODE_PATH": modules}

    def _answers(self) -> bool:
        return answers(self.port, "/v1/charges", {"Authorization": self.authorization})
