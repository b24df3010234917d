"""An HTTP action without code: a request, a look-up and a read-back, described as data.

Placeholders are `{input}`, `{target_key}` and `{natural_key}`. One that is a whole JSON value
keeps its type, and its field is left out where an optional input is not given; in an address it
is escaped, and it cannot stand in the host (law 6: the scope is fixed). The contract says where
the target key goes and in which form.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

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
from .classify.redact import redacted
from .credentials import Beside, Credentials, NoCredential
from .describing import Description, Question, Search, Sending, described
from .freezing import freeze
from .http import Answered

EVIDENCE = 100  # characters of a value that are kept where two are compared


class Template:
    """A described action: `prepare` and `perform` act, `look_up` looks. Changes nothing itself."""

    def __init__(
        self, name: str, description: Mapping[str, Any], contract: Contract,
        *, environ: Mapping[str, str] = os.environ, credentials: Credentials | None = None,
    ) -> None:  # fmt: skip
        """Check a description against its contract; raises ActionInvalid naming the field.

        Credentials are read from `environ` or from files when something is sent. `credentials`
        are those of a target that several actions share, in place of the description's `auth`.
        """
        self.name, self.contract = name, contract
        self.described: Description = described(name, description, contract)
        self._credentials = credentials or Credentials(self.described.auth, environ)

    def missing(self, given: Mapping[str, Any]) -> list[str]:
        """Name the required inputs that are not given; None and blank text count as missing."""
        needed = [n for n, i in self.described.inputs.items() if i.required]
        return [
            n
            for n in needed
            if given.get(n) is None or (isinstance(given[n], str) and not given[n].strip())
        ]

    def check(self, given: Mapping[str, Any]) -> None:
        """Refuse an input that is missing, unknown or of the wrong type; raises InputRefused."""
        inputs = self.described.inputs
        missing, unknown = self.missing(given), [n for n in given if n not in inputs]
        wrong = [
            f"input {n} is {type(v).__name__}, not {inputs[n].type}"
            for n, v in given.items()
            if v is not None and n in inputs and not inputs[n].fits(v)
        ]
        what = [
            f"missing input {', '.join(missing)}" if missing else "",
            f"unknown input {', '.join(unknown)}" if unknown else "",
            *wrong,
        ]
        if any(what):
            said = "; ".join(w for w in what if w)
            raise InputRefused(f"action {self.name}: {said}. It takes {', '.join(inputs)}")

    def prepare(self, prepared: Any, **given: Any) -> Request:
        """Return the request as it is frozen (law 11). Pure; raises InputRefused."""
        values = self._values(prepared.target_key, given)
        asked, at = self.described.request, self.contract.key.at
        where, _, place = at.partition(":")
        key = values.get("natural_key", values["target_key"])
        url = self._url(asked.url, values)
        headers = self._headers(asked, values)
        if where == "header" and place.lower() not in {n.lower() for n in headers}:
            headers[place] = key
        if where == "query" and not {"target_key", "natural_key"} & set(slots.fields(asked.url)):
            url += f"{'&' if '?' in url else '?'}{place}={quote(key, safe='')}"
        body = self._body(asked, values)
        if where == "body" and asked.form is not None:
            body["data"].setdefault(place, key)
        elif where == "body" and asked.text is None and asked.graphql is None:
            body["json"] = slots.stamped(body.get("json"), place, key)
        elif where == "graphql" and asked.graphql is not None and place.replace(".", "").isalnum():
            body["json"]["variables"] = slots.stamped(body["json"]["variables"], place, key)
        return freeze(asked.verb("POST"), url, headers=headers, **body)

    def perform(self, call: TargetCall, **given: Any) -> ActFinding:
        """Act once and return what is established; raises Answered and what the wire raises."""
        try:
            self.check(given)
            request = call.request or self.prepare(call, **given)
        except InputRefused as error:
            return NotDone(NotDoneKind.INVALID, f"{error}; nothing was sent")
        try:
            beside = self._credentials.ready(call.http)
        except NoCredential as error:
            reason = f"action {self.name}: {error.reason}; nothing was sent"
            return NotDone(error.kind, reason, retry_after=error.retry_after)
        try:
            answer = call.http.send(request, headers=beside.headers, **beside.arguments())
        except Answered as error:
            if error.exists and self.described.read_back is not None:
                return self._read_back(call, given, error)
            return self._not_let_in(error, beside)
        self._credentials.worked(beside)
        return self._success(answer, self._values(call.target_key, given))

    def look_up(self, call: TargetCall) -> LookFinding:
        """Return what is there under `call.target_key`; its absence is for law 5 to judge."""
        search = self.described.lookup
        if search is None:
            return Unknown(f"action {self.name} describes no look-up")
        key = self._key_as(call.target_key)
        values = {"target_key": key}
        try:
            answer = self._ask(call, search, values)
        except NoCredential as error:
            return Unknown(f"action {self.name}: {error.reason}", error.retry_after)
        seen, more = answer.evidence(), bool(search.more) and says(search.more, answer)
        if says(search.absent, answer):
            return Absent(complete=not more, evidence=seen)
        items = self._items(search, answer)
        if isinstance(items, Unknown):
            return items
        ours = [i for i in items if self._is_ours(i, search, key)]
        if not ours and items and not search.items:
            return Unknown("the object at this address is not ours", evidence=seen)
        if not ours:
            return Absent(complete=not more, evidence=seen)
        refs = self._refs(ours, search.ref, answer, values)
        if not refs:
            return Unknown(f"found, but without a reference at {search.ref}", evidence=seen)
        if len(refs) > 1:
            return Several(refs=refs, evidence=seen)
        return Done(ref=refs[0], evidence=seen)

    # --- what an answer amounts to ---

    def _not_let_in(self, error: Answered, beside: Beside) -> ActFinding:
        """Try again with another access token where one was refused before processing, by the
        contract's word (law 13); the next attempt gets it, since this one has sent (law 17)."""
        finding = error.finding
        if error.answer.status != 401:
            self._credentials.worked(beside)
        elif (
            isinstance(finding, NotDone)
            and finding.kind is NotDoneKind.UNAUTHORIZED
            and not finding.stored
            and self._credentials.refused(beside)
        ):
            reason = f"{finding.reason}: the access token was refused; a new one will be used"
            return NotDone(NotDoneKind.TRANSIENT, reason, evidence=finding.evidence)
        raise error

    def _success(self, answer: HttpAnswer, values: Mapping[str, Any]) -> ActFinding:
        """An answer that the contract calls a success, and that says which object it made."""
        body, seen, path = answer.body(), answer.evidence(), self.described.ref
        refs = self._refs([body], path, answer, values) if path else []
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
        differ = {}
        for place, template in back.same.items():
            ignore = place in back.ignore_case
            both = slots.sent_and_found(items[0], place, template, values, ignore_case=ignore)
            if both is not None:
                differ[place] = {"sent": _short(both[0]), "found": _short(both[1])}
        if differ:
            reason = f"it exists, and is not ours: {', '.join(differ)} differ"
            return Unknown(reason, evidence={**seen, "differ": differ})
        refs = self._refs(items, back.ref, answer, values)
        if len(refs) != 1:
            return Unknown(f"it exists, without one reference at {back.ref}", evidence=seen)
        return Done(ref=refs[0], evidence=seen)

    def _is_ours(self, item: Any, search: Search, key: str) -> bool:
        if search.line:
            return slots.text(search.line, {"target_key": key}) in str(item).splitlines()
        return not search.by or key in slots.texts(item, search.by)

    def _refs(
        self, items: list[Any], place: str, answer: HttpAnswer, values: Mapping[str, Any]
    ) -> list[str | int]:
        if "{" in place:
            return [slots.text(place, values)]
        if place.startswith("header:"):
            found = answer.headers.get(place.partition(":")[2].lower(), "").strip()
            return [found] if found else []
        return slots.refs(items, place)

    # --- asking ---

    def _ask(self, call: TargetCall, search: Question, values: Mapping[str, Any]) -> HttpAnswer:
        """Send a request that only looks; with a new access token where one was refused."""
        beside = self._credentials.ready(call.http)
        answer = self._asked(call, search, values, beside)
        if answer.status == 401 and self._credentials.refused(beside):
            beside = self._credentials.ready(call.http)
            answer = self._asked(call, search, values, beside)
        if answer.status == 401:
            self._credentials.refused(beside)
        else:
            self._credentials.worked(beside)
        return answer

    def _asked(
        self, call: TargetCall, search: Question, values: Mapping[str, Any], beside: Beside
    ) -> HttpAnswer:
        answer: HttpAnswer = call.http.request(
            search.verb("GET"),
            self._url(search.url, values),
            headers={**self._headers(search, values), **beside.headers},
            effect=False,
            **beside.arguments(),
            **self._body(search, values),
        )
        return answer

    def _items(self, search: Question, answer: HttpAnswer) -> list[Any] | Unknown:
        seen = answer.evidence()
        if not says(search.found, answer):
            return Unknown(f"HTTP {answer.status}", retry_after(answer), evidence=seen)
        if getattr(search, "line", ""):
            return [answer.text]
        there = matcher.places(answer.body(), search.items)
        if not there:
            return Unknown(f"the answer has nothing at {search.items}", evidence=seen)
        if not search.items and not isinstance(there[0], dict | list):
            return Unknown("the answer is no JSON object", evidence=seen)
        return [i for place in there for i in (place if isinstance(place, list) else [place])]

    # --- filling in ---

    def _key_as(self, key: str) -> str:
        return keys.format_key(key, self.contract.key.form)

    def _values(self, target_key: str, given: Mapping[str, Any]) -> dict[str, Any]:
        self.check(given)
        inputs, natural = self.described.inputs, self.described.natural
        values = {n: i.default for n, i in inputs.items() if i.default is not None}
        values |= {n: v for n, v in given.items() if v is not None or n not in values}
        made = {"natural_key": slots.natural(natural, values)} if natural else {}
        if natural and not made["natural_key"].strip():
            raise InputRefused(f"action {self.name}: its natural key is empty")
        return {**values, **made, "target_key": self._key_as(target_key)}

    def _headers(self, asked: Sending, values: Mapping[str, Any]) -> dict[str, str]:
        own = {n.lower() for n in asked.headers}
        common = {n: t for n, t in self.described.headers.items() if n.lower() not in own}
        return {n: slots.text(t, values) for n, t in {**common, **asked.headers}.items()}

    def _body(self, asked: Sending, values: Mapping[str, Any]) -> dict[str, Any]:
        if asked.text is not None:
            return {"content": slots.document(asked.text, values, asked.escape)}
        if asked.form is not None:
            filled = slots.value(asked.form, values)
            return {"data": {n: _field(v) for n, v in filled.items() if v is not None}}
        if asked.graphql is not None:
            variables = slots.value(asked.variables, values)
            return {"json": {"query": asked.graphql, "variables": variables}}
        return {"json": slots.value(asked.json, values)}

    def _url(self, path: str, values: Mapping[str, Any]) -> str:
        return self.described.base.rstrip("/") + slots.address(path, values)


def _field(value: Any) -> Any:
    """Return a form field's text, or texts where it stands there several times."""
    if isinstance(value, list):
        return [matcher.text_of(v) for v in value]
    if isinstance(value, dict):
        raise InputRefused("a form field holds a table: forms have texts, or lists of them")
    return matcher.text_of(value)


def _short(value: Any) -> Any:
    """Return a value as evidence: enough to tell two apart, never a whole record."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else repr(value)
    return redacted(text)[:EVIDENCE]


__all__ = ["Search", "Template"]
