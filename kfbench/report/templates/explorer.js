"use strict";
/** The explorer: a form, and the bars, the line and the table that follow it. */
(() => {
  const {fields, agesNear, formats, stops, sum, PAYLOAD, settings: address, measured} = window.kfbench;
  const {base, sets, colours, groups, codecs, workloads, month} =
    JSON.parse(document.getElementById("kfbench-explorer").textContent);
  const MOST_LINES = 6, ABSENT = "–", MB = 1e6, FAR_DOUBLINGS = 3;
  const OPERATIONS = ["encode", "decode"];
  const KEEP_WORKLOAD = new Set(["workload", "formats", "codec", "bars", "mb_per_s", "span_ms"]);
  const byId = id => document.getElementById(id);
  const form = document.querySelector("#explorer form");
  const inputs = document.querySelectorAll("#explorer [name]"), sliders = form.querySelectorAll("[type=range]");
  let state = address.read(location.hash);

  // ---- words ----
  const number = (x, digits = 0) => x.toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits})
    .replace("-", "−");
  const bytes = x => number(x, x < 10 ? 2 : x < 1000 ? 1 : 0);
  const percent = x => `${x > 0 ? "+" : ""}${number(100 * x, Math.abs(x) < 0.1 ? 2 : 1)} %`;
  const change = (x, of) => Math.abs(x / of - 1) < 5e-5 ? "±0 %" : percent(x / of - 1);
  const length = x => x < 0 ? "null" : `${number(x)} bytes`;
  function duration(ms) {
    const units = [[86400000, "d"], [3600000, "h"], [60000, "min"], [1000, "s"]];
    const [size, unit] = units.find(([size]) => ms >= size) ?? [1, "ms"];
    return `${(ms / size).toLocaleString("en", {maximumFractionDigits: 2})} ${unit}`;
  }
  const WORDS = {
    records: x => `${number(x)} ${x === 1 ? "record" : "records"} per batch`, key_bytes: x => x < 0 ? "no key" : `key ${length(x)}`,
    value_bytes: x => x < 0 ? "no value" : `value ${length(x)}`, span_ms: x => `time span ${duration(x)}`,
    headers: x => `${number(x)} headers`, null_percent: x => `${number(x)} % null values`,
    header_key_bytes: length, header_value_bytes: length,
  };

  // ---- elements ----
  function element(tag, properties = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }
  const swatch = colour => {
    const made = element("span", {className: "sw"});
    made.style.background = colour;
    return made;
  };
  function svg(tag, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  // ---- what is computed ----
  const batchOf = ({null_percent, ...settings}) =>
    ({...settings, null_values: Math.round(settings.records * null_percent / 100)});
  const nearestStop = (name, value) => stops[name].reduce((best, stop) =>
    Math.abs(Math.log2((stop + 2) / (value + 2))) < Math.abs(Math.log2((best + 2) / (value + 2))) ? stop : best);

  /** {format: {parts, isNear}} of a batch. isNear: the formula does not hold here, so its times are interpolated. */
  function batchFields(settings, chosen) {
    const batch = batchOf(settings), exact = fields(batch);
    const near = chosen.some(name => exact[name] === null) ? fields({...batch, age_bytes: agesNear(batch)}) : {};
    return Object.fromEntries(chosen.map(name =>
      [name, {parts: exact[name] ?? near[name], isNear: exact[name] === null && Boolean(near[name])}]));
  }

  /** Per chosen format: bytes per record in groups of fields, or parts: null without a size. */
  function perRecord(settings, chosen) {
    return Object.entries(batchFields(settings, chosen)).map(([name, {parts, isNear}]) => {
      if (!parts) return {name, parts: null, isNear};
      const each = Object.fromEntries(Object.entries(parts).map(([group, size]) => [group, size / settings.records]));
      return {name, parts: each, total: sum(each), isNear};
    });
  }

  // ---- bars ----
  const lacking = name => formats.find(format => format.name === name).has_headers ? "no formula" : "has no headers";

  function drawBars(rows, settings) {
    const shown = Object.keys(groups).filter(group => settings.bars === "all" || group !== PAYLOAD);
    const width = ({parts}) => parts ? shown.reduce((total, group) => total + (parts[group] ?? 0), 0) : 0;
    const most = Math.max(...rows.map(width), 1e-9), v2 = rows.find(row => row.name === base);
    byId("explorer-bars").replaceChildren(...rows.map(row => {
      const bar = element("div", {className: "stack"});
      bar.setAttribute("aria-hidden", "true"); // the table has these numbers
      for (const group of row.parts ? shown : []) {
        const part = element("i");
        part.style.cssText = `width:${100 * (row.parts[group] ?? 0) / most}%;background:${groups[group]}`;
        bar.append(part);
      }
      const total = row.parts ? `${row.isNear ? "≈ " : ""}${bytes(row.total)} B` : lacking(row.name);
      const side = !row.parts ? "" : row.name === base ? "base" : change(row.total, v2.total);
      return element("div", {className: `bar${row.name === base ? " base" : ""}`},
        element("span", {className: "name"}, row.name), bar,
        element("span", {className: "total"}, total, " ", element("small", {}, side)));
    }));
    const used = shown.filter(group => rows.some(({parts}) => parts?.[group]));
    byId("explorer-key").replaceChildren(...used.map(group => element("li", {}, swatch(groups[group]), group)));
  }

  // ---- the line over batch size ----
  function drawLine(rows, settings) {
    const figure = byId("explorer-line"), width = Math.max(figure.clientWidth, 280), height = 300;
    const shown = rows.filter(({parts}) => parts).sort((a, b) => (b.name === base) - (a.name === base) || a.total - b.total)
      .slice(0, MOST_LINES).map(({name}) => name);
    const last = stops.records.find(stop => stop >= Math.max(10000, settings.records)) ?? stops.records.at(-1);
    const counts = stops.records.filter(stop => stop <= last);
    const besides = records => Object.fromEntries(Object.entries(batchFields({...settings, records}, shown))
      .map(([name, {parts}]) => [name, parts && (sum(parts) - parts[PAYLOAD]) / records]));
    const columns = counts.map(besides), yours = besides(settings.records);
    const lines = shown.map(name => ({name, points: counts.map((n, i) => [n, columns[i][name]]).filter(([, y]) => y > 0),
      here: yours[name]})).filter(({points}) => points.length);
    if (!lines.length) return figure.replaceChildren();
    const values = lines.flatMap(({points}) => points.map(([, y]) => y));
    const low = 10 ** Math.floor(Math.log10(Math.min(...values))), high = Math.max(...values) * 1.15;
    const left = 44, right = Math.min(170, 20 + 9 * Math.max(...lines.map(({name}) => name.length)));
    const top = 30, bottom = height - 44;
    const x = n => left + (width - left - right) * Math.log(n) / Math.log(last);
    const y = b => bottom - (bottom - top) * Math.log(b / low) / Math.log(high / low);
    const picture = svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img"});
    const steps = [1, 3].flatMap(step => [0, 1, 2, 3, 4, 5, 6].map(power => step * low * 10 ** power));
    for (const tick of steps.filter(step => step <= high)) {
      picture.append(svg("line", {x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: "grid"}),
        svg("text", {x: left - 8, y: y(tick) + 5, "text-anchor": "end"}, String(Number(tick.toPrecision(1)))));
    }
    for (let tick = 1; tick <= last; tick *= width - left - right < 260 ? 100 : 10) {
      picture.append(svg("text", {x: x(tick), y: bottom + 20, "text-anchor": "middle"}, number(tick)));
    }
    picture.append(svg("text", {x: left, y: height - 4}, "records per batch"),
      svg("line", {x1: x(settings.records), x2: x(settings.records), y1: top, y2: bottom, class: "you"}),
      svg("text", {x: Math.max(x(settings.records), left + 40), y: top - 10, "text-anchor": "middle", class: "here"},
        `you: ${number(settings.records)}`));
    const labels = lines.map(({name, points}) => ({name, y: y(points.at(-1)[1]) + 5})).sort((a, b) => a.y - b.y);
    for (let i = 1; i < labels.length; i++) labels[i].y = Math.max(labels[i].y, labels[i - 1].y + 17);
    const over = Math.max(0, (labels.at(-1)?.y ?? 0) - (bottom + 5));
    for (let i = labels.length - 1, floor = Infinity; i >= 0; i--) {
      labels[i].y = Math.min(labels[i].y - (i === labels.length - 1 ? over : 0), floor);
      floor = labels[i].y - 17;
    }
    for (const {name, points, here} of lines.reverse()) {
      const path = points.map(([n, b], i) => `${i ? "L" : "M"}${x(n).toFixed(1)} ${y(b).toFixed(1)}`).join("");
      picture.append(svg("path", {d: path, class: "line", style: `stroke:${colours[name]}`}));
      if (here > 0) {
        picture.append(svg("circle", {cx: x(settings.records), cy: y(here), r: 5, style: `fill:${colours[name]}`}));
      }
      picture.append(svg("text", {x: width - right + 10, y: labels.find(label => label.name === name).y,
        class: "label", style: `fill:color-mix(in srgb, ${colours[name]} 70%, var(--ink))`}, name));
    }
    picture.setAttribute("aria-label", `Bytes per record besides keys and values, over records per batch. At ${
      number(settings.records)} records per batch: ${lines.map(({name, here}) => `${name} ${here ? bytes(here) : "no size"}`).join(", ")}.`);
    const title = element("figcaption", {}, "Bytes per record besides keys and values, over records per batch.");
    if (rows.length > MOST_LINES) title.append(` The ${MOST_LINES - 1} smallest, and ${base}.`);
    figure.replaceChildren(title, picture);
  }

  // ---- the table ----
  /** Where the table's numbers come from: exact sizes, or the cell with measured bytes. */
  function source(settings, chosen) {
    const named = settings.workload && measured.workload(settings.workload), {codec} = settings;
    if (named) return {cell: named, bytes: named.bytes[codec] ? named : null, timed: named, isNamed: true};
    const sized = codec === "none" ? null : measured.nearest(settings, chosen, (cell, name) => measured.bytesOf(cell, codec, name));
    const timed = measured.nearest(settings, [base, "v3"].filter(name => chosen.includes(name)),
      (cell, name) => OPERATIONS.every(operation => measured.cpuOf(cell, codec, operation, name)));
    return {bytes: sized?.cell ?? null, timed: timed?.cell ?? null, sized, clock: timed, isNamed: false};
  }

  /** The cell in words: its settings, and how far it is from the reader's. */
  function cellWords(what, found, settings) {
    const apart = measured.differences(found.cell, settings).map(([axis, theirs]) => WORDS[axis](theirs));
    if (!apart.length) return `${what} measured at exactly these settings. `;
    const far = found.apart > FAR_DOUBLINGS ? ", which is far" : "";
    return `${what} from the nearest measured cell: ${apart.join(", ")}. It is ${number(found.apart, 1)} doublings away${far}. `;
  }

  function sourceWords(settings, {bytes, sized, clock, isNamed}) {
    const {codec, workload} = settings, how = codec === "none" ? "without a codec" : `with ${codec}`;
    if (isNamed) {
      const at = bytes ? `Measured on ${workload} in its own batches, ${how}.` : `${workload} was not measured ${how}.`;
      return `${at} The bars use its mean lengths, and your time span.`;
    }
    const parts = codec === "none" ? ["Bytes: exact, without a codec. "]
      : [sized ? cellWords(`Bytes ${how}:`, sized, settings) : `Bytes ${how}: not measured. `];
    if (clock && clock.cell === sized?.cell) parts.push("CPU: the same cell. ");
    else parts.push(clock ? cellWords("CPU:", clock, settings) : `CPU ${how}: not measured. `);
    return parts.join("") + "CPU times are those of kfbench’s kernels.";
  }

  function drawTable(rows, settings) {
    const {codec} = settings, chosen = rows.map(({name}) => name), from = source(settings, chosen);
    const isExact = codec === "none" && !from.isNamed;
    const sizeOf = row => isExact ? row.parts && row.total : from.bytes && measured.bytesOf(from.bytes, codec, row.name);
    const ofBase = sizeOf(rows.find(row => row.name === base));
    const cpu = (row, operation) => {
      const found = from.timed && measured.cpuOf(from.timed, codec, operation, row.name);
      if (!found) return [ABSENT];
      if (row.name === base) return [`${number(found.ns, 1)} ns`];
      return [`${number(found.ratio, 2)}×`, element("small", {}, ` ${number(found.low, 2)} to ${number(found.high, 2)}`)];
    };
    const body = rows.map(row => {
      const size = sizeOf(row), cost = size && ofBase ? measured.bill(settings.mb_per_s * MB * size / ofBase) : null;
      const cells = [
        size ? [`${isExact && row.isNear ? "≈ " : ""}${bytes(size)}`] : [ABSENT],
        size && ofBase ? [row.name === base ? "base" : change(size, ofBase)] : [ABSENT],
        ...OPERATIONS.map(operation => cpu(row, operation)),
        cost === null ? [ABSENT] : [number(cost)],
      ];
      const head = element("th", {scope: "row"}, swatch(colours[row.name]), row.name);
      return element("tr", {}, head, ...cells.map(content => element("td", {className: "n"}, ...content)));
    });
    const heads = ["Format", "Bytes per record", `Bytes vs ${base}`, "Encode CPU", "Decode CPU", "US$ a month"];
    const table = byId("explorer-table");
    table.tHead.replaceChildren(element("tr", {}, ...heads.map((text, i) =>
      element("th", {scope: "col", className: i ? "n" : ""}, text))));
    table.tBodies[0].replaceChildren(...body);
    byId("explorer-source").textContent = sourceWords(settings, from);
    byId("explorer-bill").textContent = `The bill is disk and network for ${settings.mb_per_s.toLocaleString("en")} MB/s in ${base}. Assumed: ${
      month.replication} replicas, ${month.retention_days} days, ${month.fan_out} readers. Prices of ${month.assumed}: ${
      month.storage_gb_month} US$ per GB-month, ${month.network_gb} US$ per GB of network.`;
  }

  // ---- the summary ----
  function summarize(rows, settings) {
    const v2 = rows.find(row => row.name === base), others = rows.filter(row => row.parts && row.name !== base);
    const v3 = others.find(({name}) => name === "v3"), best = [...others].sort((a, b) => a.total - b.total)[0];
    const said = row => {
      const saved = v2.total - row.total;
      return `${row.name} ${saved >= 0 ? "saves" : "adds"} ${row.isNear ? "about " : ""}${bytes(Math.abs(saved))} bytes (${change(row.total, v2.total)}).`;
    };
    const told = [v3, best].filter((row, i, all) => row && all.indexOf(row) === i).map(said);
    byId("explorer-summary").textContent = `${base} takes ${bytes(v2.total)} bytes per record without a codec. ${told.join(" ")}`;
    const near = rows.find(row => row.isNear);
    byId("explorer-near").textContent = near ? `≈: the bytes of ${near.name}’s timestamps are interpolated.` : "";
  }

  // ---- the form ----
  function fillForm({settings}) {
    for (const input of inputs) if (input !== document.activeElement || input.tagName === "SELECT") input.value = settings[input.name];
    for (const slider of sliders) {
      const {name} = slider.dataset, value = settings[name];
      slider.value = stops[name].indexOf(nearestStop(name, value));
      slider.setAttribute("aria-valuetext", WORDS[name](value));
    }
    for (const name of ["header_key_bytes", "header_value_bytes"]) byId(`row-${name}`).hidden = settings.headers === 0;
  }

  function draw() {
    const {settings, notes} = state, chosen = sets[settings.formats], rows = perRecord(settings, chosen);
    fillForm(state);
    summarize(rows, settings);
    drawBars(rows, settings);
    drawLine(rows, settings);
    drawTable(rows, settings);
    byId("explorer-link").href = address.write(settings);
    byId("explorer-notes").hidden = !notes.length;
    byId("explorer-notes").textContent = notes.join(" ");
  }

  function applySetting(name, text) {
    const notes = [], settings = {...state.settings};
    if (name in address.LIMITS) {
      const [value, note] = address.clamped(name, text);
      settings[name] = value;
      if (note) notes.push(note);
    } else {
      settings[name] = text;
    }
    if (name === "workload" && text) Object.assign(settings, measured.workload(text).settings);
    else if (!KEEP_WORKLOAD.has(name)) settings.workload = "";
    state = {settings, notes};
    history.replaceState(null, "", address.write(settings));
    draw();
  }

  const options = {workload: name => name || "your own settings", bars: name => ({overhead: "all but keys and values", all: "whole records"})[name]};
  for (const [name, choices] of Object.entries(address.CHOICES)) {
    byId(`c-${name}`).append(...choices.map(value => element("option", {value}, (options[name] ?? String)(value))));
  }
  for (const slider of sliders) slider.max = stops[slider.dataset.name].length - 1;
  for (const input of inputs) {
    const [least, most] = address.LIMITS[input.name] ?? [];
    if (input.type === "number") Object.assign(input, {min: least, max: most});
    input.addEventListener("change", () => applySetting(input.name, input.value));
  }
  for (const slider of sliders) {
    const {name} = slider.dataset;
    slider.addEventListener("input", () => applySetting(name, stops[name][slider.value]));
  }
  form.addEventListener("submit", event => event.preventDefault());
  addEventListener("hashchange", () => {
    if (!location.hash.includes("=")) return; // a link to a part of the page
    state = address.read(location.hash);
    draw();
  });
  new ResizeObserver(() => drawLine(perRecord(state.settings, sets[state.settings.formats]), state.settings))
    .observe(byId("explorer-line"));
  draw();
})();
