"""An HTTP action without code: a request, a look-up and a read-back, described as data.

Placeholders are `{input}` and `{target_key}`. One that is a whole JSON value keeps its type, and
its field is left out where an optional input is not given; in an address it is escaped, and it
cannot stand in the host (law 6: the scope is fixed). The contract says where the target key
goes and in which form.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ascertain.core import keys, matcher
from ascertain.core.contract import Contract
from ascertain.core.errors import InputRefused
from ascertain.core.model import (
    Absent,
    Accepted,
    ActFinding,
    Done,
    LookFinding,
    NotDone,
    NotDoneKind,
    Request,
    Several,
    Unknown,
)

from . import placeholders as slots
from .answer import HttpAnswer, retry_after
from .base import TargetCall
from .classify.answers import says
from .describing import Description, Question, Search, described
from .freezing import freeze
from .http import Answered


class Template:
    """A described action: `prepare` and `perform` act, `look_up` looks. Changes nothing itself."""

    def __init__(
        self, name: str, description: Mapping[str, Any], contract: Contract,
        *, environ: Mapping[str, str] = os.environ,
    ) -> None:  # fmt: skip
        """Check a description against its contract; raises ActionInvalid naming the field.

        Credentials are read from `environ` when something is sent.
        """
        self.name, self.contract, self._environ = name, contract, environ
        self.described: Description = described(name, description, contract)

    def missing(self, given: Mapping[str, Any]) -> list[str]:
        """Name the required inputs that are not given; None and empty text count as missing."""
        needed = [n for n, i in self.described.inputs.items() if i.required]
        return [n for n in needed if given.get(n) is None or given[n] == ""]

    def prepare(self, prepared: Any, **given: Any) -> Request:
        """Return the request as it is frozen (law 11). Pure; raises InputRefused."""
        values = self._values(prepared.target_key, given)
        asked, at = self.described.request, self.contract.key.at
        where, _, place = at.partition(":")
        url = self._url(asked.url, values)
        headers = {n: slots.text(t, values) for n, t in asked.headers.items()}
        body = slots.value(asked.json, values)
        key = values["target_key"]
        if where == "header" and place.lower() not in {n.lower() for n in headers}:
            headers[place] = key
        if where == "query" and "{target_key}" not in asked.url:
            url += f"{'&' if '?' in url else '?'}{place}={key}"
        if where == "body":
            body = slots.stamped(body, place, key)
        return freeze(asked.method, url, headers=headers, json=body)

    def perform(self, call: TargetCall, **given: Any) -> ActFinding:
        """Act once and return what is established; raises Answered and what the wire raises."""
        missing = self.missing(given)
        if missing:
            reason = f"action {self.name}: missing input {', '.join(missing)}; nothing was sent"
            return NotDone(NotDoneKind.INVALID, reason)
        try:
            request = call.request or self.prepare(call, **given)
        except InputRefused as error:
            return NotDone(NotDoneKind.INVALID, str(error))
        unset = self._unset()
        if unset:
            reason = f"action {self.name}: {', '.join(unset)} is not set; nothing was sent"
            return NotDone(NotDoneKind.UNAUTHORIZED, reason)
        try:
            answer = call.http.send(request, **self._secrets())
        except Answered as error:
            if error.exists and self.described.read_back is not None:
                return self._read_back(call, given, error)
            raise
        return self._success(answer)

    def look_up(self, call: TargetCall) -> LookFinding:
        """Return what is there under `call.target_key`; its absence is for law 5 to judge."""
        search = self.described.lookup
        if search is None:
            return Unknown(f"action {self.name} describes no look-up")
        unset = self._unset()
        if unset:
            return Unknown(f"action {self.name}: {', '.join(unset)} is not set")
        key = self._key_as(call.target_key)
        answer = self._ask(call, search, {"target_key": key})
        seen, more = answer.evidence(), bool(search.more) and says(search.more, answer)
        if says(search.absent, answer):
            return Absent(complete=not more, evidence=seen)
        items = self._items(search, answer)
        if isinstance(items, Unknown):
            return items
        ours = [i for i in items if not search.by or key in slots.texts(i, search.by)]
        if not ours and items and not search.items:
            return Unknown("the object at this address is not ours", evidence=seen)
        if not ours:
            return Absent(complete=not more, evidence=seen)
        refs = slots.refs(ours, search.ref)
        if not refs:
            return Unknown(f"found, but without a reference at {search.ref}", evidence=seen)
        if len(refs) > 1:
            return Several(refs=refs, evidence=seen)
        return Done(ref=refs[0], evidence=seen)

    def _success(self, answer: HttpAnswer) -> ActFinding:
        """An answer that the contract calls a success, and that says which object it made."""
        body, seen, path = answer.body(), answer.evidence(), self.described.ref
        refs = slots.refs([body], path) if path else []
        if path and len(refs) != 1:
            reason = f"HTTP {answer.status}: {len(refs)} references at {path}, not one"
            return Unknown(reason, evidence=seen)
        result = matcher.places(body, self.described.result) if self.described.result else []
        kind = Accepted if self.contract.ok.accepted else Done
        return kind(
            ref=refs[0] if refs else None, result=result[0] if result else None, evidence=seen
        )

    def _read_back(self, call: TargetCall, given: Mapping[str, Any], error: Answered) -> ActFinding:
        """Compare what exists under our natural id with our input: only what is equal is ours,
        and of several none is picked (law 6)."""
        back = self.described.read_back
        assert back is not None
        values = self._values(call.target_key, given)
        try:
            answer = self._ask(call, back, values)
        except Exception as failed:  # noqa: BLE001 - the target said "exists": only that is known
            return Unknown(
                f"it exists, and reading it back raised {type(failed).__name__}",
                evidence=error.answer.evidence(),
            )
        items, seen = self._items(back, answer), answer.evidence()
        if isinstance(items, Unknown):
            return items
        if len(items) != 1:
            reason = f"it exists, and reading it back found {len(items)}"
            return Unknown(reason, evidence=seen)
        differ = [p for p, t in back.same.items() if not slots.equal(items[0], p, t, values)]
        if differ:
            reason = f"it exists, and is not ours: {', '.join(differ)} differ"
            return Unknown(reason, evidence=seen)
        refs = slots.refs(items, back.ref)
        if len(refs) != 1:
            return Unknown(f"it exists, without one reference at {back.ref}", evidence=seen)
        return Done(ref=refs[0], evidence=seen)

    def _ask(self, call: TargetCall, search: Question, values: Mapping[str, Any]) -> HttpAnswer:
        answer: HttpAnswer = call.http.request(
            search.method,
            self._url(search.url, values),
            headers={
                **{n: slots.text(t, values) for n, t in search.headers.items()},
                **self._secrets()["headers"],
            },
            auth=self._secrets()["auth"],
            json=slots.value(search.json, values),
            effect=False,
        )
        return answer

    def _items(self, search: Question, answer: HttpAnswer) -> list[Any] | Unknown:
        seen = answer.evidence()
        if not says(search.found, answer):
            return Unknown(f"HTTP {answer.status}", retry_after(answer), evidence=seen)
        there = matcher.places(answer.body(), search.items)
        if not there:
            return Unknown(f"the answer has nothing at {search.items}", evidence=seen)
        if not search.items and not isinstance(there[0], dict | list):
            return Unknown("the answer is no JSON object", evidence=seen)
        return [i for place in there for i in (place if isinstance(place, list) else [place])]

    def _key_as(self, key: str) -> str:
        return keys.format_key(key, self.contract.key.form)

    def _values(self, target_key: str, given: Mapping[str, Any]) -> dict[str, Any]:
        inputs = self.described.inputs
        missing = self.missing(given)
        unknown = [n for n in given if n not in inputs]
        if missing or unknown:
            what = f"missing input {', '.join(missing)}" if missing else ""
            what += f" unknown input {', '.join(unknown)}" if unknown else ""
            raise InputRefused(f"action {self.name}: {what.strip()}. It takes {', '.join(inputs)}")
        values = {n: i.default for n, i in inputs.items() if i.default is not None} | dict(given)
        return {**values, "target_key": self._key_as(target_key)}

    def _url(self, path: str, values: Mapping[str, Any]) -> str:
        return self.described.base.rstrip("/") + slots.address(path, values)

    def _unset(self) -> list[str]:
        texts = [*self.described.credentials.values(), *(f"{{{n}}}" for n in self.described.basic)]
        return [n for t in texts for n in slots.fields(t) if not self._environ.get(n)]

    def _secrets(self) -> dict[str, Any]:
        wanted = self.described
        values = {n: slots.text(t, self._environ) for n, t in wanted.credentials.items()}
        user = [self._environ[n] for n in wanted.basic]
        return {"headers": values, "auth": (user[0], user[1]) if user else None}


__all__ = ["Search", "Template"]
