// The token of this tab: gone when the tab is closed, and written nowhere else.
//
// What the token may do is kept with it, to hide what it may not. The service alone decides.

const KEY = "policer-token";
const WHO = "policer-asker";
const SCOPES = ["read", "operate", "admin"];

/** Emits "changed" after a sign-in or sign-out. */
export const session = new EventTarget();

/** Why the last session ended; empty after a sign-out. */
let ended = "";

export const token = () => sessionStorage.getItem(KEY);

export const whyEnded = () => ended;

/** Return what the service said of the token: name, id, scopes, reach, end. */
export function asker() {
  return JSON.parse(sessionStorage.getItem(WHO) ?? "null");
}

/** Whether the token's scope includes another. */
export function may(scope) {
  const own = asker()?.scopes ?? SCOPES;
  return own.some((one) => SCOPES.indexOf(one) >= SCOPES.indexOf(scope));
}

/** Whether the token is limited to hosts, routers or tenants. */
export const limited = () => Object.values(asker()?.reach ?? {}).some((names) => names.length > 0);

/** Whether it is limited so that it sees routers, and no host as a whole. */
export function partial() {
  const { routers = [], tenants = [] } = asker()?.reach ?? {};
  return routers.length + tenants.length > 0;
}

export function signIn(secret, who) {
  ended = "";
  sessionStorage.setItem(WHO, JSON.stringify(who));
  sessionStorage.setItem(KEY, secret);
  session.dispatchEvent(new Event("changed"));
}

/** End the session; many requests may find at once that it is over, and the first says so. */
export function signOut(why = "") {
  if (!token()) return;
  ended = why;
  sessionStorage.removeItem(KEY);
  sessionStorage.removeItem(WHO);
  session.dispatchEvent(new Event("changed"));
}
