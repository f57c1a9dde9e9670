"use strict";
const LONG_TABLE_ROWS = 15;
const WIDE_TABLE_COLUMNS = 6;
const ABSENT = "–";
const NEXT_ORDER = {ascending: "descending", descending: "as stored"};

/** Make each column head a button that sorts the rows: ascending, descending, as stored. */
function sortable(table) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], stored = [...body.rows];
  const value = (row, at) => {
    const {dataset: {v}, textContent} = row.cells[at], text = textContent.trim();
    return v !== undefined ? Number(v) : text === ABSENT ? "" : text;
  };
  const kind = x => x === "" ? 2 : typeof x === "string" ? 1 : 0; // numbers, then words, then absent cells
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "sort by this column";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const order = NEXT_ORDER[head.getAttribute("aria-sort")] ?? "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      if (order === "as stored") return body.append(...stored);
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      body.append(...[...stored].sort((a, b) => {
        const x = value(a, at), y = value(b, at);
        if (kind(x) !== kind(y)) return kind(x) - kind(y);
        return sign * (typeof x === "number" ? x - y : x.localeCompare(y, "en", {numeric: true}));
      }));
    });
  });
}

/** Add a box above a long table. It hides the rows that lack one of its words, and shows how many rows are left. */
function filterable(table) {
  const rows = [...table.tBodies[0].rows];
  const plain = text => text.toLowerCase().replaceAll("\u2212", "-");
  const texts = rows.map(row => plain([...row.cells].map(cell => cell.textContent).join(" ")));
  const box = document.createElement("p"), label = document.createElement("label");
  const input = document.createElement("input"), left = document.createElement("output");
  box.className = "filter";
  input.type = "search";
  input.autocomplete = "off";
  input.setAttribute("aria-label", `Filter rows: ${table.caption.textContent}`);
  input.setAttribute("aria-controls", table.id);
  label.append("Filter rows ", input);
  box.append(label, " ", left);
  table.parentElement.before(box);
  input.addEventListener("input", () => {
    const words = plain(input.value).split(/\s+/).filter(Boolean);
    rows.forEach((row, at) => { row.hidden = !words.every(word => texts[at].includes(word)); });
    left.textContent = words.length ? `${rows.filter(row => !row.hidden).length} of ${rows.length} rows` : "";
  });
}

const wordsOf = element => element.textContent.trim().replace(/\s+/g, " ");

/** Return the shown rows and columns of a table as CSV. Numbers are as exact as the page has them; intervals follow in brackets. */
function csvOf(table) {
  const shown = [...table.rows].filter(row => !row.hidden);
  const isNumber = words => /^[−-]?[\d,.]+$/.test(words);
  const text = cell => {
    const interval = cell.querySelector("small");
    if (interval) return `${cell.dataset.v} (${wordsOf(interval)})`;
    return isNumber(wordsOf(cell)) ? cell.dataset.v ?? wordsOf(cell) : wordsOf(cell);
  };
  const field = words => /[",]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
  return shown.map(row => [...row.cells].filter(cell => !cell.hidden).map(cell => field(text(cell))).join(",") + "\n").join("");
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // no permission, or an old browser
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** Add a line below a table: copy it as CSV, link to it, and hide columns. */
function addTools(table) {
  const line = document.createElement("p"), copy = document.createElement("button");
  const link = document.createElement("a"), result = document.createElement("output");
  line.className = "tools";
  copy.type = "button";
  copy.textContent = "Copy as CSV";
  copy.addEventListener("click", async () => {
    const csv = csvOf(table);
    await copyText(csv);
    result.textContent = `${csv.split("\n").length - 2} rows copied`;
  });
  link.href = `#${table.id}`;
  link.textContent = "Link";
  link.setAttribute("aria-label", `Link to the table: ${table.caption.textContent}`);
  copy.setAttribute("aria-label", `Copy as CSV: ${table.caption.textContent}`);
  line.append(copy, " ", link, " ", result);
  table.parentElement.after(line);
  const heads = [...table.tHead.rows[0].cells];
  if (heads.length >= WIDE_TABLE_COLUMNS) line.append(columnsOf(table, heads));
}

/** Return a list of the columns of a table, each with a box that shows or hides it. */
function columnsOf(table, heads) {
  const list = document.createElement("details"), name = document.createElement("summary");
  name.textContent = "Columns";
  list.append(name);
  heads.slice(1).forEach((head, i) => {
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    box.addEventListener("change", () => {
      for (const row of table.rows) row.cells[i + 1].hidden = !box.checked;
    });
    label.append(box, " ", wordsOf(head));
    list.append(label);
  });
  return list;
}

/** Give each region a Tab stop, and a shade at its right end, while there is something to scroll to. */
function scrollable(regions) {
  const show = region => {
    const {scrollWidth, clientWidth, scrollLeft, scrollHeight, clientHeight} = region;
    region.classList.toggle("more", scrollWidth - clientWidth - scrollLeft > 1);
    if (scrollWidth > clientWidth || scrollHeight > clientHeight) region.tabIndex = 0;
    else region.removeAttribute("tabindex");
  };
  const sizes = new ResizeObserver(changed => changed.forEach(({target}) => show(target)));
  for (const region of regions) {
    sizes.observe(region);
    region.addEventListener("scroll", () => show(region), {passive: true});
  }
}

/** Mark the section on screen in the contents. Scroll the contents to it unless one of their links has the focus. */
function followed(contents) {
  const links = new Map([...contents.querySelectorAll("li a[href^='#']")].map(link => [link.hash.slice(1), link]));
  const read = new IntersectionObserver(changes => {
    for (const {target} of changes.filter(({isIntersecting}) => isIntersecting)) {
      contents.querySelector("[aria-current]")?.removeAttribute("aria-current");
      const link = links.get(target.id);
      link.setAttribute("aria-current", "true");
      if (!contents.contains(document.activeElement)) contents.scrollTop = link.offsetTop - contents.clientHeight / 2;
    }
  }, {rootMargin: "-10% 0px -89% 0px"});
  for (const name of links.keys()) read.observe(document.getElementById(name));
}

for (const table of document.querySelectorAll("main table:not(.live)")) {
  sortable(table);
  if (table.tBodies[0].rows.length >= LONG_TABLE_ROWS) filterable(table);
  addTools(table);
}
scrollable(document.querySelectorAll(".scroll"));
document.querySelectorAll("nav").forEach(followed);

let folded = []; // opened for printing, and closed afterwards
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const each of folded) each.open = true;
});
addEventListener("afterprint", () => { for (const each of folded) each.open = false; });
