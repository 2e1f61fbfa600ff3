// A real table that follows what it shows: rows keep their place, focus and order.

import { el, freshId, write } from "./dom.js";

/**
 * Columns are {head, text(row)} or {head, fill(cell, row)}; `number` aligns to the right,
 * `sort(row)` lets people order by it, `header` names the row, `words` wraps.
 */
export class LiveTable {
  #rows = new Map();
  #given = [];
  #order = null;

  constructor({ caption, columns, key, empty = "Nothing." }) {
    Object.assign(this, { columns, key, empty });
    const id = freshId("caption");
    this.body = el("tbody", { role: "rowgroup" });
    const heads = columns.map((column) => this.#head(column));
    const words = el("caption", { id }, caption);
    this.table = el("table", { role: "table", class: "cards" }, words, thead(heads), this.body);
    this.node = scrolling(this.table, id);
    this.heads = heads;
  }

  /** Show these rows, and no others. */
  show(rows) {
    this.#given = rows;
    const kept = new Map(this.#sorted().map((row) => [this.key(row), row]));
    for (const [key, line] of this.#rows) {
      if (kept.has(key)) continue;
      line.remove();
      this.#rows.delete(key);
    }
    this.#place([...kept].map(([key, row]) => this.#line(key, row)));
    this.#sayEmpty(rows.length === 0);
  }

  #line(key, row) {
    if (!this.#rows.has(key)) this.#rows.set(key, rowOf(this.columns));
    const line = this.#rows.get(key);
    this.columns.forEach((column, index) => renew(column, line.cells[index], row));
    return line;
  }

  /** Put lines in order, moving as few as can be: a line that moves loses the focus. */
  #place(lines) {
    let next = this.body.firstElementChild;
    for (const line of lines) {
      if (line === next) next = next.nextElementSibling;
      else this.body.insertBefore(line, next);
    }
  }

  #sayEmpty(empty) {
    const line = this.body.querySelector("tr.empty");
    if (!empty) line?.remove();
    else if (!line) {
      const shape = { colspan: this.columns.length, class: "quiet", role: "cell" };
      this.body.append(el("tr", { class: "empty", role: "row" }, el("td", shape, this.empty)));
    }
  }

  #head(column) {
    const shape = { scope: "col", role: "columnheader", class: column.number && "number" };
    if (!column.sort) return el("th", shape, column.head);
    const button = el("button", { type: "button", click: () => this.#sortBy(column) }, column.head);
    return el("th", shape, button);
  }

  #sortBy(column) {
    const down = this.#order?.column === column && !this.#order.down;
    this.#order = { column, down };
    this.columns.forEach((other, index) => {
      if (other !== column) this.heads[index].removeAttribute("aria-sort");
      else this.heads[index].setAttribute("aria-sort", down ? "descending" : "ascending");
    });
    this.show(this.#given);
  }

  #sorted() {
    if (!this.#order) return this.#given;
    const { column, down } = this.#order;
    const sorted = [...this.#given].sort((a, b) => compare(column.sort(a), column.sort(b)));
    return down ? sorted.reverse() : sorted;
  }
}

function compare(a, b) {
  if (typeof a === "string") return a.localeCompare(b, undefined, { numeric: true });
  return (a ?? -Infinity) - (b ?? -Infinity);
}

const rowOf = (columns) => el("tr", { role: "row" }, columns.map(cellOf));

/** Return a cell; as a card, it shows the head of its column. */
function cellOf({ head, header, number, words }) {
  const shape = { class: (number && "number") || (words && "words"), "data-head": head };
  return header
    ? el("th", { scope: "row", role: "rowheader", ...shape })
    : el("td", { role: "cell", ...shape });
}

function renew(column, cell, row) {
  if (column.fill) column.fill(cell, row);
  else write(cell, column.text(row));
}

function thead(heads) {
  return el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads));
}

/** Return a region that scrolls sideways; the keyboard reaches it where it has to. */
export function scrolling(table, labelledby) {
  const box = el("div", { class: "scroll", role: "region", "aria-labelledby": labelledby }, table);
  const sized = new ResizeObserver(() => {
    if (box.scrollWidth > box.clientWidth) box.setAttribute("tabindex", "0");
    else box.removeAttribute("tabindex");
  });
  sized.observe(box);
  sized.observe(table);
  return box;
}

/** Return the `fill` of a column of links. */
export function link(address, words) {
  return (cell, row) => {
    const a = cell.firstElementChild ?? cell.appendChild(el("a"));
    if (a.getAttribute("href") !== address(row)) a.setAttribute("href", address(row));
    write(a, words(row));
  };
}

/** Return the `fill` of a column of marks: {tone, words} of a row; colour is never alone. */
export function mark(judge) {
  return (cell, row) => {
    const span = cell.firstElementChild ?? cell.appendChild(el("span"));
    const { tone, words } = judge(row);
    span.className = `mark ${tone}`;
    write(span, words);
  };
}

/** Return the `fill` of a column of lists of marks: [{tone, words}] of a row, all of them. */
export function marks(judge) {
  return (cell, row) => {
    const list = cell.firstElementChild ?? cell.appendChild(el("ul", { class: "marks" }));
    const found = judge(row);
    while (list.children.length > found.length) list.lastElementChild.remove();
    found.forEach((one, index) => renewMark(list, index, one));
  };
}

function renewMark(list, index, { tone, words }) {
  const item = list.children[index] ?? list.appendChild(el("li"));
  item.className = `mark ${tone}`;
  write(item, words);
}
