// Which view an address shows: "#/hosts/edge-1/routers/gold"; pure.

const PATTERNS = [
  ["fleet", ""],
  ["host", "hosts/:host"],
  ["router", "hosts/:host/routers/:vr"],
  ["events", "events"],
  ["punishments", "punishments"],
  ["reports", "reports"],
  ["classes", "classes"],
  ["overrides", "overrides"],
  ["capacity", "capacity"],
  ["audit", "audit"],
  ["access", "access"],
];

/** Return {name, params, query} of a hash; the name is "nowhere" where there is no such view. */
export function route(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").map(decoded);
  for (const [name, pattern] of PATTERNS) {
    const params = fits(pattern.split("/"), parts);
    if (params) return { name, params, query: new URLSearchParams(search) };
  }
  return { name: "nowhere", params: {}, query: new URLSearchParams() };
}

function fits(pattern, parts) {
  if (pattern.length !== parts.length) return null;
  const params = {};
  for (const [index, word] of pattern.entries()) {
    if (word.startsWith(":")) params[word.slice(1)] = parts[index];
    else if (word !== parts[index]) return null;
  }
  return params;
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a stray percent sign: no view has it, and "nowhere" is shown
  }
}

/** Return the address of a view. */
export const to = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;
export const toHost = (host) => to("hosts", host);
export const toRouter = (host, vr) => to("hosts", host, "routers", vr);
