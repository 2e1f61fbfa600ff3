// The banner of all that makes the page red; the title and the icon of the tab say so too.

import { readAll, v1 } from "../api.js";
import { el, write } from "../dom.js";
import { count } from "../format.js";
import { poll } from "../poll.js";
import { to } from "../routes.js";
import { reasons, titled } from "../status.js";

const EVERY_S = 3;
const MOST = 5;

export class Alarm {
  #known = {};
  #shown = "";
  #number = 0;
  #title = "";

  /** node: is filled and hidden as need be; icon: the link to the icon of the tab. */
  constructor({ node, icon }) {
    Object.assign(this, { node, icon, calm: icon.getAttribute("href") });
    this.head = el("p", { class: "head" });
    this.list = el("ul");
    node.append(el("div", { role: "status" }, this.head, this.list));
    this.#show();
  }

  /** Follow the hosts and the punishments of the fleet until the signal ends. */
  follow(signal) {
    poll("alarms", EVERY_S, signal, async () => {
      const hosts = await readAll(v1("hosts"), { signal });
      const punishments = await readAll(v1("punishments"), { signal });
      this.know({ hosts, punishments });
    });
  }

  /** Take what is known of the fleet, as `reasons` reads it; the rest stays as it was. */
  know(parts) {
    this.#known = { ...this.#known, ...parts };
    this.#show();
  }

  /** Forget the fleet after a sign-out. */
  clear() {
    this.#known = {};
    this.#show();
  }

  /** Set the title of the document. */
  entitle(title) {
    this.#title = title;
    document.title = titled(title, this.#number);
  }

  #show() {
    const found = reasons(this.#known);
    this.#number = found.length;
    this.node.hidden = found.length === 0;
    document.documentElement.toggleAttribute("data-alarm", found.length > 0);
    const icon = found.length > 0 ? "icon-alarm.png" : this.calm;
    if (this.icon.getAttribute("href") !== icon) this.icon.setAttribute("href", icon);
    this.entitle(this.#title);
    this.#list(found);
  }

  /** Renew the list where it differs, so that a screen reader is not told twice. */
  #list(found) {
    const text = JSON.stringify(found);
    if (text === this.#shown) return;
    this.#shown = text;
    write(this.head, count(found.length, "alarm"));
    const items = found.slice(0, MOST).map(itemOf);
    if (found.length > MOST) items.push(more(found.length - MOST));
    this.list.replaceChildren(...(found.length > 0 ? items : []));
  }
}

const itemOf = ({ words, address }) => el("li", {}, el("a", { href: address }, words));

function more(number) {
  const links = [
    el("a", { href: to() }, "Fleet"),
    el("a", { href: to("punishments") }, "Punishments"),
  ];
  return el("li", {}, `and ${number} more: see `, links[0], " and ", links[1]);
}
