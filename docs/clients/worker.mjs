// A worker for Node 18 or newer that uses nothing but its standard library; see docs/own-code.md.
//
// It makes orders: POST /orders, GET /orders?key=K to look up. With NAME it works on one operation
// and prints how that ended; without, on whatever is due, until SIGTERM.

import { randomUUID } from "node:crypto";
import http from "node:http";
import https from "node:https";
import { setTimeout as sleep } from "node:timers/promises";

const { ASCERTAIN_URL, ASCERTAIN_TOKEN, TARGET_URL, ACTION, NAME } = process.env;
const POLL = 100, AGAIN = 200, TRIES = 100; // ms, ms, and how often a report is sent at most
const ANSWER_WITHIN = 30_000; // ms
let stopping = false;

// The later of two clocks: the monotonic one stands still while the machine sleeps, and the time
// of day may be set back.
const origin = { mono: performance.now(), wall: Date.now() };
const clock = () => Math.max(performance.now() - origin.mono, Date.now() - origin.wall) / 1000;

// One request on a connection of its own: nothing below sends it a second time, or elsewhere.
function request(method, url, body, headers = {}) {
  return new Promise((resolve, reject) => {
    const via = url.startsWith("https:") ? https : http;
    const length = body === undefined ? {} : { "Content-Length": Buffer.byteLength(body) };
    const sent = via.request(url, { method, headers: { ...headers, ...length }, agent: false });
    sent.setTimeout(ANSWER_WITHIN, () => sent.destroy(new Error("no answer in time")));
    sent.on("error", reject);
    sent.on("response", (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("error", reject);
      answer.on("end", () => {
        if (!answer.complete) return reject(new Error("the answer was cut"));
        resolve({
          status: answer.statusCode,
          headers: answer.headers,
          text: Buffer.concat(parts).toString("utf8"),
        });
      });
    });
    sent.end(body);
  });
}

async function ask(path, body) {
  const headers = {
    Authorization: `Bearer ${ASCERTAIN_TOKEN}`,
    "Content-Type": "application/json",
  };
  const answer = await request("POST", ASCERTAIN_URL + path, JSON.stringify(body), headers);
  return { status: answer.status, body: JSON.parse(answer.text) };
}

// The server keeps a report once however often it comes: the body stays the same.
async function askUntilAnswered(path, body) {
  for (let n = 0; n < TRIES; n++) {
    try {
      const answer = await ask(path, body);
      if (answer.status < 500 && answer.status !== 429) return answer;
    } catch {
      // it may have arrived, and may not: again
    }
    await sleep(AGAIN);
  }
  throw new Error(`the server does not answer: ${path}`);
}

// Extends a lease until it is closed; `deadline` is when nothing may be sent any more.
function lease(permit, began) {
  const held = { deadline: began + permit.deadline_in, closed: false };
  const body = { operation: permit.operation.id, by: permit.lease_in };
  (async () => {
    for (;;) {
      await sleep((permit.lease_in * 1000) / 3, undefined, { ref: false });
      if (held.closed) return;
      const asked = clock(); // before it is sent: so the network only makes it shorter
      try {
        const answer = await ask(`/v1/work/${permit.attempt}/extend`, body);
        // Lost, or as long as it may be: nothing is sent after the deadline.
        if (answer.status !== 200) return;
        held.deadline = asked + answer.body.deadline_in;
      } catch {
        // not known to be longer, so it is not
      }
    }
  })();
  return held;
}

function report(permit, said) {
  const body = { operation: permit.operation.id, report: randomUUID(), ...said };
  return askUntilAnswered(`/v1/work/${permit.attempt}/finding`, body);
}

// Execute or replay: at most one effect request, never after the deadline.
async function act(permit, began) {
  const held = lease(permit, began);
  try {
    const name = permit.input.name;
    try {
      await request("GET", `${TARGET_URL}/before?name=${encodeURIComponent(name)}`);
    } catch {
      // a question, not an effect
    }
    if (clock() >= held.deadline) {
      const body = { operation: permit.operation.id };
      await askUntilAnswered(`/v1/work/${permit.attempt}/release`, body);
      return;
    }
    await report(permit, { result: await send(permit, name) });
  } finally {
    held.closed = true;
  }
}

// Everything that is not certain is unknown, also every exception.
async function send(permit, name) {
  // The same bytes in every attempt: nothing of a clock, of chance, or of this process.
  const body = JSON.stringify({ key: permit.target_key, name });
  const headers = { "Content-Type": "application/json", "Idempotency-Key": permit.target_key };
  let evidence = {};
  try {
    const answer = await request("POST", `${TARGET_URL}/orders`, body, headers);
    evidence = { status: answer.status };
    const kind = { 422: "invalid", 401: "unauthorized", 429: "throttled" }[answer.status];
    if (kind) { // listed by the target as answers that it gives before it does anything
      const wait = kind === "throttled" ? Number(answer.headers["retry-after"]) : NaN;
      const retry_after = Number.isFinite(wait) ? wait : null;
      return { finding: "not_done", kind, retry_after, evidence };
    }
    if (answer.status === 201) {
      return { finding: "done", ref: JSON.parse(answer.text).id, evidence };
    }
    return { finding: "unknown", reason: `HTTP ${answer.status}`, evidence };
  } catch (error) {
    if (error.code === "ECONNREFUSED") { // no connection: not one byte was sent
      return { finding: "not_done", kind: "transient", reason: "cannot be reached" };
    }
    return { finding: "unknown", reason: error.name, evidence };
  }
}

// Every key that is asked for, the controls too; what goes wrong is unknown, never absent.
async function lookUp(permit) {
  const found = [];
  for (const one of permit.target_keys) {
    found.push({ target_key: one.target_key, ...(await find(one.target_key)) });
  }
  await report(permit, { look_up: found });
}

async function find(key) {
  try {
    const answer = await request("GET", `${TARGET_URL}/orders?key=${encodeURIComponent(key)}`);
    if (answer.status !== 200) return { finding: "unknown", reason: `HTTP ${answer.status}` };
    const refs = JSON.parse(answer.text).orders.map((order) => order.id);
    if (refs.length > 1) return { finding: "several", refs };
    return refs.length ? { finding: "done", ref: refs[0] } : { finding: "absent" };
  } catch (error) {
    return { finding: "unknown", reason: error.name };
  }
}

async function workOn(permit, began) {
  if (permit.permit === "execute" || permit.permit === "replay") await act(permit, began);
  else if (permit.permit === "look_up") await lookUp(permit);
}

// Work on one operation until it has happened, or a person is next.
async function one(name) {
  for (;;) {
    const began = clock();
    const asked = { action: ACTION, input: { name }, wait: 10, claim: randomUUID() };
    const { status, body } = await askUntilAnswered("/v1/work/claim", asked);
    if (status !== 200 || body.permit === "reuse") {
      console.log(JSON.stringify(body));
      return status === 200 ? 0 : 3;
    }
    await workOn(body, began);
    if (body.permit === "wait") await sleep(Math.min(body.retry_after, 10) * 1000);
  }
}

async function due() {
  while (!stopping) {
    const began = clock();
    // One at a time: no more is claimed than can start now.
    const asked = { actions: [ACTION], limit: 1, claim: randomUUID() };
    const { status, body } = await askUntilAnswered("/v1/work/due", asked);
    if (status !== 200) throw new Error(body.detail ?? String(status));
    for (const permit of body.items) await workOn(permit, began);
    if (body.items.length === 0) await sleep(POLL);
  }
  return 0;
}

process.on("SIGTERM", () => { stopping = true; }); // what is under way is finished
process.exitCode = await (NAME ? one(NAME) : due());
