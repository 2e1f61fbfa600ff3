// Who changed what: for administrators, from the audit log.

import { el } from "../dom.js";
import { Changes } from "../parts/changes.js";
import { limited, may } from "../session.js";

const NOT_YOURS = "Who changed what is for tokens with the scope admin and no limits.";

export function auditView(root, { signal }) {
  const whole = may("admin") && !limited();
  const body = whole ? new Changes({ signal }).node : el("p", {}, NOT_YOURS);
  root.append(el("h1", { tabindex: "-1" }, "Audit"), body);
}
