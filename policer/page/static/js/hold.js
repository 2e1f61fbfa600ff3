// Holds the display still, while what is shown goes on being gathered.

import { el } from "./dom.js";

/** Tells of "changed". */
export const display = new EventTarget();

let still = false;

/** Whether what is shown is to stay as it is. */
export const held = () => still;

/** Hold the display, or let it go. */
export function hold(wanted) {
  if (still === wanted) return;
  still = wanted;
  display.dispatchEvent(new Event("changed"));
}

/** Return the button that holds the display and lets it go. */
export function holdButton() {
  const button = el("button", { type: "button", "aria-pressed": "false" }, "Hold the display");
  button.addEventListener("click", () => hold(!still));
  display.addEventListener("changed", () => button.setAttribute("aria-pressed", String(still)));
  return button;
}
