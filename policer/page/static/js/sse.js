// Reads server-sent events from pieces of text, cut anywhere; pure.

const LINE = /\r\n|\n|\r/;

/** Returns the events that each piece completes, as {id, event, data}. */
export class EventParser {
  #rest = "";
  #data = [];
  #event = "";
  #id = "";

  feed(text) {
    const whole = this.#rest + text;
    const lines = whole.split(LINE);
    this.#rest = lines.pop();
    if (whole.endsWith("\r")) this.#rest = this.#hold(lines);
    return lines.flatMap((line) => this.#take(line));
  }

  /** Keep a line that ends in a carriage return: its line feed may come with the next piece. */
  #hold(lines) {
    return `${lines.pop() ?? ""}\r`;
  }

  #take(line) {
    if (line === "") return this.#complete();
    const colon = line.indexOf(":");
    if (colon === 0) return [];
    const name = colon < 0 ? line : line.slice(0, colon);
    this.#keep(name, colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, ""));
    return [];
  }

  #keep(name, value) {
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#event = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
  }

  #complete() {
    const data = this.#data.join("\n");
    const event = { id: this.#id, event: this.#event || "message", data };
    const empty = this.#data.length === 0;
    this.#data = [];
    this.#event = "";
    return empty ? [] : [event];
  }
}
