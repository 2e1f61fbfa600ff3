// Where one is: the way back to the fleet.

import { el } from "../dom.js";
import { toHost } from "../routes.js";

/** Return the trail to a host or a router; the last is where one is. */
export function trail(host, vr = null) {
  const places = [
    ["#/", "Fleet"],
    [toHost(host), host],
  ];
  if (vr !== null) places.push(["", vr]);
  const items = places.map(([address, name], index) =>
    el(
      "li",
      {},
      index < places.length - 1
        ? el("a", { href: address }, name)
        : el("span", { "aria-current": "page" }, name),
    ),
  );
  return el("nav", { class: "trail", "aria-label": "Trail" }, el("ol", {}, items));
}
