// Asks the service, and turns its refusals into one kind of error.

import { signOut, token } from "./session.js";

const PATIENCE_MS = 10000;
const MOST_PAGES = 200;

/** What the service refused, in its own words (RFC 9457); status 0 where it did not answer. */
export class Problem extends Error {
  constructor(status, { title = "", detail = "", errors = [] } = {}, retryAfter = null) {
    super(detail || title || `the service answered ${status}`);
    this.status = status;
    this.title = title;
    this.errors = errors;
    this.retryAfter = retryAfter;
  }
}

/** Return an address under /v1 from parts that may hold any character. */
export const v1 = (...parts) => `/v1/${parts.map(encodeURIComponent).join("/")}`;

/** Return an address with those parameters that say something. */
export function query(where, parameters) {
  const said = Object.entries(parameters).filter(([, value]) => value != null && value !== "");
  const text = new URLSearchParams(said).toString();
  return text ? `${where}?${text}` : where;
}

/**
 * Ask, and return {value, etag, status}.
 *
 * Throws Problem where the service refuses or does not answer; a token that it does not know ends
 * the session.
 */
export async function call(method, where, { body, headers = {}, signal, secret } = {}) {
  const answer = await send(method, where, { body, headers, signal, secret });
  if (answer.ok) {
    return {
      value: await answered(content(answer), signal),
      etag: answer.headers.get("ETag"),
      status: answer.status,
    };
  }
  throw await refused(answer, secret);
}

/** Have the browser save what the service answers as a file; throws Problem as `call` does. */
export async function save(where, name, signal) {
  const answer = await send("GET", where, { signal });
  if (!answer.ok) throw await refused(answer);
  const address = URL.createObjectURL(await answered(answer.blob(), signal));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}

async function send(method, where, { body, headers, signal, secret } = {}) {
  const late = AbortSignal.timeout(PATIENCE_MS);
  const asked = fetch(where, {
    method,
    headers: {
      ...bearer(secret),
      ...(body && { "Content-Type": "application/json" }),
      ...headers,
    },
    body: body && JSON.stringify(body),
    signal: signal ? AbortSignal.any([signal, late]) : late,
  });
  return answered(asked, signal);
}

/** Wait for an answer, or for its contents: the service may fall silent between the two. */
async function answered(reading, signal) {
  try {
    return await reading;
  } catch (error) {
    if (signal?.aborted || error instanceof SyntaxError) throw error;
    throw new Problem(0, { title: "The service does not answer." });
  }
}

/** Return the header that shows the token: the session's, unless another is to be tried. */
export function bearer(secret = token()) {
  return { Authorization: `Bearer ${secret}` };
}

/** Return the Problem of an answer that refuses; ends the session on 401. */
export async function refused(answer, secret) {
  if (answer.status === 401 && !secret) {
    signOut("The service knows this token no longer: it has expired or was revoked.");
  }
  const said = await content(answer).catch(() => null);
  const wait = Number.parseFloat(answer.headers.get("Retry-After"));
  return new Problem(answer.status, said ?? {}, Number.isFinite(wait) ? wait : null);
}

async function content(answer) {
  const type = answer.headers.get("Content-Type") ?? "";
  return type.includes("json") ? answer.json() : null;
}

/** Return all items of a list that comes in pages. */
export async function readAll(where, { signal, limit = 200, ...parameters } = {}) {
  const items = [];
  let after = null;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const { value } = await call("GET", query(where, { ...parameters, limit, after }), { signal });
    items.push(...value.items);
    after = value.next;
    if (after == null) return items;
  }
  throw new Problem(0, { title: `${where} has more than ${items.length} entries.` });
}
