// Where the contract of a router is: on its host, or with the router from host to host.

import { call, Problem, v1 } from "./api.js";

/** Return the path of the contract that a router on a host has, or would be given there. */
export async function contractPlace({ host, vr, signal }) {
  const ofHost = v1("hosts", host, "contracts", vr);
  try {
    const { value } = await call("GET", v1("hosts", host, "routers", vr), { signal });
    return value.follows ? v1("routers", value.follows, "contract") : ofHost;
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return ofHost;
    throw error;
  }
}
