"""Several processes and threads on one store: one winner per key, no due work twice.

What was acknowledged and survives a kill is the matter of tests/crash.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter

import pytest

from ascertain.store import open_store
from ascertain.testing.story import ACTION, NAMESPACE, NOW, Maker, write

PROCESSES, THREADS, KEYS = 4, 4, 40

COMPETE = """
import json, sys, threading
from ascertain.store import open_store
from ascertain.testing.story import Maker
url, number, threads, keys = sys.argv[1], *map(int, sys.argv[2:])
store = open_store(url)
won, lost, lock = [], [], threading.Lock()
def work(make):
    for key in range(keys):
        [answer] = store.write([make.claim(f"k{key}")])
        with lock:
            (won if answer.applied else lost).append(
                [f"k{key}", None if answer.current is None else answer.current.operation.key]
            )
makers = [Maker(1_000_000 * (number * threads + n + 1)) for n in range(threads)]
workers = [threading.Thread(target=work, args=(make,)) for make in makers]
print("ready", flush=True); sys.stdin.readline()
for worker in workers: worker.start()
for worker in workers: worker.join()
store.close()
print(json.dumps([won, lost]))
"""

TAKE = """
import json, sys
from ascertain.store import open_store
from ascertain.testing.story import ACTION, NAMESPACE, NOW
store = open_store(sys.argv[1])
print("ready", flush=True); sys.stdin.readline()
taken, idle = [], 0
while idle < 3:
    found = store.take(2 * NOW, 3 * NOW, NAMESPACE, [ACTION], 7)
    idle = 0 if found else idle + 1
    taken += [one.operation.id for one in found]
store.close()
print(json.dumps(taken))
"""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "ascertain.db")
    return request.getfixturevalue("postgres_database")


def at_once(script, count, *arguments):
    """Start processes, let them go together, and return what each printed last."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script, *(str(a) for a in arguments[0](number))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [json.loads(process.communicate(timeout=50)[0]) for process in started]
    assert [process.returncode for process in started] == [0] * count
    return answers


@pytest.mark.timeout(60)
def test_a_key_is_won_exactly_once(url):
    open_store(url).close()
    answers = at_once(COMPETE, PROCESSES, lambda n: (url, n, THREADS, KEYS))
    won = Counter(key for winners, _ in answers for key, _ in winners)
    assert won == {f"k{n}": 1 for n in range(KEYS)}
    # Every loser was shown the winner, and none was told that there is nothing.
    lost = [row for _, losers in answers for row in losers]
    assert len(lost) == KEYS * (PROCESSES * THREADS - 1)
    assert all(asked == shown for asked, shown in lost)
    store = open_store(url)
    assert store.counts(NAMESPACE) == {"running": KEYS, "reviews": 0}
    assert store.check() == []
    store.close()


@pytest.mark.timeout(60)
def test_several_processes_make_the_same_new_store(tmp_path):
    path = str(tmp_path / "ascertain.db")
    answers = at_once(
        "from ascertain.store import open_store; import sys, json\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "store = open_store(sys.argv[1]); print(json.dumps(store.meta('secret')))\n",
        PROCESSES,
        lambda _: (path,),
    )
    assert len(set(answers)) == 1


@pytest.mark.timeout(60)
def test_due_work_is_given_to_one_process(url):
    store, make = open_store(url), Maker()
    claims = [make.claim(f"k{n}") for n in range(200)]
    assert all(write(store, *claims))
    answers = at_once(TAKE, PROCESSES, lambda _: (url,))
    taken = Counter(one for each in answers for one in each)
    assert taken == {claim.status.operation: 1 for claim in claims}
    store.close()


def test_due_work_is_given_to_one_thread(url):
    store, make = open_store(url), Maker()
    claims = [make.claim(f"k{n}") for n in range(200)]
    write(store, *claims)
    taken: list[str] = []

    def work():
        while found := store.take(2 * NOW, 3 * NOW, NAMESPACE, [ACTION], 5):
            taken.extend(one.operation.id for one in found)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # A worker that skips what others hold may find nothing and stop early; nobody finds one twice.
    taken += [one.operation.id for one in store.take(2 * NOW, 3 * NOW, NAMESPACE, [ACTION], 500)]
    assert Counter(taken) == {claim.status.operation: 1 for claim in claims}
    store.close()
