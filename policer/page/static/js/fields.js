// Fields of a form with their hints, and with what is wrong told at each.

import { el, freshId, write } from "./dom.js";

/** Return a labelled text field; its hint and its error describe it to a screen reader. */
export function textField({ name, label, hint = "", value = "", ...attributes }) {
  const id = freshId(name);
  const input = el("input", {
    id,
    name,
    value,
    type: "text",
    autocomplete: "off",
    "aria-describedby": `${id}-hint ${id}-wrong`,
    ...attributes,
  });
  return el(
    "div",
    { class: "field", "data-field": name },
    el("label", { for: id }, label),
    input,
    el("p", { class: "hint", id: `${id}-hint` }, hint),
    el("p", { class: "wrong", id: `${id}-wrong` }),
  );
}

/** Return a labelled list to choose from; its hint and its error describe it. */
export function choiceField({ name, label, hint, choices }) {
  const id = freshId(name);
  const options = choices.map(([value, words]) => el("option", { value }, words));
  const described = { "aria-describedby": `${id}-hint ${id}-wrong` };
  return el(
    "div",
    { class: "field", "data-field": name },
    el("label", { for: id }, label),
    el("select", { id, name, ...described }, options),
    el("p", { class: "hint", id: `${id}-hint` }, hint),
    el("p", { class: "wrong", id: `${id}-wrong` }),
  );
}

/** Return a box to tick. */
export function tickField({ name, label, value = "yes", checked = false }) {
  const id = freshId(name);
  const input = el("input", { id, name, value, type: "checkbox", checked });
  return el("div", { class: "tick" }, input, el("label", { for: id }, label));
}

/** Return a group of boxes to tick under one name; its hint and its error describe the group. */
export function tickGroup({ name, label, hint, choices }) {
  const id = freshId(name);
  return el(
    "fieldset",
    { class: "field", "data-field": name, "aria-describedby": `${id}-hint ${id}-wrong` },
    el("legend", {}, label),
    choices.map((choice) => tickField({ name, ...choice })),
    el("p", { class: "hint", id: `${id}-hint` }, hint),
    el("p", { class: "wrong", id: `${id}-wrong` }),
  );
}

/**
 * Tell each error, {field, problem, fix}, at its field, and go to the first.
 *
 * Returns the errors whose field this form does not have.
 */
export function showErrors(form, errors) {
  clearErrors(form);
  const unplaced = errors.filter((error) => !place(form, error));
  form.querySelector("[aria-invalid=true]")?.focus();
  return unplaced;
}

function place(form, { field, problem, fix }) {
  const box = form.querySelector(`[data-field="${CSS.escape(lastName(field))}"]`);
  if (!box) return false;
  write(box.querySelector(".wrong"), sentence(problem, fix));
  const target = box.querySelector("input:not([type=checkbox])") ?? box.querySelector("input");
  target.setAttribute("aria-invalid", "true");
  return true;
}

/** Return the name of a field from its path, such as "$.measures[0]". */
function lastName(path) {
  return path
    .replace(/\[[^\]]*\]/g, "")
    .split(".")
    .at(-1);
}

/** Return what is wrong and the fix. */
export function sentence(problem, fix) {
  return fix ? `${problem} (${fix})` : problem;
}

export function clearErrors(form) {
  for (const node of form.querySelectorAll("[aria-invalid]")) node.removeAttribute("aria-invalid");
  for (const node of form.querySelectorAll("[data-field] .wrong")) write(node, "");
}
