// How a host stands, in words and in a tone.

import { lasting } from "./format.js";
import { standingWords } from "./overrides.js";

/** Return {tone, words} of a host; the words say so where it is simulated. */
export function hostState({ live }) {
  const { tone, words } = stateOf(live);
  return { tone, words: live.simulated ? `${words}, simulated` : words };
}

function stateOf(live) {
  if (live.heard_s_ago == null) return { tone: "bad", words: "never heard" };
  if (!live.reachable) return { tone: "bad", words: `gone for ${lasting(live.heard_s_ago)}` };
  if (live.suspension) return { tone: "warn", words: "suspended" };
  if (live.distrust) return { tone: "bad", words: "not believed" };
  if (live.link_problem) return { tone: "bad", words: "cannot be told" };
  if (live.refused > 0) return { tone: "bad", words: "refuses orders" };
  if (live.harmed.length > 0) return { tone: "warn", words: "a guarantee suffers" };
  if (live.braked) return { tone: "warn", words: "brake on" };
  if (live.punished > 0) return { tone: "warn", words: `${live.punished} punished` };
  return { tone: "good", words: live.engaged ? "held" : "calm" };
}

/** Return what a host does, or null while it is not heard. */
export const known = (live, value) => (live.reachable ? value : null);

/** Return what is wrong with a host, one sentence each. */
export function hostProblems({ entry, live }) {
  const problems = [];
  if (live.suspension) problems.push(`Its control is suspended ${standingWords(live.suspension)}`);
  if (live.distrust) problems.push(`What it says is not believed: ${live.distrust}`);
  if (live.link_problem) problems.push(`Its daemon cannot be told: ${live.link_problem}`);
  if (live.refused > 0)
    problems.push(`Its daemon refuses ${orders(live.refused)}, such as ${live.refusal}`);
  if (live.braked) problems.push("Its escalation is stopped: too many of its routers misbehave");
  if (live.harmed.length > 0)
    problems.push(`Below their guarantee: ${live.harmed.join(", ")}`);
  if (live.promised_pps > entry.capacity_pps) problems.push("More is promised than it can forward");
  return problems;
}

const orders = (count) => (count === 1 ? "1 order" : `${count} orders`);

/** Return whether a router with a guarantee lacks CPU that its cap allows. */
export const starved = (report, contract) =>
  report?.finding === "starved" && (contract?.guarantee_pps > 0 || contract?.guarantee_bps > 0);

/** Return the tone of a starved router: bad below its guarantee. */
export const starvedTone = (report, { guarantee_pps: packets, guarantee_bps: bits }) =>
  report.throughput_pps < packets || report.throughput_bps < bits ? "bad" : "warn";

/** Return what a router does, its setpoint in packets/s of the size that it forwards now. */
export function inPackets(router) {
  const { setpoint_pps: pps, setpoint_bps: bps, throughput_pps: packets } = router;
  if (pps != null || bps == null || !(router.throughput_bps > 0)) return router;
  return { ...router, setpoint_pps: (bps * packets) / router.throughput_bps };
}
