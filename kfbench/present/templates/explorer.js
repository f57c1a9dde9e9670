"use strict";
/** The explorer: a form, and the bars, the line and the table that follow it. */
(() => {
  const {fields, formats, stops, sum, PAYLOAD, settings: address, measured, words, line} = window.kfbench;
  const {number, bytes, change, element, swatch, SETTINGS} = words;
  const {base, newest: NEW, sets, colours, groups, month, operations, is_sampled: isSampled} =
    JSON.parse(document.getElementById("kfbench-explorer").textContent);
  const MOST_LINES = 6, LAST_RECORDS = 10000, ABSENT = "–", OTHER = "var(--other)", MB = 1e6;
  const PAUSE_MS = 200; // the address follows a moving slider when it rests for so long
  const byId = id => document.getElementById(id);
  const form = document.querySelector("#explorer form");
  const inputs = document.querySelectorAll("#explorer [name]"), sliders = form.querySelectorAll("[type=range]");
  let state = address.read(location.hash);

  // ---- what is computed ----
  const batchOf = ({null_percent, ...settings}) =>
    ({...settings, null_values: Math.round(settings.records * null_percent / 100)});
  const nearestStop = (name, value) => stops[name].reduce((best, stop) =>
    Math.abs(Math.log2((stop + 2) / (value + 2))) < Math.abs(Math.log2((best + 2) / (value + 2))) ? stop : best);

  /** Per chosen format: bytes per record in groups of fields, or parts: null without a size. */
  function perRecord(settings, chosen) {
    const found = fields(batchOf(settings));
    return chosen.map(name => {
      if (!found[name]) return {name, parts: null};
      const groups = Object.entries(found[name]).map(([group, size]) => [group, size / settings.records]);
      const parts = Object.fromEntries(groups);
      return {name, parts, total: sum(parts)};
    });
  }

  // ---- bars ----
  const hasHeaders = name => formats.find(format => format.name === name).has_headers;
  const lacking = name => hasHeaders(name) ? "no formula" : "has no headers";

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
      const total = row.parts ? `${bytes(row.total)} B` : lacking(row.name);
      const side = !row.parts ? "" : row.name === base ? "base" : change(row.total, v2.total);
      return element("div", {className: "bar"},
        element("span", {className: "name"}, row.name), bar,
        element("span", {className: "total"}, total, " ", element("small", {}, side)));
    }));
    const used = shown.filter(group => rows.some(({parts}) => parts?.[group]));
    byId("explorer-key").replaceChildren(...used.map(group => element("li", {}, swatch(groups[group]), group)));
  }

  // ---- the line over batch size ----
  function drawLine(rows, settings) {
    const figure = byId("explorer-line"), width = Math.max(figure.clientWidth, 280), {records} = settings;
    const rank = ({name}) => [base, NEW].indexOf(name) + 1 || (colours[name] === OTHER ? 4 : 3);
    const ranked = rows.filter(({parts}) => parts).sort((a, b) => rank(a) - rank(b) || a.total - b.total);
    const shown = ranked.slice(0, MOST_LINES).map(({name}) => name);
    const last = stops.records.find(stop => stop >= Math.max(LAST_RECORDS, records));
    const counts = stops.records.filter(stop => stop <= last);
    const besides = at => Object.fromEntries(perRecord({...settings, records: at}, shown)
      .map(({name, parts, total}) => [name, parts && total - parts[PAYLOAD]]));
    const columns = counts.map(besides), here = besides(records);
    const lines = shown.map(name => ({name, colour: colours[name], here: here[name],
      points: counts.map((n, i) => [n, columns[i][name]]).filter(([, size]) => size > 0)}));
    const caption = "Bytes per record besides keys and values, over records per batch."
      + (ranked.length > MOST_LINES ? ` ${MOST_LINES} of ${ranked.length} formats are drawn.` : "");
    const drawn = lines.filter(({points}) => points.length);
    figure.replaceChildren(element("figcaption", {}, caption),
      ...drawn.length ? [line.draw(drawn, records, last, width)] : []);
  }

  // ---- the table ----
  const measuredWord = codec => isSampled && codec !== "none" ? "Estimated" : "Measured";

  /** Links to measured settings near the reader's. has: cell => boolean. */
  function links(settings, has) {
    const found = measured.nearest(settings, has).map(cell => measured.differences(cell, settings));
    return found.flatMap((axes, i) => [i ? "; " : " Nearest that were: ",
      element("a", {href: address.write({...settings, ...Object.fromEntries(axes)})},
        axes.map(([axis, value]) => SETTINGS[axis](value)).join(", "))]).concat(found.length ? "." : "");
  }

  /** Where the numbers of the table come from, and what was not measured. cell: the source, if any. */
  function sourceWords(settings, cell) {
    const {codec, workload} = settings, how = codec === "none" ? "without a codec" : `with ${codec}`;
    const hasBytes = each => measured.bytesOf(each, codec, base);
    const hasCpu = each => operations.every(name => measured.cpuOf(each, codec, name, base));
    if (workload) {
      const found = hasBytes(cell) ? `${measuredWord(codec)} on ${workload} in its own batches, ${how}.`
        : `${workload} was not measured ${how}.`;
      const span = "span_ms" in cell.settings ? "" : ", and your time span";
      const rivals = cell.rivals[codec] ? " Rivals (last rows) have their smallest settings." : "";
      return [`${found} The bars use its mean lengths${span}.${rivals} ${ABSENT}: not measured.`];
    }
    const measuredOr = (what, has, near) => cell && has(cell) ? [`${what} ${how}: measured at exactly these settings. `]
      : [`${what} ${how}: not measured at these settings.`, ...near, " "];
    const isExact = codec === "none", isSized = isExact || cell && hasBytes(cell);
    return [
      ...isExact ? ["Bytes: exact, without a codec. "] : measuredOr("Bytes", hasBytes, links(settings, hasBytes)),
      ...operations.length ? measuredOr("CPU", hasCpu, isSized ? links(settings, hasCpu) : []) : [],
      operations.length ? "CPU times are those of kfbench’s kernels. " : "", `${ABSENT}: not measured.`,
    ];
  }

  function drawTable(rows, settings) {
    const {codec, workload} = settings, cell = measured.cellOf(settings), v2 = rows.find(({name}) => name === base);
    const sizeOf = (row, under) => under === "none" && !workload ? row.parts && row.total
      : cell && measured.bytesOf(cell, under, row.name);
    const cpu = (row, operation) => {
      const found = cell && measured.cpuOf(cell, codec, operation, row.name);
      if (!found) return [ABSENT];
      if (row.name === base) return [`${number(found.ns, 1)} ns`];
      const interval = element("small", {}, ` ${number(found.low, 2)} to ${number(found.high, 2)}`);
      return [`${number(found.ratio, 2)}×`, interval];
    };
    /** size, ofBase: bytes of the row and of v2 under the codec. plain: those of v2 without one. */
    const tableRow = (name, size, ofBase, plain, cpus) => {
      const cells = [
        [size ? bytes(size) : ABSENT],
        [!size || !ofBase ? ABSENT : name === base ? "base" : change(size, ofBase)],
        ...cpus,
        [size && plain ? number(measured.bill(settings.mb_per_s * MB * size / plain)) : ABSENT],
      ];
      const head = element("th", {scope: "row"}, swatch(colours[name] ?? OTHER), name);
      return element("tr", {}, head, ...cells.map(content => element("td", {className: "n"}, ...content)));
    };
    const rivals = workload ? cell.rivals : {}, ofBase = sizeOf(v2, codec), plain = sizeOf(v2, "none");
    const body = [
      ...rows.map(row => tableRow(row.name, sizeOf(row, codec), ofBase, plain, operations.map(each => cpu(row, each)))),
      ...(rivals[codec] ?? []).map(([name, size, ofV2]) =>
        tableRow(name, size, ofV2, rivals.none?.[0][2], operations.map(() => [ABSENT]))),
    ];
    const cpuHeads = operations.map(name => `${name[0].toUpperCase()}${name.slice(1)} CPU`);
    const heads = ["Format", "Bytes per record", `Bytes vs ${base}`, ...cpuHeads, "US$ a month"];
    const table = byId("explorer-table");
    table.tHead.replaceChildren(element("tr", {}, ...heads.map((text, i) =>
      element("th", {scope: "col", className: i ? "n" : ""}, text))));
    table.tBodies[0].replaceChildren(...body);
    byId("explorer-source").replaceChildren(...sourceWords(settings, cell));
    byId("explorer-bill").textContent = billWords(settings);
  }

  function billWords({mb_per_s}) {
    const {replication, retention_days, fan_out, assumed, storage_gb_month, network_gb} = month;
    return "The bill is disk and network for the same records in every row: those that take "
      + `${mb_per_s.toLocaleString("en")} MB/s in ${base} without a codec. `
      + `Assumed: ${replication} replicas, ${retention_days} days, ${fan_out} readers. `
      + `${assumed ? `Prices of ${assumed}` : "Your prices"}: ${storage_gb_month} US$ per GB-month, ${network_gb} US$ per GB of network.`;
  }

  // ---- the summary ----
  /** The rows with bytes without a codec. Those of a workload are measured, if v2's are. */
  function plainRows(rows, settings) {
    const cell = measured.cellOf(settings), sizeOf = ({name}) => cell && measured.bytesOf(cell, "none", name);
    if (!sizeOf({name: base})) return rows.filter(({parts}) => parts);
    return rows.filter(sizeOf).map(row => ({name: row.name, total: sizeOf(row)}));
  }

  /** Bytes of v2, and what v3 and the smallest format save. Formats without headers can lose parts of a record. */
  function summarize(rows, settings) {
    const plainOnes = plainRows(rows, settings), v2 = plainOnes.find(row => row.name === base);
    const others = plainOnes.filter(row => row.name !== base && hasHeaders(row.name)).sort((a, b) => a.total - b.total);
    const named = new Set([others.find(({name}) => name === NEW), others[0]].filter(Boolean));
    const plain = [...named].map(({name, total}) => {
      const saved = v2.total - total, verb = saved >= 0 ? "saves" : "adds";
      return `${name} ${verb} ${bytes(Math.abs(saved))} bytes (${change(total, v2.total)}).`;
    });
    const first = `${base} takes ${bytes(v2.total)} bytes per record without a codec.`;
    const packed = packedWords(settings, rows.map(({name}) => name));
    byId("explorer-summary").textContent = [first, ...plain, packed].join(" ");
  }

  /** What the first format after v2 saves under the chosen codec, where it was measured. */
  function packedWords(settings, chosen) {
    const {codec} = settings, cell = measured.cellOf(settings);
    if (codec === "none") return "";
    const name = chosen.includes(NEW) ? NEW : chosen.find(each => each !== base);
    const [size, ofBase] = [name, base].map(each => cell && measured.bytesOf(cell, codec, each));
    return size && ofBase ? `With ${codec}, ${name} ${measuredWord(codec).toLowerCase()} ${change(size, ofBase)}.`
      : `With ${codec}, ${name} was not measured at these settings.`;
  }

  // ---- the form ----
  function fillForm({settings}) {
    for (const input of inputs) input.value = settings[input.name];
    for (const slider of sliders) {
      const {name} = slider.dataset, value = settings[name];
      slider.value = stops[name].indexOf(nearestStop(name, value));
      slider.setAttribute("aria-valuetext", SETTINGS[name](value));
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
    if (name === "workload") {
      const means = address.meansOf(text);
      Object.assign(settings, means.settings);
      notes.push(...[...means.notes.values()].filter(Boolean));
    }
    settings.workload = address.workloadOf(settings);
    state = {settings, notes};
    draw();
  }

  let pause = 0;
  function writeAddress() {
    clearTimeout(pause);
    try {
      history.replaceState(null, "", address.write(state.settings));
    } catch { /* some browsers limit changes of the address: the link has the settings */ }
  }

  const BARS = {overhead: "all but keys and values", all: "whole records"};
  const options = {workload: name => name || "your own settings", bars: name => BARS[name]};
  for (const [name, choices] of Object.entries(address.CHOICES)) {
    const box = byId(`c-${name}`);
    box.append(...choices.map(value => element("option", {value}, (options[name] ?? String)(value))));
    box.parentElement.hidden = choices.length < 2;
  }
  form.closest(".explorer").hidden = false; // without scripts no dead form is shown
  for (const slider of sliders) slider.max = stops[slider.dataset.name].length - 1;
  for (const input of inputs) {
    const [least, most] = address.LIMITS[input.name] ?? [];
    if (input.type === "number") Object.assign(input, {min: least, max: most});
    input.addEventListener("change", () => {
      applySetting(input.name, input.value);
      writeAddress();
    });
  }
  for (const slider of sliders) {
    const {name} = slider.dataset;
    slider.addEventListener("input", () => {
      applySetting(name, stops[name][slider.value]);
      clearTimeout(pause);
      pause = setTimeout(writeAddress, PAUSE_MS);
    });
    slider.addEventListener("change", writeAddress);
  }
  form.addEventListener("submit", event => event.preventDefault());
  addEventListener("hashchange", () => {
    if (!location.hash.includes("=")) return; // a link to a part of the page
    clearTimeout(pause);
    state = address.read(location.hash);
    draw();
  });
  new ResizeObserver(() => drawLine(perRecord(state.settings, sets[state.settings.formats]), state.settings))
    .observe(byId("explorer-line"));
  draw();
})();
