"""Runs an action's own code and look-up outside the ledger, under keys of the self-test alone."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import msgspec

from ascertain.core import keys
from ascertain.core.errors import SendRefused
from ascertain.core.model import Accepted, Done, LookFinding, Several
from ascertain.runtime import perform
from ascertain.runtime.action import Definition
from ascertain.runtime.call import Call
from ascertain.runtime.engine import Engine
from ascertain.runtime.freezing import Prepared, name_keys
from ascertain.runtime.looking import finding_of_look

SPACE = "ascertain.selftest"  # the namespace of target keys here: no operation's key is among them


class Send(msgspec.Struct, frozen=True, kw_only=True):
    """One request and what came of it; times in µs of the local clock.

    `said`: exists, mismatch or busy, where the contract says so of the answer.
    """

    probe: str
    key: str
    target_key: str
    kind: str  # done, accepted, not_done, unknown
    ref: str = ""
    said: str = ""
    success: bool = False  # `call.http` saw an answer that the contract calls a success
    reason: str = ""
    began: int = 0
    ended: int = 0


class Sender:
    """Sends and looks for one action; safe to use from several threads."""

    def __init__(self, engine: Engine, definition: Definition, run: str) -> None:
        """`run` is a text that no other run has."""
        self.engine, self.definition, self.run = engine, definition, run

    def key(self, name: str) -> str:
        """Return the key of one object of this run."""
        return f"selftest-{self.run}-{name}"

    def target_key(self, key: str) -> str:
        """Return its target key: of a namespace in which no operation can be."""
        return keys.target_key(self.engine.lives.secret, SPACE, self.definition.name, key, 1)

    def send(self, probe: str, key: str, given: dict[str, Any]) -> Send:
        """Send once; whatever goes wrong is part of what came of it."""
        d, target_key = self.definition, self.target_key(key)
        call = self._call(key, target_key, effect=True)
        began, said = self.engine.clock.boottime(), ""
        try:
            if d.declared.prepare is not None:
                whole = d.whole(given)
                made = d.declared.prepare(Prepared(target_key, key), **whole)
                call.request = name_keys(made, target_key)
            finding = perform.finding_of(_awaited(d.function(call, **given)), d, call)
        except Exception as error:  # noqa: BLE001 - what it proves is what is asked here
            finding = perform.finding_of_error(error, d, call)
            said = self._said(error)
        finally:
            call.close()
        answered = call.http_used.trace.finding if call.http_used is not None else None
        return Send(
            probe=probe,
            key=key,
            target_key=target_key,
            kind=str(type(finding).__struct_config__.tag),
            ref=_text(getattr(finding, "ref", None)),
            said=said,
            success=isinstance(answered, Done | Accepted),
            reason=_text(getattr(finding, "reason", ""))[:200],
            began=began,
            ended=self.engine.clock.boottime(),
        )

    def _said(self, error: Exception) -> str:
        """Return what the contract says of an answer inside an exception."""
        answer, rule = getattr(error, "answer", None), self.definition.terms.contract.repeat
        if answer is None or self.definition.terms.contract.protocol != "http":
            return ""
        from ascertain.targets.classify.answers import says

        named = {"exists": rule.exists, "mismatch": rule.mismatch, "busy": rule.busy}
        return next((name for name, text in named.items() if says(text, answer)), "")

    def look(self, target_key: str) -> LookFinding:
        """Look up one target key; an error is Unknown."""
        d = self.definition
        assert d.look is not None
        call = self._call("", target_key, effect=False)
        try:
            found: Any = finding_of_look(_awaited(d.look.function(call)), d.name)
        except Exception as error:  # noqa: BLE001 - a look-up's error is Unknown
            found = perform.finding_of_look_error(error, d)
        finally:
            call.close()
        kept: LookFinding = found
        return kept

    def undo(self, undo: Definition, key: str, ref: str) -> Send:
        """Remove one object by the action that says how."""
        other = Sender(self.engine, undo, self.run)
        return other.send("removed", f"{key}-undo-{ref}"[:400], {"ref": ref})

    def _call(self, key: str, target_key: str, *, effect: bool) -> Call:
        clock, d = self.engine.clock, self.definition
        until = clock.boottime() + d.terms.bounds.lease
        ticket: Any = SimpleNamespace(deadline=until, definition=d)  # all that its client reads

        def extend(_: int) -> None:
            raise SendRefused(f"action {d.name}: a self-test does not extend its deadline")

        return Call(
            key=key,
            target_key=target_key,
            attempt=clock.token(),
            epoch=1,
            number=1,
            clock=clock,
            deadline=lambda: until,
            extend=extend if effect else None,
            http=lambda call: perform.make_http(call, ticket, self.engine, effect=effect),
        )


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _awaited(value: Any) -> Any:
    """Return what code returned, awaited where it has to be; no loop runs in these threads."""
    if not inspect.isawaitable(value):
        return value
    import asyncio

    async def wait() -> Any:
        return await value

    return asyncio.run(wait())


def refs_of(finding: LookFinding) -> list[str]:
    """Return the references that a look-up found."""
    if isinstance(finding, Several):
        return [str(r) for r in finding.refs]
    ref = finding.ref if isinstance(finding, Done) else None
    return [] if ref is None else [str(ref)]
