// Where a router stands on the ladder of its contract, and the way to pardon it.

import { call, Problem, v1 } from "../api.js";
import { STEPS } from "../contract.js";
import { confirmed } from "../dialog.js";
import { el, write } from "../dom.js";
import { words } from "../format.js";
import { say } from "../say.js";
import { limited, may } from "../session.js";
import { stamp } from "../zone.js";
import { Notice } from "./notice.js";

export class Ladder {
  #standing = null;

  constructor({ host, vr }) {
    Object.assign(this, { host, vr });
    this.state = el("p");
    this.evidence = el("p", { class: "quiet" });
    this.steps = STEPS.map(([step]) => el("li", { "data-step": step }));
    this.notice = new Notice();
    this.pardon = el("button", { type: "button", hidden: true }, "Pardon");
    this.pardon.addEventListener("click", () => this.#ask());
    const list = el("ol", { class: "ladder", "aria-label": "Steps" }, this.steps);
    const actions = el("p", { class: "actions" }, this.pardon);
    this.node = el("div", {}, this.state, list, this.evidence, this.notice.node, actions);
  }

  /** Show a router's contract and punishment, either of which may be null. */
  show({ contract, punishment, misbehaving }) {
    this.#standing = punishment;
    const allowed = contract?.measures ?? [];
    const height = punishment?.height ?? 0;
    this.steps.forEach((item) => this.#step(item, allowed, height, punishment));
    write(this.state, sayStanding(contract, punishment, misbehaving));
    write(this.evidence, sayEvidence(punishment?.evidence ?? []));
    this.pardon.hidden = height === 0 || (limited() && !may("operate"));
  }

  #step(item, allowed, height, punishment) {
    const step = item.dataset.step;
    const place = allowed.indexOf(step);
    const taken = place >= 0 && place < height;
    const current = place >= 0 && place === height - 1;
    item.className = taken ? "taken" : place < 0 ? "barred" : "";
    if (current) item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
    const force = punishment?.only_reported ? "only reported" : "in force";
    write(item, `${step}${taken ? `: ${force}` : place < 0 ? ": not allowed" : ""}`);
  }

  async #ask() {
    const question = `Pardon ${this.vr}?`;
    const consequence =
      `It stands at "${words(this.#standing.step ?? "no step")}". All steps end within seconds; ` +
      "if it still misbehaves, escalation starts again.";
    if (!(await confirmed({ question, consequence, yes: "Pardon" }))) return;
    try {
      await call("POST", v1("hosts", this.host, "routers", this.vr, "pardon"));
      this.notice.clear();
      say(`${this.vr} is pardoned.`);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.notice.show(`Not pardoned: ${error.message}`);
    }
  }
}

function sayStanding(contract, punishment, misbehaving) {
  if (!punishment) {
    if (misbehaving) return "It misbehaves; no step was taken yet, or none is allowed.";
    return contract ? "It is not punished." : "It has no contract, so nothing is done to it.";
  }
  const since = stamp(punishment.since);
  const verdict = punishment.guilty ? "still misbehaves" : "behaves now";
  return `It stands at "${punishment.step ?? "no step"}"; it ${verdict}, since ${since}.`;
}

function sayEvidence(rounds) {
  if (rounds.length === 0) return "";
  const against = rounds.filter((mark) => mark === true).length;
  return `Of the last ${rounds.length} rounds of evidence, its load was excessive in ${against}.`;
}
