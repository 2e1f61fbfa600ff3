// What was typed and not saved: asks before it is lost.

import { confirmed } from "./dialog.js";

const touched = new Set();

/** Watch a form whose input is lost when the page or the view is left. */
export function guard(form) {
  form.addEventListener("input", () => touched.add(form));
  return form;
}

/** Note that what a form shows is what stands: nothing is lost with it. */
export const settle = (form) => touched.delete(form);

/** Whether a form that is shown has input that was not saved. */
export const unsaved = () => [...touched].some((form) => form.isConnected);

/** Forget all input: it may be lost. */
export const discard = () => touched.clear();

/** Return whether the user discards unsaved input. */
export async function mayLeave() {
  if (!unsaved()) return true;
  const question = "Leave without saving?";
  const consequence = "What you typed here is not saved, and is lost.";
  const left = await confirmed({ question, consequence, yes: "Leave", harsh: true });
  if (left) discard();
  return left;
}

/**
 * Return what to do on "hashchange": show the new view, or stay if a person wants to.
 *
 * The address is the old one again while the question is open.
 */
export function guarded(show) {
  let asking = false;
  return async (event) => {
    if (!unsaved()) return show();
    history.replaceState(null, "", event.oldURL);
    if (asking) return;
    asking = true;
    const left = await mayLeave();
    asking = false;
    if (!left) return;
    history.replaceState(null, "", event.newURL);
    show();
  };
}

addEventListener("beforeunload", (event) => {
  if (unsaved()) event.preventDefault();
});
