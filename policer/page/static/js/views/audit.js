// Who changed what: for administrators, from the audit log.

import { el } from "../dom.js";
import { Changes } from "../parts/changes.js";
import { may, scopes } from "../scope.js";
import { limited } from "../session.js";

const NOT_YOURS = "Who changed what is for tokens with the scope admin and no limits.";

export function auditView(root, { signal }) {
  const body = el("div", {}, el("p", {}, NOT_YOURS));
  let changes = null;
  const look = () => {
    if (changes || !may("admin") || limited()) return;
    changes = new Changes({ signal });
    body.replaceChildren(changes.node);
  };
  scopes.addEventListener("changed", look, { signal });
  root.append(el("h1", { tabindex: "-1" }, "Audit"), body);
  look();
}
