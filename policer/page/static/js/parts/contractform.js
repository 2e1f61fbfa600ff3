// The form of one router's contract: errors at their fields, conflicts explained, nothing lost.

import { call, Problem } from "../api.js";
import { atFields, contractOf, NEW, PUNISH, rateText, STEPS, valuesOf } from "../contract.js";
import { contractPlace } from "../contractplace.js";
import { confirmed } from "../dialog.js";
import { el, time, write } from "../dom.js";
import {
  choiceField,
  clearErrors,
  sentence,
  showErrors,
  textField,
  tickField,
  tickGroup,
} from "../fields.js";
import { say } from "../say.js";
import { limited, may } from "../session.js";
import { guard, settle } from "../unsaved.js";
import { stamp } from "../zone.js";
import { Notice } from "./notice.js";

const NUMBERS = [
  [
    "guarantee_pps",
    "Guarantee, packets/s or b/s",
    "Throughput that it gets whenever it wants it, such as 20k or 50 Mb/s.",
  ],
  [
    "ceiling_pps",
    "Ceiling, packets/s or b/s",
    "It never gets more; leave it empty for no ceiling.",
  ],
  ["weight", "Weight", "Its share of the capacity left, relative to other routers' weights."],
  [
    "burst",
    "Burst, packets",
    "Beyond its setpoint over any window; leave it empty for 0.2 s of the setpoint.",
  ],
  [
    "burst_packets",
    "Saved burst, packets",
    "What it may save below its ceiling and forward above.",
  ],
  ["cost", "Cost of a packet", "Relative to an ordinary packet, which costs 1."],
  ["packet_bytes", "Packet size, bytes", "The mean size for which rates in b/s are sold."],
];

const OWNER = "Tenant of the router, for tokens limited to tenants; empty: no tenant.";
const WHEN = "It does not choose what is sent to it; while CPU is left, that harms no other router.";

export class ContractForm {
  #etag = null;
  #entered = {};
  #saving = false;

  /** changed: is called when the contract was changed from here. */
  constructor({ host, vr, signal, changed }) {
    Object.assign(this, { host, vr, signal, changed });
    this.state = el("p", { class: "quiet" }, "Reading…");
    this.notice = new Notice();
    this.save = el("button", { class: "first" }, "Save");
    this.remove = el("button", { type: "button", class: "harsh", hidden: true }, "Remove contract");
    this.remove.addEventListener("click", () => this.#askToRemove());
    this.form = this.#build();
    this.node = el("div", {}, this.state, this.notice.node, this.form);
  }

  #build() {
    const choices = STEPS.map(([value, label]) => ({ value, label }));
    const hint = "What may be done when it misbehaves, from the mildest to the hardest.";
    const fields = NUMBERS.map(([name, label, text]) => textField({ name, label, hint: text }));
    const measures = tickGroup({ name: "measures", label: "Measures", hint, choices });
    const when = choiceField({ name: "punish", label: "Punish it", hint: WHEN, choices: PUNISH });
    const dry = tickField({ name: "dry_run", label: "Dry run: misbehaviour is only reported" });
    const tenant = textField({ name: "tenant", label: "Tenant", hint: OWNER, readonly: limited() });
    const mayNot = limited() && !may("operate");
    const actions = el("p", { class: "actions", hidden: mayNot }, this.save, this.remove);
    const form = el("form", { novalidate: true }, el("div", { class: "fields" }, fields));
    form.append(measures, when, tenant, dry, actions);
    form.addEventListener("submit", (event) => this.#submit(event));
    return guard(form);
  }

  /** Show what stands now; what was typed is gone. */
  async load() {
    try {
      this.where = await contractPlace(this);
      const { value, etag } = await call("GET", this.where, { signal: this.signal });
      this.#stands(value, etag);
    } catch (error) {
      this.#notRead(error);
    }
  }

  #stands({ contract, version, changed_at: at, changed_by: by }, etag) {
    this.#etag = etag;
    this.#entered = contract;
    this.#fill(contract);
    const when = [`Version ${version}, by ${by} at `, time(at), "."];
    this.state.replaceChildren(...when, ...besides(contract).map((words) => ` ${words}`));
    write(this.save, "Save");
    this.remove.hidden = false;
  }

  #notRead(error) {
    if (this.signal.aborted) return;
    if (!(error instanceof Problem)) throw error;
    if (error.status === 404) this.#standsNone();
    else this.notice.show(`The contract could not be read: ${error.message}`, this.#reloading());
  }

  #standsNone() {
    this.#etag = null;
    this.#entered = {};
    this.#fill(NEW);
    write(this.state, "This router has no contract.");
    write(this.save, "Make the contract");
    this.remove.hidden = true;
  }

  #fill(contract) {
    for (const [name] of NUMBERS) this.form.elements[name].value = contract[name] ?? "";
    this.form.elements.tenant.value = contract.tenant ?? "";
    for (const name of ["guarantee", "ceiling"])
      this.form.elements[`${name}_pps`].value = rateText(contract, name);
    for (const box of this.form.elements.measures)
      box.checked = contract.measures.includes(box.value);
    this.form.elements.dry_run.checked = contract.dry_run;
    this.form.elements.punish.value = contract.punish;
    this.notice.clear();
    clearErrors(this.form);
    settle(this.form);
  }

  async #submit(event) {
    event.preventDefault();
    if (this.#saving) return;
    this.notice.clear();
    const { contract, errors } = contractOf(valuesOf(this.form));
    if (errors.length > 0) showErrors(this.form, errors);
    else await this.#alone(() => this.#put(contract));
  }

  /** Do one thing at a time: a second press of the button is no second request. */
  async #alone(work) {
    this.#saving = true;
    try {
      await work();
    } catch (error) {
      this.#refused(error);
    } finally {
      this.#saving = false;
    }
  }

  async #put(contract) {
    clearErrors(this.form);
    const headers = this.#etag ? { "If-Match": this.#etag } : { "If-None-Match": "*" };
    const { value, etag } = await call("PUT", this.where, {
      body: { ...this.#entered, ...contract }, // what the form does not show stays
      headers,
    });
    this.#stands(value, etag);
    say(`Saved as version ${value.version}.`);
    this.changed();
  }

  async #askToRemove() {
    const question = `Remove the contract of ${this.vr}?`;
    const consequence = "It then gets a share of what the others leave, and no guarantee.";
    if (!(await confirmed({ question, consequence, yes: "Remove", harsh: true }))) return;
    await this.#alone(async () => {
      await call("DELETE", this.where, { headers: { "If-Match": this.#etag } });
      this.#standsNone();
      say("The contract was removed.");
      this.changed();
    });
  }

  #refused(error) {
    if (!(error instanceof Problem)) throw error;
    if ([409, 412].includes(error.status)) {
      const words = "This contract was changed since you read it. Your input was not saved.";
      this.notice.show(`${words} Reload to see what stands now.`, this.#reloading());
      this.notice.node.querySelector("button").focus();
      return;
    }
    const unplaced = showErrors(this.form, atFields(error.errors));
    if (error.errors.length === 0) this.notice.show(`Not saved: ${error.message}`);
    else if (unplaced.length > 0) this.notice.show(unplaced.map(inFull).join("; "));
  }

  #reloading() {
    const reload = async () => {
      await this.load();
      this.form.elements.guarantee_pps.focus();
      say(this.state.textContent);
      this.changed();
    };
    return { buttons: [el("button", { type: "button", click: reload }, "Reload")] };
  }
}

/** Return sentences on what a contract has that the form does not show. */
function besides(contract) {
  const dates = [
    contract.valid_from && `from ${stamp(contract.valid_from)}`,
    contract.valid_until && `until ${stamp(contract.valid_until)}`,
    contract.hours?.length > 0 && `at ${contract.hours.length} windows of the week`,
  ].filter(Boolean);
  return [
    contract.class && `Its terms are those of the class ${contract.class}.`,
    dates.length > 0 && `It holds ${dates.join(", ")}.`,
  ].filter(Boolean);
}

const inFull = ({ field, problem, fix }) => `${field}: ${sentence(problem, fix)}`;
