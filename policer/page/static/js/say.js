// Tells a screen reader what happened, without moving the focus.

import { write } from "./dom.js";

/** Say something that does not interrupt. */
export function say(words) {
  const region = document.getElementById("said");
  write(region, "");
  requestAnimationFrame(() => write(region, words));
}
