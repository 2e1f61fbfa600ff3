// Who may do what here, and how tokens are made: not on this page, which never sees a new secret.

import { el, section } from "../dom.js";

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
  "policer token list",
  "policer token revoke ID",
];

export function accessView(root) {
  const scopes = SCOPES.map(([scope, may]) => [el("dt", {}, scope), el("dd", {}, may)]);
  const commands = COMMANDS.map((command) => el("li", {}, el("code", {}, command)));
  root.append(el("h1", { tabindex: "-1" }, "Access"));
  root.append(el("p", {}, "Tokens are made and revoked on the policer's machine:"));
  root.append(el("ul", {}, commands));
  root.append(
    el("p", {}, "A secret is shown once, to who makes it. The store keeps its hash alone."),
  );
  root.append(section(2, "Scopes", el("dl", {}, scopes)));
}
