"use strict";
/**
 * The views of a page: questions (presets), chips, and three drawings of the same rows: bars, lines and a heat map.
 *
 * #kfbench-views has the views, whose columns are integers, and the presets. A row is a position in the columns. The
 * address keeps the reader's choices, from `view=` on. Without JavaScript, #views has the rows of the first preset.
 */
(() => {
  const {line, words: {number, addressParts, replaceAddress, element}} = window.kfbench;
  const section = document.getElementById("views");
  const {views, presets = []} = JSON.parse(document.getElementById("kfbench-views")?.textContent || "{}");
  if (!section || !presets.length) return;
  const INTERVAL = "95 % interval", NARROW_PX = 600, MOST_COLUMNS = 7; // a narrow heat map with more columns is turned
  const MOST_CHIPS = 7; // of more, those that are chosen at first, and a button for the others
  const QUIET = {where: {}, chips: [], one: [], label: [], beside: []}; // a preset of text lacks them
  const NO_VIEW = {dims: {}, metrics: {}, columns: {none: []}, run: ""};
  let preset, view, all, twins; // all: the rows that the chips can bring; twins: a row's values -> row
  let keyed, named; // the dims that tell rows apart, and those that name the shown ones
  let opened; // the dims of which all chips are shown
  let chosen, base, notes; // dim -> positions of its chosen values; the key of the reader's base; faults of the address

  const at = (dim, row) => view.columns[dim][row];
  const valueOf = (dim, row) => view.dims[dim].values[at(dim, row)];
  /** A value as an address and CSV have it. */
  const plain = (dim, index) => String(view.dims[dim].numbers?.[index] ?? view.dims[dim].values[index]);
  const matches = (row, wanted) =>
    Object.entries(wanted).every(([dim, values]) => [values].flat().map(String).includes(String(valueOf(dim, row))));
  const distinct = (dim, rows) => [...new Set(rows.map(row => at(dim, row)))].sort((a, b) => a - b);
  /** A metric, or an end of its interval (key_low, key_high), as exact as stored. */
  function metricOf(key, row) {
    const stored = view.columns[key]?.[row], {scale} = view.metrics[key.replace(/_(low|high)$/, "")];
    return stored == null ? null : Number((stored * scale).toPrecision(12));
  }
  const twinKey = (row, other = {}) => Object.keys(view.dims).map(dim => other[dim] ?? valueOf(dim, row)).join("|");
  const isLimit = row => preset.label.some(dim => ["limit", "floor"].includes(valueOf(dim, row)));
  const isAxis = dim =>
    ({line: [preset.x, preset.series], heat: [preset.x, preset.y]}[preset.drawing] ?? []).includes(dim);
  /** A line or a heat map has one value of each dim that it does not draw. */
  const isOne = dim => !isAxis(dim) && (preset.one.includes(dim) || preset.drawing !== "bars");
  const firstOf = dim => {
    const isWanted = dim in preset.where && !(isAxis(dim) && preset.one.includes(dim));
    const wanted = isWanted ? all.filter(row => matches(row, {[dim]: preset.where[dim]})) : [];
    return distinct(dim, wanted.length ? wanted : all).slice(0, isOne(dim) ? 1 : Infinity);
  };
  const chosenRows = dims => all.filter(row => dims.every(dim => chosen[dim].includes(at(dim, row))));
  const shownRows = () => chosenRows(preset.chips);
  const keyOf = row => keyed.map(dim => valueOf(dim, row)).join("_");

  /** The row that is 100 %: the reader's, the preset's, or the smallest. It may be hidden by a chip. */
  function baseRow() {
    const ones = preset.chips.filter(isOne), rows = chosenRows(ones);
    const size = row => metricOf(preset.metric, row) ?? Infinity;
    const own = Object.entries(preset.base ?? {}).filter(([dim]) => !ones.includes(dim)); // the others are chosen
    return rows.find(row => keyOf(row) === base)
      ?? rows.find(row => preset.base && matches(row, Object.fromEntries(own)))
      ?? shownRows().filter(row => !isLimit(row)).sort((a, b) => size(a) - size(b))[0];
  }
  const baseOf = row => preset.drawing === "bars" ? baseRow()
    : preset.of_base ? twins.get(twinKey(row, preset.base)) : undefined;
  const textOf = (dim, index) => {
    const {values, numbers} = view.dims[dim], value = numbers?.[index];
    return value == null ? values[index] : number(value, Number.isInteger(value) ? 0 : 2);
  };
  /** A value in a row's name. Dims may have words for it, and an empty word leaves it out. */
  const inName = (dim, row) => view.dims[dim].names?.[at(dim, row)]
    ?? textOf(dim, at(dim, row)) + (view.dims[dim].numbers ? ` ${view.dims[dim].label}` : "");
  const nameOf = row => named.map(dim => inName(dim, row)).filter(Boolean).join(", ")
    || named.map(dim => valueOf(dim, row)).join(", ");
  function headOf(key) {
    const {label, unit} = view.metrics[key];
    return unit && !label.includes(unit) ? `${label}, ${unit}` : label;
  }
  const show = (key, value) => value === null ? ABSENT
    : number(value, Math.abs(value) >= 1000 ? 0 : view.metrics[key].digits);
  const percent = x => Math.abs(x) < 0.05 ? "0.0\u00a0%" : `${x > 0 ? "+" : ""}${number(x, 1)}\u00a0%`;
  const isRatio = key => view.metrics[key].unit === "×"; // against a base of its own
  const changeOf = (value, of) => value === null || !of ? ABSENT
    : preset.drawing === "bars" && preset.is_log ? `${number(value / of, value / of < 10 ? 2 : 1)}\u00a0×`
      : percent(100 * (value / of - 1));
  const intervalOf = (key, row) => metricOf(`${key}_low`, row) === null ? ""
    : `${show(key, metricOf(`${key}_low`, row))}–${show(key, metricOf(`${key}_high`, row))}`;

  /** The drawings of a preset: its own, and those for which it has axes. */
  const drawingsOf = ({drawing, label = [], x, y, series}) => Object.keys(DRAWINGS).filter(each =>
    each === drawing || drawing !== "text" && {bars: label.length, line: x && series, heat: x && y}[each]);

  function openPreset(wanted, drawing = wanted.drawing) {
    preset = {...QUIET, ...wanted, drawing};
    opened = new Set();
    view = views?.[preset.view] ?? NO_VIEW;
    const fixed = Object.entries(preset.where).filter(([dim]) => !preset.chips.includes(dim));
    const rows = [...Object.values(view.columns)[0].keys()];
    all = rows.filter(row => matches(row, Object.fromEntries(fixed)));
    twins = new Map(preset.of_base ? rows.map(row => [twinKey(row), row]) : []);
    keyed = [...new Set([...preset.label, ...Object.keys(view.dims).filter(dim => distinct(dim, all).length > 1)])]
      .filter(dim => !preset.chips.includes(dim) || !isOne(dim));
    chosen = Object.fromEntries(preset.chips.map(dim => [dim, firstOf(dim)]));
    base = "";
  }

  /** The position of a value in an address: the nearest one of a dim with numbers, or -1. */
  function positionOf(dim, text) {
    const {label, values, numbers} = view.dims[dim], known = distinct(dim, all), shown = text.slice(0, 40);
    const wanted = text.trim() ? Number(text) : NaN;
    const exact = known.find(index => values[index] === text || numbers?.[index] === wanted);
    if (exact !== undefined) return exact;
    if (!numbers || Number.isNaN(wanted)) {
      notes.push(`${label}: “${shown}” is not a choice here.`);
      return -1;
    }
    const stops = known.map(index => numbers[index]).filter(each => each !== null);
    const inside = Math.min(Math.max(wanted, Math.min(...stops)), Math.max(...stops));
    const far = index => numbers[index] === null ? Infinity : Math.abs(Math.log((inside + 2) / (numbers[index] + 2)));
    const used = known.reduce((best, index) => far(index) < far(best) ? index : best);
    notes.push(`${label}: ${shown} was not measured. ${textOf(dim, used)} is used.`);
    return used;
  }

  /** Set the state from an address. */
  function read(hash) {
    const given = new URLSearchParams(addressParts(hash)[1]), id = given.get("view") ?? presets[0].id;
    const found = presets.find(each => each.id === id);
    notes = found ? [] : [`“${id.slice(0, 40)}” is no view of this page.`];
    const as = found ? given.get("as") : null, isDrawn = as === null || drawingsOf(found).includes(as);
    if (!isDrawn) notes.push(`“${as.slice(0, 40)}” is no drawing of this view.`);
    openPreset(found ?? presets[0], isDrawn && as || undefined);
    for (const dim of new Set(given.keys())) {
      if (["view", "base", "as"].includes(dim) || !found) continue;
      if (preset.chips.includes(dim)) {
        const used = given.getAll(dim).map(text => positionOf(dim, text)).filter(index => index >= 0);
        if (used.length) chosen[dim] = [...new Set(isOne(dim) ? used.slice(0, 1) : used)];
        if (used.length > 1 && isOne(dim)) notes.push(`${view.dims[dim].label}: ${textOf(dim, used[0])} only is used.`);
      } else {
        notes.push(`“${dim.slice(0, 40)}” is no setting of this view.`);
      }
    }
    base = found && given.get("base") || "";
    if (base && !all.some(row => keyOf(row) === base)) {
      notes.push(`base: “${base.slice(0, 40)}” is no row of this view.`);
      base = "";
    }
  }

  function write() {
    const [own] = addressParts(location.hash), given = new URLSearchParams({view: preset.id});
    if (preset.drawing !== presets.find(({id}) => id === preset.id).drawing) given.set("as", preset.drawing);
    for (const dim of preset.chips.filter(each => chosen[each].join() !== firstOf(each).join())) {
      for (const index of chosen[dim]) given.append(dim, plain(dim, index));
    }
    if (base) given.set("base", base);
    replaceAddress(`#${[own.includes("=") ? own : "", given].filter(String).join("&")}`);
  }

  function csv(rows) {
    const keys = Object.keys(view.metrics).flatMap(key => [key, `${key}_low`, `${key}_high`])
      .filter(key => view.columns[key]);
    const dims = Object.keys(view.dims), lines = rows.map(row =>
      [...dims.map(dim => plain(dim, at(dim, row))), ...keys.map(key => String(metricOf(key, row) ?? ""))]);
    return [[...dims, ...keys], ...lines].map(csvLine).join("");
  }

  /** A sentence with a row's number, its interval, scope and source. */
  function citation(row) {
    const {metric, beside} = preset, {label, unit} = view.metrics[metric], {source, revision, table} = view.cite;
    const amount = each => `${metricOf(metric, each)} ${label.includes(unit) ? label : `${unit} (${label})`}`;
    const scopeOf = (each, dims) => dims.map(dim => `${view.dims[dim].label} ${valueOf(dim, each)}`).join(", ");
    const other = baseOf(row), interval = intervalOf(metric, row), dims = Object.keys(view.dims);
    const ratios = beside.filter(key => isRatio(key) && metricOf(key, row) !== null)
      .map(key => `; ${headOf(key)} ${show(key, metricOf(key, row))} (${intervalOf(key, row) || "no interval"})`);
    const than = isRatio(metric) || other === undefined || other === row || !metricOf(metric, other) ? ""
      : `, ${changeOf(metricOf(metric, row), metricOf(metric, other))} against ${amount(other)} of `
        + scopeOf(other, dims.filter(dim => at(dim, row) !== at(dim, other)));
    return `${nameOf(row) || scopeOf(row, dims.slice(0, 1))}: ${amount(row)}`
      + `${interval && `, ${INTERVAL} ${interval}`}${than}${ratios.join("")}. Scope: ${scopeOf(row, dims)}. `
      + [view.run, source, revision && `revision ${revision},`, `tables.json: ${table}, row ${row + 1}.`]
        .filter(Boolean).join(" ");
  }

  /** A button. By its key it gets the focus back when its part is drawn anew. */
  function button(key, text, click, attributes = {}) {
    const made = element("button", {type: "button", "data-key": key, ...attributes}, text);
    made.addEventListener("click", click);
    return made;
  }
  const head = (text, attributes = {}) => element("th", {scope: "col", ...attributes}, text);
  const citing = row => async event => {
    event.stopPropagation();
    const text = citation(row), {target} = event;
    await copyText(text);
    said.textContent = `Copied: ${text}`;
    target.classList.add("copied"); // until the part is drawn anew
  };
  /** The colour of a value: its format's, or the one at its place. */
  const hueOf = (value, place) => `var(--k-${value.replace(/[^a-zA-Z0-9-]/g, "-")}, ${place})`;

  function drawBars(rows) {
    const {metric, beside, order, is_log: isLog} = preset, of = baseRow(), size = row => metricOf(metric, row);
    const sizes = rows.map(size).filter(each => each > 0), most = Math.max(...sizes);
    const least = isLog ? Math.min(...sizes) / 1.5 : 0, hasInterval = rows.some(row => intervalOf(metric, row));
    const share = x => !(x > 0) ? 0 : isLog ? Math.log(x / least) / Math.log(most / least) : x / most;
    const rank = row => isLimit(row) ? 0 : size(row) === null ? 2 : 1, sign = order === "ascending" ? 1 : -1;
    const inOrder = (a, b) => order === "stored" ? a - b : sign * (size(a) - size(b));
    const barOf = row => {
      const bar = element("i"), format = preset.label.includes("format") ? valueOf("format", row) : "v2";
      bar.style.width = `${100 * share(size(row))}%`;
      if (isLimit(row)) bar.className = "limit";
      else if (format !== "v2") bar.style.background = hueOf(format, "var(--bar)");
      return element("td", {class: "drawn"}, bar);
    };
    const rowOf = row => {
      const change = row === of ? "base" : changeOf(size(row), of === undefined ? null : size(of));
      const made = element("tr", {class: row === of ? "base" : ""},
        head(button(keyOf(row), nameOf(row), () => {}, {"aria-pressed": row === of}), {scope: "row"}),
        barOf(row), element("td", {class: "metric"}, show(metric, size(row))),
        ...hasInterval
          ? [element("td", {class: "more soft", "data-head": INTERVAL}, intervalOf(metric, row) || ABSENT)] : [],
        ...isRatio(metric) ? [] : [element("td", {class: "soft change"}, change)],
        ...beside.map(key => element("td", {class: "more", "data-head": headOf(key)},
          show(key, metricOf(key, row)), " ", element("small", {}, intervalOf(key, row)))),
        element("td", {class: "cite"},
          button(`cite ${keyOf(row)}`, "cite", citing(row), {"aria-label": `Cite ${nameOf(row)}`})));
      made.addEventListener("click", () => change !== "base" && update(() => { base = keyOf(row); }));
      return made;
    };
    const against = of === undefined || rows.includes(of) ? "against the base" : `against ${nameOf(of)}`;
    const heads = [headOf(metric), ...hasInterval ? [INTERVAL] : [], ...isRatio(metric) ? [] : [against],
      ...beside.map(headOf)];
    return [element("table", {class: "bars live"},
      element("thead", {}, element("tr", {},
        head(isRatio(metric) ? view.dims[named[0]].label : "Click a row to make it the base"),
        element("td", {}, isLog ? "log scale" : ""),
        ...heads.map(text => head(text, {class: text.length > 20 ? "long" : ""})), element("td"))),
      element("tbody", {}, ...[...rows].sort((a, b) => rank(a) - rank(b) || inOrder(a, b)).map(rowOf)))];
  }

  /** What a cell of a line or a heat map shows: the metric, or its change against the base in percent. */
  function cellOf(row) {
    const value = row === undefined ? null : metricOf(preset.metric, row);
    if (!preset.of_base || value === null) return value;
    const other = baseOf(row), of = other === undefined ? null : metricOf(preset.metric, other);
    return of ? 100 * (value / of - 1) : null;
  }

  /** The rows by two dims: the positions of the values of both, and the row of each pair. */
  function gridOf(rows, down, across) {
    const found = new Map(rows.map(row => [`${at(down, row)} ${at(across, row)}`, row]));
    return {downs: distinct(down, rows), acrosses: distinct(across, rows), rowAt: (y, x) => found.get(`${y} ${x}`)};
  }

  function drawTable(rows, down, across, isTinted) {
    if (innerWidth < NARROW_PX && distinct(across, rows).length > MOST_COLUMNS) [down, across] = [across, down];
    const {metric} = preset, {downs, acrosses, rowAt} = gridOf(rows, down, across);
    const most = Math.max(1, ...rows.map(row => Math.abs(cellOf(row) ?? 0)));
    const hue = x => preset.of_base && x > 0 ? "var(--larger)" : "var(--smaller)";
    const tint = x => preset.of_base && Math.abs(x) < 1 ? "var(--band)"
      : `color-mix(in srgb, ${hue(x)} ${8 + 42 * Math.abs(x) / most}%, var(--page))`;
    const cell = (y, x) => {
      const row = rowAt(y, x), value = cellOf(row), made = element("td");
      if (value === null) made.append(ABSENT);
      else made.append(button(`cell ${y} ${x}`, preset.of_base ? percent(value) : show(metric, value), citing(row),
        {title: `${intervalOf(metric, row)} Cite this number`.trim()}));
      if (isTinted && value !== null) made.style.background = tint(value);
      return made;
    };
    return element("table", {class: isTinted ? "heat live" : "heat plain live"},
      element("thead", {},
        element("tr", {}, element("td"), head(view.dims[across].label, {scope: "colgroup", colspan: acrosses.length})),
        element("tr", {}, head(view.dims[down].label), ...acrosses.map(x => head(textOf(across, x))))),
      element("tbody", {}, ...downs.map(y =>
        element("tr", {}, head(textOf(down, y), {scope: "row"}), ...acrosses.map(x => cell(y, x))))));
  }

  function drawLine(rows) {
    const {x, series, metric, is_log: isLogY} = preset, {downs, acrosses, rowAt} = gridOf(rows, series, x);
    const {numbers, label} = view.dims[x], place = index => numbers ? numbers[index] : acrosses.indexOf(index);
    const lines = downs.map((index, i) => ({
      name: textOf(series, index),
      colour: hueOf(view.dims[series].values[index], `oklch(.62 .15 ${Math.round(360 * i / downs.length)})`),
      points: acrosses.map(each => [place(each), cellOf(rowAt(index, each))]).filter(([, value]) => value !== null),
    })).filter(({points}) => points.length);
    const stops = acrosses.map(each => [place(each), textOf(x, each)]), from = stops[0]?.[0], last = stops.at(-1)?.[0];
    const what = headOf(metric)
      + (preset.of_base ? `, change against ${Object.values(preset.base).join(", ")} in percent` : "");
    const table = drawTable(rows, series, x, false);
    if (lines.length === 0 || from === last) return [table];
    const isLogX = from > 0 && last / from >= 20;
    const ends = lines.map(({name, points}) => `${name} from ${points[0][1]} to ${points.at(-1)[1]}`).join("; ");
    const picture = line.draw(lines, Math.max(parts.drawing.clientWidth, 280), {from, to: last, stops, label, isLogX,
      isLogY: isLogY && !preset.of_base, what: `${what}, over ${label}: ${ends}.`});
    return [element("figure", {class: "chart"}, element("figcaption", {}, what), picture),
      element("details", {}, element("summary", {}, "The numbers"), table)];
  }
  const DRAWINGS = {bars: drawBars, heat: rows => [drawTable(rows, preset.y, preset.x, true)], line: drawLine};

  const count = element("span", {role: "status"}), said = element("output", {}), parts = {
    pills: element("div", {class: "pills", role: "group", "aria-label": "Questions"}),
    note: element("p", {class: "warning", role: "alert"}), chips: element("div", {class: "strip"}),
    drawing: element("div", {class: "drawing"}), tools: element("p", {class: "tools"}),
    run: element("p", {class: "meta"}), caption: element("div", {class: "meta"}),
  };
  parts.tools.append(count, " ", button("csv", "Copy CSV", async () => {
    const rows = shownRows();
    await copyText(csv(rows));
    said.textContent = `${rows.length} rows copied`;
  }), " ", said);
  section.replaceChildren(...Object.values(parts));

  const group = (label, ...buttons) =>
    element("div", {role: "group", "aria-label": label}, element("span", {}, label), ...buttons);
  function chipsOf(dim) {
    const {label} = view.dims[dim], known = distinct(dim, all), first = firstOf(dim);
    const isShort = known.length > MOST_CHIPS && !opened.has(dim);
    const shown = isShort ? known.filter(index => first.includes(index) || chosen[dim].includes(index)) : known;
    const choose = index => update(() => {
      const others = chosen[dim].filter(each => each !== index);
      chosen[dim] = isOne(dim) ? [index] : others.length === chosen[dim].length ? [...others, index]
        : others.length ? others : known; // the last value cannot be taken away: all come back
    });
    const chips = shown.map(index => button(`${dim} ${index}`, textOf(dim, index), () => choose(index),
      {"aria-pressed": chosen[dim].includes(index)}));
    const more = `${known.length - shown.length} more`, showAll = () => { opened.add(dim); draw(); };
    const folded = button(`${dim} more`, more, showAll, {"aria-label": `${label}: ${more}`});
    return group(label, ...chips, ...shown.length < known.length ? [folded] : []);
  }
  const drawingChips = known => known.length < 2 ? [] : [group("drawing", ...known.map(each =>
    button(`as ${each}`, {bars: "bars", line: "line", heat: "heat map"}[each],
      () => update(() => {
        const before = chosen;
        openPreset(presets.find(({id}) => id === preset.id), each);
        for (const dim of preset.chips.filter(name => !isAxis(name))) {
          chosen[dim] = isOne(dim) ? before[dim].slice(0, 1) : before[dim];
        }
      }),
      {"aria-pressed": each === preset.drawing})))];

  function draw() {
    const {key} = section.contains(document.activeElement) ? document.activeElement.dataset : {}, rows = shownRows();
    named = [...new Set([...preset.label, ...keyed.filter(dim => distinct(dim, rows).length > 1)])];
    parts.pills.replaceChildren(...presets.map(each => button(each.id, each.title,
      () => update(() => openPreset(each)), {"aria-pressed": each.id === preset.id})));
    parts.pills.scrollLeft = parts.pills.querySelector("[aria-pressed=true]").offsetLeft - parts.pills.offsetLeft - 40;
    parts.note.textContent = notes.join(" ");
    parts.note.hidden = !notes.length;
    parts.chips.replaceChildren(...drawingChips(drawingsOf(preset)),
      ...preset.chips.filter(dim => distinct(dim, all).length > 1).map(chipsOf));
    parts.chips.hidden = !parts.chips.childNodes.length;
    if (preset.drawing === "text") parts.drawing.innerHTML = preset.text;
    else parts.drawing.replaceChildren(...DRAWINGS[preset.drawing](rows));
    parts.tools.hidden = preset.drawing === "text";
    said.textContent = "";
    const [{length}] = Object.values(view.columns); // with those that no chip of this question brings
    count.textContent = `${number(rows.length)} of ${number(length)} rows shown.`
      + (rows.length ? "" : " Nothing was measured with these choices.");
    parts.run.textContent = view.run;
    parts.caption.innerHTML = preset.caption ?? "";
    if (key) section.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
  }
  function update(change) {
    notes = [];
    change();
    draw();
    write();
  }
  const open = () => { read(location.hash); draw(); };
  addEventListener("hashchange", () => { if (addressParts(location.hash)[1]) open(); });
  new ResizeObserver(() => { if (preset.drawing !== "bars") draw(); }).observe(parts.pills); // the others fit the width
  open();
})();
