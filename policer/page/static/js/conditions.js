// Every condition that a router or a host is in, the worst first.

import { words } from "./format.js";
import { starved, starvedTone } from "./hosts.js";
import { instant } from "./overrides.js";

const ORDER = ["bad", "warn", "good"];
/** Findings that are nothing to act on, or that have a word of their own here. */
const UNREMARKABLE = new Set(["none", "settling", "not_binding", "starved", "model_stale"]);
/** Modes that "held" and "released" stand for already. */
const ORDINARY = new Set(["closed_loop", "released"]);

/**
 * Return [{tone, words}] of a router; never empty, and the worst first.
 *
 * router: as the service answers; live: of its host, where that is known.
 */
export function routerConditions(router, live = null) {
  const all = [
    ...ofHost(live),
    ...ofOrders(router),
    ...ofPromise(router, live),
    ...ofLadder(router),
    ...ofReport(router),
  ];
  const held = { tone: "good", words: router.report?.active ? "held" : "released" };
  return sorted(router.report ? [...all, held] : all);
}

function ofHost(live) {
  if (!live) return [];
  return [
    live.distrust && bad("distrusted"),
    live.link_problem && bad("cannot be told"),
    live.braked && warn("brake on"),
    live.suspension && warn("suspended"),
    live.suspension && warn("overridden"),
  ].filter(Boolean);
}

function ofOrders({ report, refusal }) {
  return [
    !report && bad("not seen"),
    report?.problem && bad(report.problem),
    refusal && bad(`refused: ${refusal}`),
  ].filter(Boolean);
}

function ofPromise({ vr, report, contract }, live) {
  return [
    live?.harmed.includes(vr) && bad("short"),
    starved(report, contract) && { tone: starvedTone(report, contract), words: "starved" },
    !contract && warn("no contract"),
  ].filter(Boolean);
}

function ofLadder({ punishment, misbehaving, exemption, contract }) {
  return [
    punishment?.height > 0 && warn(punished(punishment)),
    misbehaving && warn("misbehaves"),
    exemption && warn(`exempt until ${instant(exemption.until)}`),
    exemption && warn("overridden"),
    contract?.dry_run && warn("dry run"),
  ].filter(Boolean);
}

const punished = ({ step, only_reported: reported }) =>
  `punished: ${step ?? "-"}${reported ? ", only reported" : ""}`;

function ofReport(router) {
  const { report } = router;
  if (!report) return [];
  return [
    !ORDINARY.has(report.mode) && warn(words(report.mode)),
    report.finding === "model_stale" && warn("model stale"),
    !UNREMARKABLE.has(report.finding) && warn(words(report.finding)),
    !report.cap_known && warn("cap unknown"),
    report.observing && warn("only observed"),
    report.floor_problem && warn(`no floor: ${report.floor_problem}`),
    report.shield_problem && warn(`no shield: ${report.shield_problem}`),
    report.limit_pps != null && warn("input limited"),
  ].filter(Boolean);
}

const bad = (text) => ({ tone: "bad", words: text });
const warn = (text) => ({ tone: "warn", words: text });

/** Return conditions the worst first, none of them twice. */
function sorted(conditions) {
  const known = new Map(conditions.map((condition) => [condition.words, condition]));
  const rank = ({ tone }) => ORDER.indexOf(tone);
  return [...known.values()].sort((a, b) => rank(a) - rank(b));
}
