// The form of what a host can forward.

import { call, Problem, v1 } from "../api.js";
import { noNumber, number } from "../contract.js";
import { el, time } from "../dom.js";
import { clearErrors, showErrors, textField, tickField } from "../fields.js";
import { say } from "../say.js";
import { guard, settle } from "../unsaved.js";
import { Notice } from "./notice.js";

const HINT = "What all its routers forward together, as xtc-train measured it.";

export class CapacityForm {
  #entry = null;
  #etag = null;

  constructor({ host, signal }) {
    this.where = v1("hosts", host);
    this.signal = signal;
    this.state = el("p", { class: "quiet" }, "Reading…");
    this.notice = new Notice();
    this.form = this.#build();
    this.node = el("div", {}, this.state, this.notice.node, this.form);
  }

  #build() {
    const label = "Capacity, packets/s";
    const capacity = textField({ name: "capacity_pps", label, hint: HINT });
    const over = tickField({ name: "overcommit", label: "Guarantees may exceed the capacity" });
    const save = el("p", { class: "actions" }, el("button", { class: "first" }, "Save"));
    const form = el(
      "form",
      { novalidate: true },
      el("div", { class: "fields" }, capacity),
      over,
      save,
    );
    form.addEventListener("submit", (event) => this.#submit(event));
    return guard(form);
  }

  async load() {
    try {
      const { value, etag } = await call("GET", this.where, { signal: this.signal });
      this.#stands(value, etag);
    } catch (error) {
      if (this.signal.aborted) return;
      this.#refused(error);
    }
  }

  #stands({ entry, version, changed_at: at, changed_by: by }, etag) {
    this.#entry = entry;
    this.#etag = etag;
    this.form.elements.capacity_pps.value = entry.capacity_pps;
    this.form.elements.overcommit.checked = entry.overcommit;
    const source = entry.capacity_source === "model" ? "a model file" : "an operator";
    const said = [`Version ${version}, by ${by} at `, time(at)];
    this.state.replaceChildren(...said, `; the capacity is from ${source}.`);
    settle(this.form);
    this.notice.clear();
    clearErrors(this.form);
  }

  async #submit(event) {
    event.preventDefault();
    this.notice.clear();
    clearErrors(this.form);
    const text = this.form.elements.capacity_pps.value;
    const capacity = number(text);
    if (Number.isNaN(capacity)) showErrors(this.form, [noNumber("capacity_pps", text)]);
    else await this.#put(capacity).catch((error) => this.#refused(error));
  }

  async #put(capacity) {
    const changed = capacity !== this.#entry.capacity_pps;
    const source = changed ? "operator" : this.#entry.capacity_source;
    const overcommit = this.form.elements.overcommit.checked;
    const body = { ...this.#entry, capacity_pps: capacity, overcommit, capacity_source: source };
    const headers = { "If-Match": this.#etag };
    const { value, etag } = await call("PUT", this.where, { body, headers });
    this.#stands(value, etag);
    say(`Saved as version ${value.version}.`);
  }

  #refused(error) {
    if (!(error instanceof Problem)) throw error;
    const unplaced = showErrors(this.form, error.errors);
    if (error.errors.length > 0 && unplaced.length === 0) return;
    const stale = error.status === 412;
    const words = stale ? "This host was changed since you read it." : error.message;
    const reload = el("button", { type: "button", click: () => this.load() }, "Reload");
    this.notice.show(`Not done: ${words}`, { buttons: [reload] });
  }
}
