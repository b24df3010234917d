"""The conformance suite of clients: own code in any language that claims, acts and reports.

class TestMine(ClientSuite):
    @pytest.fixture
    def bench(self, …):  # a server with CONFIG, then: with Bench(command, …).open() as bench

What a client must do is said in docs/own-code.md.
"""

# ruff: noqa: PLR2004 - expected values are literals
from __future__ import annotations

import signal
import time

import pytest

from .client_bench import LEASE, Bench


class ClientSuite:
    """Every test runs the client's program against a real server and a counting target."""

    # --- one operation ---

    def test_it_acts_once_under_a_permit(self, bench: Bench) -> None:
        """The finding names what was made."""
        assert bench.one("order", "A")["operation"]["ref"] == "1"
        assert bench.target.made() == {"A": 1}
        [claimed] = bench.proxy.said("finding")
        assert claimed["result"]["finding"] == "done"

    def test_a_reused_result_sends_nothing(self, bench: Bench) -> None:
        """What happened is told, not done again."""
        first = bench.one("order", "A")
        again = bench.one("order", "A")
        assert again["permit"] == "reuse"
        assert again["operation"]["ref"] == first["operation"]["ref"]
        assert len(bench.target.sent("A")) == 1

    def test_of_two_at_once_one_acts_and_the_other_waits(self, bench: Bench) -> None:
        """Both know the result."""
        bench.target.fates["A"] = ["slow:0.5"]
        both = [bench.start("order", "A") for _ in range(2)]
        refs = {bench.last_line(client)["operation"]["ref"] for client in both}
        assert (refs, bench.target.made()) == ({"1"}, {"A": 1})
        assert len(bench.target.sent("A")) == 1

    def test_two_workers_share_due_work(self, bench: Bench) -> None:
        """No operation is acted on twice."""
        idents = [bench.submit("order", f"W{n}") for n in range(6)]
        for _ in range(2):
            bench.start("order")
        for ident in idents:
            bench.until_state(ident, "done")
        assert sorted(bench.target.made().values()) == [1] * 6
        assert len(bench.target.requests) == 6

    # --- what is not known ---

    def test_a_lost_answer_is_unknown_and_replayed_as_it_was(self, bench: Bench) -> None:
        """The same key and the same bytes."""
        bench.target.fates["A"] = ["drop"]
        bench.one("order", "A")
        first, second = bench.target.sent("A")
        assert (first["key"], first["body"]) == (second["key"], second["body"])
        assert first["key"] != ""
        found = [f["result"]["finding"] for f in bench.proxy.said("finding")]
        assert (found, bench.target.made()) == (["unknown", "done"], {"A": 1})

    def test_an_answer_that_nobody_understands_is_unknown(self, bench: Bench) -> None:
        """Also where its status looks like success."""
        bench.target.fates["A"] = ["garbage"]
        bench.one("order", "A")
        assert bench.proxy.said("finding")[0]["result"]["finding"] == "unknown"
        assert bench.target.made() == {"A": 1}

    def test_a_lost_answer_is_looked_up_and_not_sent_again(self, bench: Bench) -> None:
        """What is found is the result."""
        bench.target.fates["A"] = ["drop"]
        assert bench.one("searched", "A")["operation"]["ref"] == "1"
        assert len(bench.target.sent("A")) == 1
        looked = [f["look_up"] for f in bench.proxy.said("finding") if f.get("look_up")]
        assert any(found["finding"] == "done" for found in looked[0])

    def test_what_never_arrived_is_sent_again_once_that_is_proven(self, bench: Bench) -> None:
        """A look-up reports on every key that it was given, also on the controls."""
        bench.one("searched", "control")
        bench.target.fates["A"] = ["hang"]
        bench.one("searched", "A")
        assert (len(bench.target.sent("A")), bench.target.made()["A"]) == (2, 1)
        looked = [f["look_up"] for f in bench.proxy.said("finding") if f.get("look_up")]
        assert sorted(found["finding"] for found in looked[-1]) == ["absent", "absent", "done"]

    def test_several_are_reported_and_none_is_picked(self, bench: Bench) -> None:
        """A person decides."""
        bench.target.fates["A"] = ["twice"]
        ident = bench.submit("searched", "A")
        client = bench.start("searched")
        bench.until(lambda: bench.state(ident)["waiting_on"] == "review", "with a person")
        bench.end(client)
        assert len(bench.target.sent("A")) == 1

    # --- leases and deadlines ---

    def test_killed_on_its_way_it_is_finished_by_another(self, bench: Bench) -> None:
        """The next one replays under the same key."""
        bench.target.fates["A"] = ["slow:6"]
        ident = bench.submit("order", "A")
        client = bench.start("order")
        bench.until(lambda: bench.target.sent("A"), "sent")
        bench.end(client, signal.SIGKILL)
        assert bench.state(ident)["state"] == "running"
        bench.start("order")
        found = bench.until_state(ident, "done")
        assert (found["attempts"], bench.target.made()) == (2, {"A": 1})
        assert len({(r["key"], r["body"]) for r in bench.target.sent("A")}) == 1

    @pytest.mark.parametrize("verb", ["claim", "due"])
    def test_a_permit_that_never_arrived_is_acted_on_once(self, bench: Bench, verb: str) -> None:
        """The same permit, for a claim that has a name and comes again by it; else the next one,
        once the lease of the lost one is over. A name is used for one claim only."""
        bench.proxy.lose[verb] = 1
        ident = bench.submit("order", "A")
        bench.start("order", "A" if verb == "claim" else "")
        found = bench.until_state(ident, "done")
        bodies = bench.proxy.said(verb)
        again = bodies[0].get("claim") is not None and bodies[0] == bodies[1]
        assert (found["attempts"], len(bench.target.sent("A"))) == (1 if again else 2, 1)
        assert [body.get("claim") for body in bodies[2:]].count(bodies[0].get("claim", "")) == 0

    def test_it_extends_its_lease_while_it_waits(self, bench: Bench) -> None:
        """A slow target is no lost one."""
        bench.target.fates["A"] = [f"slow:{1.8 * LEASE}"]
        found = bench.one("order", "A")
        assert bench.proxy.said("extend")
        assert found["operation"]["attempts"] == len(bench.target.sent("A")) == 1

    def test_after_its_deadline_it_sends_nothing(self, bench: Bench) -> None:
        """The claim is given back, or said to be not done; the next attempt acts."""
        bench.target.holds["A"] = 1.8 * LEASE
        bench.proxy.refuse["extend"] = 1000
        ident = bench.submit("order", "A")
        bench.start("order")
        bench.until_state(ident, "done")
        ended = [
            path.rpartition("/")[2]
            for path, body, _ in bench.proxy.seen
            if body.get("operation") == ident and not path.endswith("/extend")
        ]
        assert len(ended) == 2, ended  # the one that sent nothing, and the one that acted
        first = bench.proxy.said(ended[0])[0].get("result", {"finding": "not_done"})
        assert first["finding"] == "not_done"
        assert len(bench.target.sent("A")) == 1

    def test_a_late_answer_is_still_reported(self, bench: Bench) -> None:
        """Without the lease: nothing that is known is thrown away."""
        bench.target.fates["A"] = [f"slow:{1.8 * LEASE}"]
        bench.proxy.refuse["extend"] = 1000
        ident = bench.submit("order", "A")
        bench.start("order")
        bench.until(lambda: bench.target.sent("A"), "sent")
        time.sleep(LEASE)
        taken = bench.ask("POST", "/v1/work/claim", {"action": "order", "key": "A", "wait": 5})
        assert taken["permit"] in ("replay", "wait")
        if taken["permit"] == "replay":
            path = f"/v1/work/{taken['attempt']}/release"
            bench.ask("POST", path, {"operation": ident})
        bench.until_state(ident, "done")
        assert bench.target.made() == {"A": 1}
        assert any(f["result"]["finding"] == "done" for f in bench.proxy.said("finding"))

    def test_a_report_whose_answer_is_lost_is_sent_again_unchanged(self, bench: Bench) -> None:
        """Under the same name, so that it changes nothing."""
        bench.proxy.lose["finding"] = 2
        found = bench.one("order", "A")
        said = bench.proxy.said("finding")
        assert len(said) == 3
        assert said[0] == said[1] == said[2]
        assert bench.kinds(found["operation"]["id"]).count("finding") == 1

    # --- what was refused ---

    @pytest.mark.parametrize(
        ("fate", "kind"), [("bad", "invalid"), ("closed", "unauthorized"), ("busy", "throttled")]
    )
    def test_a_refusal_is_said_by_its_kind(self, bench: Bench, fate: str, kind: str) -> None:
        """Only what is tried again later is."""
        bench.target.fates["A"] = [fate]
        ident = bench.submit("order", "A")
        began = time.monotonic()
        bench.start("order")
        found = bench.until_state(ident, "done" if fate == "busy" else "not_done")
        first = bench.proxy.said("finding")[0]["result"]
        assert (first["finding"], first["kind"]) == ("not_done", kind)
        if fate == "busy":
            assert time.monotonic() - began > 1
        else:
            assert found["reason"] == kind
            assert bench.target.made() == {}
