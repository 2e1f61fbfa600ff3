// Who may do what here, and how tokens are made: not on this page, which never sees a new secret.

import { el, section, time } from "../dom.js";
import { asker, limited } from "../session.js";

const SCOPES = [
  ["read", "look at everything but tokens and the audit log"],
  [
    "operate",
    "also make, change and remove contracts, change hosts, pardon and exempt routers, suspend " +
      "control of hosts, set the brake",
  ],
  [
    "admin",
    "also add and remove hosts, make and revoke tokens, read the audit log, raise the epoch",
  ],
];

const COMMANDS = [
  "policer token add NAME --scope operate --expires 90d",
  "policer token add NAME --scope read --tenant acme",
  "policer token list",
  "policer token revoke ID",
];

export function accessView(root) {
  root.append(el("h1", { tabindex: "-1" }, "Access"), yours());
  if (!limited()) root.append(...made());
  root.append(section(2, "Scopes", terms(SCOPES)));
}

/** Say what the service said of the token of this tab. */
function yours() {
  const { name, id, scopes, reach, expires_at: until } = asker() ?? { scopes: [], reach: {} };
  const facts = [
    ["Name", name ?? "not known"],
    ["Id", id ?? "not known"],
    ["Scope", scopes.at(-1) ?? "not known"],
    ...Object.entries(reach).map(([kind, names]) => [kind, names.join(", ") || "all"]),
    ["Ends", until ? time(until) : "never"],
  ];
  return section(2, "Your token", terms(facts));
}

function made() {
  const commands = COMMANDS.map((command) => el("li", {}, el("code", {}, command)));
  return [
    el("p", {}, "Tokens are made and revoked on the policer's machine:"),
    el("ul", {}, commands),
    el("p", {}, "A secret is shown once, to who makes it. The store keeps its hash alone."),
  ];
}

function terms(pairs) {
  return el(
    "dl",
    {},
    pairs.map(([term, words]) => [el("dt", {}, term), el("dd", {}, words)]),
  );
}
