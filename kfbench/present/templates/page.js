"use strict";
/** Tables that can be copied. What is folded away is opened for printing. */
const {element} = window.kfbench.words, ABSENT = "–";
const wordsOf = cell => cell.textContent.trim().replace(/\s+/g, " ");

const csvLine = cells =>
  `${cells.map(text => /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text).join(",")}\n`;

/** Return a table as CSV. Numbers are as exact as the page has them; intervals follow in brackets. */
function csvOf(table) {
  const text = cell => {
    const interval = cell.querySelector("small"), words = wordsOf(cell);
    if (interval) return `${cell.dataset.v} (${wordsOf(interval)})`;
    return /^[−-]?[\d,.]+$/.test(words) ? cell.dataset.v ?? words : words;
  };
  return [...table.rows].map(row => csvLine([...row.cells].map(text))).join("");
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // no permission, or an old browser
    const area = element("textarea", {}, text);
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** Add a line below a table: copy it as CSV, and link to it. */
function addTools(table) {
  const copy = element("button", {type: "button"}, "Copy as CSV"), result = element("output");
  const link = element("a", {href: `#${table.id}`}, "Link"), caption = table.caption.textContent;
  copy.setAttribute("aria-label", `Copy as CSV: ${caption}`);
  link.setAttribute("aria-label", `Link to the table: ${caption}`);
  copy.addEventListener("click", async () => {
    await copyText(csvOf(table));
    result.textContent = `${table.rows.length - 1} rows copied`;
  });
  table.parentElement.after(element("p", {class: "tools"}, copy, " ", link, " ", result));
}

document.querySelectorAll("main table:not(.live)").forEach(addTools);

/** A region is a Tab stop while there is something to scroll to. */
const sizes = new ResizeObserver(changed => changed.forEach(({target}) => {
  if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
  else target.removeAttribute("tabindex");
}));
for (const region of document.querySelectorAll(".scroll")) sizes.observe(region);

let folded = []; // opened for printing, and closed afterwards
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const each of folded) each.open = true;
});
addEventListener("afterprint", () => { for (const each of folded) each.open = false; });
