"""Each library as its users would call it: the same effect, once under a key, then the same key.

A side opens a library on an empty store and yields how it is called and what its own connection
says about durability. What is imported is imported here, in a process of that library's own.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from bench.common import RESULT, TEXT, PostgresFloor, SqliteFloor

NOTE = RESULT[:57]  # with the rest, a result of about 85 bytes

Timed = tuple[int, float]  # operations, and the seconds that they took


class Way(NamedTuple):
    """How a library is called: for so many seconds with new keys, or with one that it knows."""

    new: Callable[[float], Timed]
    again: Callable[[float], Timed] | None = None


class Opened(NamedTuple):
    """A library on its store; `seen` is read through the connection that it uses itself."""

    ways: dict[str, Way]  # by the end of their name; "" where there is only one
    seen: str
    durable: bool


class Effect:
    """Does nothing, so that what remains is the library; counts, so that no call goes missing."""

    def __init__(self) -> None:
        self.ran = 0

    def __call__(self, number: int, text: str) -> dict[str, str]:
        """Make the object of this number."""
        self.ran += 1
        return made(number)


effect = Effect()


def made(number: int) -> dict[str, str]:
    """Return what the effect answers for this number."""
    return {"ref": f"ref-{number}", "note": NOTE}


def calls(do: Callable[[int], Any], *, answers: bool = True) -> Way:
    """Make a way from what does one operation and returns its result."""
    numbers = count(1)

    def timed(seconds: float, known: int | None = None) -> Timed:
        done, start, number, result = 0, time.perf_counter(), 0, None
        while (spent := time.perf_counter() - start) < seconds:
            number = known or next(numbers)
            result = do(number)
            done += 1
        if answers and result != made(number):
            raise RuntimeError(f"operation {number} was answered with {result}")
        return done, spent

    return Way(timed, (lambda seconds: timed(seconds, 1)) if answers else None)


def on_sqlite(execute: Callable[[str], Any]) -> tuple[str, bool]:
    """Ask a connection how it writes; FULL (2) or EXTRA (3) waits for the disk at each commit."""
    journal, level = (
        next(iter(execute(f"pragma {name}")))[0] for name in ("journal_mode", "synchronous")
    )
    version = next(iter(execute("select sqlite_version()")))[0]
    names = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}
    return f"SQLite {version}, {journal.upper()}, synchronous={names[level]}", level >= 2


def on_postgres(execute: Callable[[str], Any]) -> tuple[str, bool]:
    """Ask a session how it commits."""
    found = []
    for name in ("server_version", "fsync", "synchronous_commit"):
        row = execute(f"select current_setting('{name}') as value").fetchone()
        found.append(row["value"] if isinstance(row, dict) else row[0])
    version, fsync, commit = found
    seen = f"PostgreSQL {version}, fsync={fsync}, synchronous_commit={commit}"
    return seen, fsync == commit == "on"


@contextmanager
def floor(address: str) -> Iterator[Opened]:
    """The bare driver, two commits; on Redis, two SETs."""
    if address.startswith("redis:"):
        client, seen = redis_client(address)

        def do(number: int) -> None:
            client.set(str(number), TEXT, nx=True, ex=3600)
            client.set(str(number), RESULT, ex=3600)

        yield Opened({"": calls(do, answers=False)}, *seen)
        return
    postgres = address.startswith("postgres")
    with closing(PostgresFloor(address) if postgres else SqliteFloor(Path(address))) as bare:
        seen = (on_postgres if postgres else on_sqlite)(bare.raw.execute)
        yield Opened({"": calls(bare.do, answers=False)}, *seen)


@contextmanager
def ascertain(address: str) -> Iterator[Opened]:
    """An action, called."""
    import ascertain as library

    with library.open(address) as ledger:

        @ledger.action("bench.noop", key="{number}", owner="bench")
        def act(call, number, text):
            result = effect(number, text)
            return library.Done(ref=result["ref"], result=result)

        def do(number: int) -> Any:
            return act(number=number, text=TEXT).result

        store: Any = ledger.store
        do(0)  # so that the connection that writes is there
        if address.startswith("postgres"):
            with store._writers.use() as raw:
                seen = on_postgres(raw.execute)
        else:
            seen = on_sqlite(store._writer._raw.execute)
        yield Opened({"": calls(do)}, *seen)


@contextmanager
def justonce(address: str) -> Iterator[Opened]:
    """`Idempotent.run` with a key and a payload."""
    from justonce import Idempotent, operation_key

    if address.startswith("postgres"):
        from justonce.stores.postgres import PostgresStore

        store: Any = PostgresStore(address)
        with store._connect() as raw:  # it makes a new one for every call
            seen = on_postgres(raw.execute)
    else:
        from justonce.stores import SqliteStore

        store = SqliteStore(address)
        seen = on_sqlite(store._conn.execute)
    runner = Idempotent(store)

    def do(number: int) -> Any:
        payload = {"number": number, "text": TEXT}
        key = operation_key("bench.noop", number)
        return runner.run(key, lambda: effect(number, TEXT), payload=payload).value

    yield Opened({"": calls(do)}, *seen)


@contextmanager
def agent_once(address: str) -> Iterator[Opened]:
    """A function decorated as a tool."""
    from once import Once

    with Once(address) as library:
        store: Any = library.store

        @library.tool(name="bench.noop")
        def act(number: int, text: str) -> dict[str, str]:
            return effect(number, text)

        reads = on_postgres if address.startswith("postgres") else on_sqlite
        yield Opened({"": calls(lambda n: act(n, TEXT))}, *reads(store._conn().execute))


@contextmanager
def dbos(address: str) -> Iterator[Opened]:
    """Steps of one long workflow; and a workflow of one step, under its own id."""
    import logging

    from dbos import DBOS, SetWorkflowID

    postgres = address.startswith("postgres")
    url = address if postgres else f"sqlite:///{address}"
    library = DBOS(config={"name": "bench", "system_database_url": url, "log_level": "WARNING"})
    logging.getLogger("dbos").setLevel(logging.ERROR)

    @DBOS.step()
    def act(number: int, text: str) -> dict[str, str]:
        return effect(number, text)

    @DBOS.workflow()
    def single(number: int, text: str) -> dict[str, str]:
        return act(number, text)

    @DBOS.workflow()
    def many(seconds: float) -> list[float]:
        return list(calls(lambda number: act(number, TEXT)).new(seconds))

    def steps(seconds: float) -> Timed:
        done, spent = many(seconds)
        return int(done), spent

    def do(number: int) -> Any:
        with SetWorkflowID(f"noop-{number}"):
            return single(number, TEXT)

    DBOS.launch()
    try:
        with library._sys_db.engine.connect() as made_by_dbos:
            raw: Any = made_by_dbos.connection.dbapi_connection
            seen = (on_postgres if postgres else on_sqlite)(raw.execute)
        yield Opened({"step": Way(steps), "workflow": calls(do)}, *seen)
    finally:
        DBOS.destroy()


@contextmanager
def dbos_wal(address: str) -> Iterator[Opened]:
    """DBOS on a file that was put into WAL mode before: a file keeps that, DBOS does not ask."""
    with closing(sqlite3.connect(address)) as raw:
        raw.execute("pragma journal_mode = wal")
    with dbos(address) as opened:
        yield opened


class State(TypedDict):
    """What LangGraph hands from node to node."""

    number: int
    text: str
    until: float
    result: Any


@contextmanager
def langgraph(address: str) -> Iterator[Opened]:
    """Nodes of one long graph; and a graph of one node, under its own thread."""
    from langgraph.graph import END, START, StateGraph

    def node(state: State) -> dict[str, Any]:
        number = state["number"]
        return {"number": number + 1, "result": effect(number, state["text"])}

    def onward(state: State) -> str:
        return "act" if time.perf_counter() < state["until"] else END

    def graph(saver: Any, *, long: bool) -> Any:
        graph = StateGraph(State)
        graph.add_node("act", node)
        graph.add_edge(START, "act")
        if long:
            graph.add_conditional_edges("act", onward)
        else:
            graph.add_edge("act", END)
        return graph.compile(checkpointer=saver)

    def invoke(of: Any, given: Any, thread: str) -> Any:
        config = {"configurable": {"thread_id": thread}, "recursion_limit": 10**9}
        return of.invoke(given, config, durability="sync")

    with ExitStack() as open_:
        saver, seen = open_.enter_context(saving(address))
        long, short, threads = graph(saver, long=True), graph(saver, long=False), count(1)

        def nodes(seconds: float) -> Timed:
            start = time.perf_counter()
            given = {"number": 0, "text": TEXT, "until": start + seconds}
            state = invoke(long, given, f"long-{next(threads)}")
            return state["number"], time.perf_counter() - start

        def do(number: int) -> Any:
            return invoke(short, {"number": number, "text": TEXT}, str(number))["result"]

        def read(seconds: float) -> Timed:
            """Without input: with its input again, the thread would run the node again."""
            again = calls(lambda _: invoke(short, None, "1")["result"]).again
            assert again
            return again(seconds)

        graphs = Way(calls(do).new, read)
        yield Opened({"node": Way(nodes), "graph": graphs}, *seen)


@contextmanager
def saving(address: str) -> Iterator[tuple[Any, tuple[str, bool]]]:
    """Give LangGraph's own checkpointer, and what its connection says."""
    if address.startswith("postgres"):
        from langgraph.checkpoint.postgres import PostgresSaver as Saver

        reads: Any = on_postgres
    else:
        from langgraph.checkpoint.sqlite import SqliteSaver as Saver  # type: ignore[assignment]

        reads = on_sqlite
    with Saver.from_conn_string(address) as saver:
        saver.setup()
        connection: Any = saver.conn
        yield saver, reads(connection.execute)


class Context:
    """What Lambda gives a function: powertools asks it how long an attempt may still run."""

    def get_remaining_time_in_millis(self) -> int:
        """Return plenty."""
        return 60_000


@contextmanager
def powertools(address: str) -> Iterator[Opened]:
    """`idempotent_function` in a Lambda's context; the key is a hash of the whole input.

    A key beside a checked payload (`payload_validation_jmespath`) does not work on Redis: 3.37
    drops the payload's hash when it saves the result, so the same call again is refused.
    """
    from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
    from aws_lambda_powertools.utilities.idempotency.persistence.redis import (
        RedisCachePersistenceLayer,
    )

    client, seen = redis_client(address)
    config = IdempotencyConfig(expires_after_seconds=3600)
    config.register_lambda_context(Context())  # type: ignore[arg-type]

    @idempotent_function(  # type: ignore[untyped-decorator]
        data_keyword_argument="record",
        persistence_store=RedisCachePersistenceLayer(client=client),
        config=config,
    )
    def act(record: dict[str, Any]) -> dict[str, str]:
        return effect(record["number"], record["text"])

    yield Opened({"": calls(lambda n: act(record={"number": n, "text": TEXT}))}, *seen)


def redis_client(address: str) -> tuple[Any, tuple[str, bool]]:
    """Connect, and ask the server how it writes."""
    import redis

    client = redis.Redis.from_url(address, decode_responses=True)
    asked: Any = client.config_get("append*") | client.info("server")
    seen = f"Redis {asked['redis_version']}, appendonly={asked['appendonly']}"
    seen += f", appendfsync={asked['appendfsync']}"
    return client, (seen, seen.endswith("appendonly=yes, appendfsync=always"))


# Name: how it is opened, which package it is, and on which stores.
Side = Callable[[str], AbstractContextManager[Opened]]
SIDES: dict[str, tuple[Side, str, tuple[str, ...]]] = {
    "floor": (floor, "ascertain", ("sqlite", "redis", "postgres")),
    "ascertain": (ascertain, "ascertain", ("sqlite", "postgres")),
    "justonce": (justonce, "justonce", ("sqlite", "postgres")),
    "agent_once": (agent_once, "agent-once", ("sqlite", "postgres")),
    "powertools": (powertools, "aws-lambda-powertools", ("redis",)),
    "dbos": (dbos, "dbos", ("sqlite", "postgres")),
    "dbos_wal": (dbos_wal, "dbos", ("sqlite",)),
    "langgraph": (langgraph, "langgraph", ("sqlite", "postgres")),
}

# Nothing is to be sent anywhere, nor asked for on the way.
os.environ |= {"LANGSMITH_TRACING": "false", "POWERTOOLS_SERVICE_NAME": "bench"}
