// Returns what a screen reader would miss: names, captions, scopes, order of headings, landmarks.
() => {
  const faults = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const labelled = (node) =>
    node.labels?.length || node.hasAttribute("aria-label") || node.hasAttribute("aria-labelledby");
  for (const node of all("input, select, textarea")) {
    if (!labelled(node)) faults.push(`no label: ${node.outerHTML}`);
  }
  for (const node of all("button, a, th")) {
    if (!node.textContent.trim()) faults.push(`no name: ${node.outerHTML}`);
  }
  for (const table of all("table")) {
    if (!table.caption?.textContent) faults.push("a table without a caption");
    if ([...table.querySelectorAll("th")].some((th) => !th.scope)) faults.push("no scope");
  }
  for (const name of ["aria-describedby", "aria-labelledby"]) {
    const ids = all(`[${name}]`).flatMap((node) => node.getAttribute(name).split(" "));
    faults.push(...ids.filter((id) => !document.getElementById(id)).map((id) => `no ${id}`));
  }
  const ids = all("[id]").map((node) => node.id);
  if (new Set(ids).size < ids.length) faults.push("an id twice");
  const levels = all("h1, h2, h3, h4").map((heading) => Number(heading.tagName[1]));
  if (levels[0] !== 1 || levels.lastIndexOf(1) !== 0) faults.push("not one h1 at first");
  levels.forEach((level, index) => {
    if (level > (levels[index - 1] ?? 0) + 1) faults.push(`h${level} after h${levels[index - 1]}`);
  });
  for (const landmark of ["header", "nav", "main", "footer"]) {
    if (all(landmark).length === 0) faults.push(`no ${landmark}`);
  }
  return faults;
};
