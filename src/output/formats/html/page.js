"use strict";
// Sorting by a column: numbers, shares and addresses by value, all else by text.
const value = (text) => {
  const plain = text.replace(/[,\s%]/g, "");
  if (/^0x[0-9a-f]+$/i.test(plain)) return BigInt(plain);
  const number = Number(plain);
  return plain !== "" && !Number.isNaN(number) ? number : text === "-" ? null : text;
};
const order = (a, b) => {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "string" || typeof b === "string") return String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;
  return a < b ? -1 : a > b ? 1 : 0;
};
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  if (body.rows.length < 2) continue;
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const number = head.classList.contains("n");
      const now = head.getAttribute("aria-sort");
      const down = now ? now === "ascending" : number;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => [value(row.cells[column].textContent), row]);
      // What is unknown comes last either way.
      rows.sort(([a], [b]) => (a === null || b === null || !down ? order(a, b) : order(b, a)));
      body.append(...rows.map(([, row]) => row));
    });
  });
  if (body.rows.length < 12) continue;
  const filter = document.createElement("input");
  filter.className = "filter";
  filter.type = "search";
  filter.placeholder = "Filter rows";
  filter.setAttribute("aria-label", "Filter rows");
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase();
    for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(words);
  });
  table.parentElement.before(filter);
}
// Zooming into the icicle: the chosen box takes the whole width, those above it stay.
for (const icicle of document.querySelectorAll(".icicle")) {
  const boxes = [...icicle.children].map((box) => ({
    box,
    depth: Number(box.dataset.d),
    from: parseFloat(box.style.left),
    width: parseFloat(box.style.width),
  }));
  const about = icicle.previousElementSibling;
  const zoom = (to) => {
    const end = to.from + to.width + 0.005;
    for (const one of boxes) {
      const above = one.depth <= to.depth && one.from <= to.from + 0.005 && one.from + one.width >= end - 0.01;
      const within = one.from >= to.from - 0.005 && one.from + one.width <= end + 0.005;
      one.box.hidden = !(above || (within && one.depth > to.depth));
      const scale = 100 / to.width;
      one.box.style.left = above ? "0%" : (one.from - to.from) * scale + "%";
      one.box.style.width = above ? "100%" : one.width * scale + "%";
    }
    about.textContent = to.box.title;
  };
  for (const one of boxes) one.box.addEventListener("click", () => zoom(one));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && icicle.contains(document.activeElement)) zoom(boxes[0]);
  });
}
