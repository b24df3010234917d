"""What people are shown and may do: reviews, bulk rules, differences, candidates, consequences."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ascertain.core import consequences, people, words
from ascertain.core.candidates import Seen, candidates
from ascertain.core.consequences import APPROVAL, BULK, SENTENCES, of_approval, of_bulk
from ascertain.core.diff import MOST, fields_diff, words_diff
from ascertain.core.errors import ApprovalStale, Conflict, Refused
from ascertain.core.model import SECOND, Accepted, Approval, Done, NotDone, NotDoneKind, State
from ascertain.core.people import Answer, bulk_refusal
from ascertain.core.reconcile import Do, protected_until
from core.driver import Ledger
from core.scenarios import LATE, idempotent, lost, opaque, searchable


def in_review() -> Ledger:
    book = Ledger(opaque()).submit()
    return book.lost(book.execute())


def change(book: Ledger, rule: Any, *rest: Any, **more: Any) -> Ledger:
    made = rule(book.case, *rest, book.world, book.stamp(), **more)
    if made is not None:
        book.apply(made)
    return book


def held(book: Ledger) -> tuple[str, int | None]:
    [review] = book.case.reviews
    return review.taken_by, review.snoozed_until


# --- who looks into it ---


def test_a_review_is_taken_once_and_handed_over() -> None:
    book = in_review()
    [review] = book.case.reviews
    known = (book.status.state, book.status.due_at, book.status.waiting_on)
    change(book, people.take, review.id, by="ben")
    assert held(book) == ("ben", None)
    assert people.take(book.case, review.id, book.world, 1, by="ben") is None
    with pytest.raises(Conflict, match="ben has taken"):
        change(book, people.take, review.id, by="anna")
    change(book, people.hand_over, review.id, by="ben", to="anna", why="holidays")
    assert held(book) == ("anna", None)
    change(book, people.hand_over, review.id, by="anna", to="")
    assert held(book) == ("", None)
    assert [e.said for e in book.evidence[-3:]] == ["taken", "handed_over", "handed_over"]
    # Nothing of this says what happened.
    assert (book.status.state, book.status.due_at, book.status.waiting_on) == known
    assert {e.shows for e in book.evidence[-3:]} == {""}


def test_a_review_is_put_off_within_bounds_and_comes_back_when_it_is_taken() -> None:
    book = in_review()
    [review] = book.case.reviews
    for wrong in (book.now, book.now - 1, book.now + people.LONGEST_SNOOZE + 1):
        with pytest.raises(Refused, match="within the next 30 days"):
            change(book, people.snooze, review.id, by="anna", until=wrong)
    change(book, people.snooze, review.id, by="anna", until=book.now + SECOND)
    assert held(book) == ("", book.now + SECOND)
    change(book, people.snooze, review.id, by="anna", until=None)
    assert held(book) == ("", None)
    change(book, people.snooze, review.id, by="anna", until=book.now + people.LONGEST_SNOOZE)
    assert held(change(book, people.take, review.id, by="anna")) == ("anna", None)


def test_a_note_proves_nothing() -> None:
    book = in_review()
    before = book.status
    change(book, people.leave_note, by="anna", text="asked the shop")
    assert (book.evidence[-1].kind, book.evidence[-1].by) == ("note", "anna")
    assert (book.status.state, book.status.said) == (before.state, before.said)


def test_a_closed_review_is_a_conflict() -> None:
    book = in_review()
    [review] = book.case.reviews
    book.decide("leave")
    for rule, more in (
        (people.take, {}), (people.hand_over, {"to": "ben"}), (people.snooze, {"until": None}),
    ):  # fmt: skip
        with pytest.raises(Conflict, match="closed"):
            change(book, rule, review.id, by="anna", **more)


# --- sent back, withdrawn ---


def asked(*roles: str) -> tuple[Ledger, list[Approval]]:
    book = Ledger(searchable(approval=roles, owners={"": "anna", "input": "otto"})).submit()
    return book, [
        Approval(id=r, operation="op", namespace="n", role=r, digest="d", asked_at=0) for r in roles
    ]


def test_a_request_goes_back_to_its_author() -> None:
    book, approvals = asked("editor", "legal")
    given = {"role": "editor", "by": "eva", "note": "shorter"}
    with pytest.raises(ApprovalStale):
        change(book, people.respond, approvals, digest="other", **given)
    change(book, people.respond, approvals, digest="d", **given)
    assert {a.id: a.state for a in book.approvals.values()} == {
        "editor": "responded", "legal": "withdrawn",
    }  # fmt: skip
    assert (book.status.state, book.status.reason, book.status.owner) == (
        State.NOT_DONE, "rejected", "otto",
    )  # fmt: skip
    assert book.status.waiting_on == "input"  # it stays visible to its author
    change(book, people.supersede, successor="op-2")  # proven: a new version may follow
    with pytest.raises(Refused):
        change(book, people.approve, approvals, role="legal", digest="d", by="l", consent=True)


def test_asking_again_withdraws_what_was_asked_before() -> None:
    book, approvals = asked("editor")
    first = Approval(
        id="w", operation="op", namespace="n", role="second_person", digest="", asked_at=0
    )
    made = people.ask(
        book.case, [*approvals, first], book.world, book.stamp(), digest="new", until=1
    )
    assert {(a.role, a.digest): a.state for a in made.approvals} == {
        ("editor", "new"): "asked", ("editor", "d"): "withdrawn",
    }  # fmt: skip


def test_a_first_word_is_about_the_attempts_and_look_ups_so_far() -> None:
    book = lost(searchable(risky=True))
    before = people.same_question(book.status)
    book.decide("cannot_tell")
    assert people.same_question(book.status) == before
    from ascertain.core.model import Unknown

    book.look(Unknown())
    after = people.same_question(book.status)
    assert after != before
    book.decide("not_there", without_proof=True).claim(Do.FORCE)
    assert people.same_question(book.status) not in (before, after)


# --- bulk ---


def states() -> dict[str, Ledger]:
    made = {"pending": Ledger(opaque()).submit(), "running": Ledger(opaque()).submit()}
    made["running"].execute()
    done = Ledger(opaque()).submit()
    made["done"] = done.report(done.execute(), Done("d"))
    refused = Ledger(opaque()).submit()
    made["unauthorized"] = refused.report(refused.execute(), NotDone(NotDoneKind.UNAUTHORIZED))
    accepted = Ledger(opaque()).submit()
    made["accepted"] = accepted.report(accepted.execute(), Accepted("j"))
    made["checked"] = lost(searchable())
    made["review"] = in_review()
    looking = lost(searchable())
    looking.claim(Do.LOOK_UP)
    made["looking"] = looking
    return made


BULKS = {  # by action: why it is refused in each state
    "take": {"review": ""},
    "hand_over": {"review": ""},
    "snooze": {"review": ""},
    "look_up": {
        "checked": "", "running": "under_way", "looking": "under_way",
    },
    "leave": {
        "review": "", "unauthorized": "", "running": "under_way", "looking": "under_way",
        "checked": "still_checked", "accepted": "still_checked",
    },
    "renew": {"unauthorized": "", "running": "under_way", "looking": "under_way"},
}  # fmt: skip
OTHERWISE = {
    "take": "no_review", "hand_over": "no_review", "snooze": "no_review",
    "look_up": "no_look_up", "leave": "nothing_to_leave", "renew": "not_authorization",
}  # fmt: skip


@pytest.mark.parametrize("did", people.BULK)
def test_what_may_be_done_in_bulk(did: str) -> None:
    for name, book in states().items():
        assert bulk_refusal(book.case, did) == BULKS[did].get(name, OTHERWISE[did]), name


def test_sending_again_is_never_done_in_bulk() -> None:
    for name, book in states().items():
        for did in (*Answer, "execute", "replay", "force", "redo", "approve", "risk"):
            if did not in people.BULK:
                assert bulk_refusal(book.case, did) == "no_bulk_action", name


def test_every_code_of_bulk_actions_has_its_sentence_in_both_languages() -> None:
    codes = {
        *people.BULK,
        *OTHERWISE.values(),
        *(c for row in BULKS.values() for c in row.values()),
    }
    for code in codes - {""}:
        assert set(of_bulk(code)) == set(words.LANGUAGES)
    assert all(en and zh for en, zh in (*BULK.values(), *SENTENCES.values()))
    assert not any("！" in zh or "!" in en for en, zh in (*BULK.values(), *SENTENCES.values()))


# --- what a decision would do ---


def says(book: Ledger, first: str = "") -> dict[str, tuple[str, str]]:
    found = consequences.consequences(book.case, book.world, first)
    return {c.answer: (c.says["en"], c.says["zh"]) for c in found}


def test_every_decision_says_what_it_does() -> None:
    book = in_review()
    assert list(says(book)) == ["there", "not_there", "cannot_tell", "leave"]
    assert all("nothing is sent" in says(book)[a][0] for a in ("there", "cannot_tell", "leave"))
    assert "no observation period is known" in says(book)["not_there"][0]
    early = lost(searchable()).decide("cannot_tell")
    assert "has not ended (it does at 1970" in says(early)["not_there"][0]
    early.wait(LATE + 1)
    assert "counts as not done" in says(early)["not_there"][0]
    named = consequences.consequences(early.case, early.world)
    assert not any(c.needs_risk for c in named)


def test_on_a_risky_target_it_says_whose_word_it_is() -> None:
    book = lost(searchable(risky=True)).decide("cannot_tell")
    first = {c.answer: c for c in consequences.consequences(book.case, book.world)}
    assert (first["not_there"].needs_second, first["not_there"].needs_risk) == (True, True)
    assert "nothing is sent" in first["not_there"].says["en"]
    second = {c.answer: c for c in consequences.consequences(book.case, book.world, "anna")}
    assert not second["not_there"].needs_second
    assert "anna" in second["not_there"].says["zh"]


def test_nothing_is_offered_while_an_attempt_is_under_way_or_all_is_known() -> None:
    made = states()
    for name in ("running", "looking", "done"):
        assert says(made[name]) == {}, name
    assert list(says(made["unauthorized"])) == ["there", "leave"]
    assert "proven not done" in says(made["unauthorized"])["leave"][0]
    assert "j" in says(made["accepted"])["there"][0]
    assert tuple(c.answer for c in of_approval()) == APPROVAL


def test_the_time_that_is_left_is_the_last_protected_moment() -> None:
    book = lost(idempotent())
    until = protected_until(book.status, book.terms, book.world)
    assert until is not None
    book.now = until
    assert protected_until(book.status, book.terms, book.world) == until
    book.now = until + 1
    assert protected_until(book.status, book.terms, book.world) is None
    never = in_review()
    assert protected_until(never.status, never.terms, never.world) is None


# --- differences ---


@given(st.text(), st.text())
def test_a_difference_holds_both_texts(before: str, after: str) -> None:
    tokens = words_diff(before, after)
    assert "".join(t.text for t in tokens if t.kind != "ins") == before
    assert "".join(t.text for t in tokens if t.kind != "del") == after
    assert all(t.text for t in tokens)


def test_what_changed_is_shown_word_by_word_in_every_script() -> None:
    assert [(t.kind, t.text) for t in words_diff("a small lamp", "a big lamp")] == [
        ("same", "a "), ("del", "small "), ("ins", "big "), ("same", "lamp"),
    ]  # fmt: skip
    assert [(t.kind, t.text) for t in words_diff("价格一百元", "价格二百元")] == [
        ("same", "价格"), ("del", "一"), ("ins", "二"), ("same", "百元"),
    ]  # fmt: skip


def test_a_long_text_changed_in_the_middle_is_compared_in_bounded_time() -> None:
    head, tail = "same " * 50_000, "end " * 50_000
    tokens = words_diff(head + "old" + tail, head + "new" + tail)
    assert [t.kind for t in tokens] == ["same", "del", "ins", "same"]
    other = [f"{n} " for n in range(2 * MOST)]
    tokens = words_diff("".join(other), "".join(reversed(other)))
    assert [t.kind for t in tokens if t.kind != "same"] == ["del", "ins"]


def test_inputs_differ_by_field() -> None:
    before = {"title": "A", "body": "x y", "tags": [1, 2]}
    after = {"title": "A", "body": "x z", "tags": [2, 1], "note": None, "more": "m"}
    assert [f.field for f in fields_diff(before, after)] == ["body", "tags", "more"]
    assert [f.field for f in fields_diff("a", "b")] == [""]


# --- candidates ---

SENT = {"name": "lamp", "price": 12, "address": {"city": "Kassel"}, "note": ""}


def look(excerpt: str, **data: Any) -> Seen:
    return Seen(5, "look_up", {"excerpt": excerpt, **data})


def test_what_was_found_is_compared_with_what_was_sent() -> None:
    answer = '{"orders":[{"id":7,"name":"lamp","price":12,"city":"Bonn"},{"id":8,"name":"x"}]}'
    first, second = candidates(SENT, [look(answer, refs=[7, 8])])
    assert (first.ref, first.matched, first.compared) == ("7", 2, 3)
    assert {f.name: (f.found, f.match) for f in first.facts} == {
        "name": ("lamp", True), "price": ("12", True), "address.city": ("Bonn", False),
    }  # fmt: skip
    assert (second.ref, second.matched, second.compared) == ("8", 0, 1)
    assert {f.name: f.match for f in second.facts}["price"] is None  # not shown: neither way


def test_what_the_evidence_does_not_show_is_said_so() -> None:
    cut = '{"orders":[{"id":7,"name":"lamp","pri'
    [one] = candidates(SENT, [look(cut, ref=7)])
    assert (one.matched, one.compared) == (1, 1)
    several = candidates(SENT, [look(cut, refs=[7, 8])])  # whose field it is cannot be told
    assert [(c.matched, c.compared) for c in several] == [(0, 0), (0, 0)]
    [bare] = candidates(SENT, [Seen(1, "look_up", {"ref": "m-1"})])
    assert (bare.ref, bare.compared) == ("m-1", 0)
    assert candidates(SENT, [look("{}"), Seen(1, "decision", {"why": "x"})]) == []
    assert candidates(None, []) == []


def test_what_reading_back_has_compared_counts() -> None:
    differ = {"sku": {"sent": "A-1", "found": "A-2"}}
    [one] = candidates({}, [Seen(1, "finding", {"ref": "9", "differ": differ})])
    assert (one.matched, one.compared, one.facts[0].found) == (0, 1, "A-2")


def test_references_are_candidates_too_and_all_is_bounded() -> None:
    found = candidates(SENT, [look("{}", refs=list(range(100)))], [("r-1", 3)])
    assert len(found) <= 20
    wide = {f"f{n}": n for n in range(1000)}
    [one] = candidates(wide, [look("{}", ref=1)])
    assert len(one.facts) <= 40
    deep: Any = "x"
    for _ in range(500):
        deep = {"a": deep}
    assert candidates(deep, [look('{"a":' * 50 + "1" + "}" * 50, ref=1)])[0].compared == 0


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists), st.text())
def test_no_evidence_whatever_breaks_it(sent: Any, excerpt: str) -> None:
    for one in candidates(sent, [look(excerpt, refs=[1, "x", None])]):
        assert 0 <= one.matched <= one.compared


def test_a_conflict_names_a_review_that_is_not_open() -> None:
    book = in_review()
    with pytest.raises(Conflict, match="is closed"):
        people.the_review(replace(book.case, reviews=()), "x")
