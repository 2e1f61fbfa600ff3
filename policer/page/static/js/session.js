// The token of this tab: gone when the tab is closed, and written nowhere else.

const KEY = "policer-token";

/** Tells of "changed": somebody signed in or out. */
export const session = new EventTarget();

/** Why the last session ended; empty where somebody signed out. */
let ended = "";

export const token = () => sessionStorage.getItem(KEY);

export const whyEnded = () => ended;

export function signIn(secret) {
  ended = "";
  sessionStorage.setItem(KEY, secret);
  session.dispatchEvent(new Event("changed"));
}

/** End the session; many requests may find at once that it is over, and the first says so. */
export function signOut(why = "") {
  if (!token()) return;
  ended = why;
  sessionStorage.removeItem(KEY);
  session.dispatchEvent(new Event("changed"));
}
