"use strict";
/** The calculator: a form, and the sentence, the bars and the tables that follow it. All show the bytes of `sizeOf`. */
(() => {
  const {number, bytes, change, element, replaceAddress} = window.kfbench.words;
  const {formats, settings: address, measured: {sizeOf, cpuOf, bill}} = window.kfbench;
  const {base, newest: NEW, sets, codecs, levels, colours, groups, month, operations, runs} =
    JSON.parse(document.getElementById("kfbench-explorer").textContent);
  const ABSENT = "–", MB = 1e6, FULLER = 10, BEST = "zstd";
  const byId = id => document.getElementById(id);
  const form = document.querySelector("#explorer form");
  const inputs = document.querySelectorAll("#explorer [name]");
  let state = address.read(location.hash);

  /** A codec's name means its default level; others follow the name. */
  const codecWords = codec => codec === "none" ? "no codec" : `${codec} ${levels[codec] ?? ""}`.trim();

  /** The words for where sizes come from, the least certain first. */
  const hows = sizes => ["interpolated", "estimated", "measured", "exact"]
    .filter(how => sizes.some(size => size?.how === how));
  const under = codec => codec === "none" ? "without a codec" : `with ${codecWords(codec)}`;
  const absent = ({headers}, name) =>
    headers && !formats.find(format => format.name === name).has_headers ? "has no headers" : "not known";

  function summaryWords(settings) {
    const [v2, v3] = [base, NEW].map(name => sizeOf(settings, name)), how = under(settings.codec);
    if (!v2) return `${base} ${how} was not measured at these settings, nor at near neighbours on all sides.`;
    const first = `${base} takes ${bytes(v2.size)} bytes per record ${how} (${v2.how}).`;
    if (!v3) return `${first} ${NEW} was not measured here, or its neighbours disagree.`;
    const saved = v2.size - v3.size, verb = saved >= 0 ? "saves" : "adds", [how3] = hows([v2, v3]);
    return `${first} ${NEW} ${verb} ${bytes(Math.abs(saved))} bytes (${change(v3.size, v2.size)}, ${how3}).`;
  }

  function fillTable(id, heads, rows) {
    const headOf = (text, i) => element(text ? "th" : "td", text ? {scope: "col", class: i ? "n" : ""} : {}, text);
    byId(id).tHead.replaceChildren(element("tr", {}, ...heads.map(headOf)));
    byId(id).tBodies[0].replaceChildren(...rows.map(([name, ...cells]) =>
      element("tr", {}, element("th", {scope: "row"}, name), ...cells)));
  }
  const cell = (content, name = "n", head = "") =>
    element("td", {class: name, "data-head": head}, ...[content].flat());

  function drawFormats(rows, settings) {
    const most = Math.max(...rows.map(({found}) => found?.size ?? 0), 1e-9);
    const stack = ({name, found}) => Object.entries(found?.parts ?? {[name]: found?.size ?? 0}).map(([part, size]) =>
      element("i", {style: `width:${100 * size / most}%;background:${groups[part] ?? colours[name]}`}));
    const cpu = (operation, name) => {
      const found = cpuOf(settings, operation, name);
      if (!found?.ratio) return found ? `${number(found.ns, 1)} ns` : ABSENT;
      const span = ` ${number(found.low, 2)} to ${number(found.high, 2)}`;
      return [`${number(found.ratio, 2)}\u00a0×`, element("small", {}, span)];
    };
    const heads = ["bytes are", ...operations.map(name => `${name} CPU`)];
    fillTable("explorer-table", ["Format", "", "bytes per record", `against ${base}`, ...heads], rows.map(row => [
      row.name, cell(element("div", {class: "stack"}, ...stack(row)), "drawn"),
      cell(row.found ? bytes(row.found.size) : ABSENT, "metric"), cell(row.against, "soft change"),
      ...[row.how, ...operations.map(name => cpu(name, row.name))].map((text, i) => cell(text, "more", heads[i]))]));
    const cpus = rows.flatMap(({name}) => operations.map(each => cpuOf(settings, each, name)));
    const shown = new Set([...rows.map(({found}) => found), ...cpus].map(found => found?.run));
    byId("explorer-runs").textContent = runs.filter((_, run) => shown.has(run)).join(" ");
    const used = Object.keys(groups).filter(group => rows.some(({found}) => found?.parts?.[group]));
    byId("explorer-key").replaceChildren(...used.map(group => element("li", {},
      element("span", {class: "sw", style: `background:${groups[group]}`}), group)));
  }

  /** The bill of today, and that of the same records after each change: it grows with their bytes. */
  function drawBill(settings) {
    const {codec, records, workload, mb_per_s} = settings, now = sizeOf(settings, base), today = bill(mb_per_s * MB);
    const run = codec === "none" ? undefined : now?.run; // of two runs' bytes nothing is compared
    const fuller = !workload && {records: FULLER * records}, batches = `${FULLER} times fuller batches`;
    const zstd = codec !== BEST && codecs.includes(BEST) && {codec: BEST}, better = codecWords(BEST);
    const both = [zstd && better, fuller && batches].filter(Boolean).join(", ");
    const changes = [
      [`Today: ${base}, ${codecWords(codec)}`, {}, base],
      [batches, fuller, base],
      [`${better} instead of ${codecWords(codec)}`, zstd, base],
      [`${NEW} (KIP-931, not in Kafka)`, {}, NEW],
      [both, zstd && fuller && {...zstd, ...fuller}, base],
      [`${both}, ${NEW}`, both && {...zstd, ...fuller}, NEW],
    ];
    const heads = ["bytes per record", "against today", "bytes are", "US$ a month", "US$ saved"];
    fillTable("explorer-bill", ["Change", ...heads],
      changes.filter(([, changed]) => changed).map(([head, changed, name], i) => {
        const found = sizeOf({...settings, ...changed}, name, run), how = found ? hows([found, now])[0] : "not known";
        const size = found ? bytes(found.size) : ABSENT, ratio = found && now && found.size / now.size;
        const answer = !i ? ["base", how, number(today), ABSENT] : !ratio ? [ABSENT, how, ABSENT, ABSENT]
          : [change(ratio, 1), how, number(today * ratio), number(today * (1 - ratio))];
        const names = ["metric", "soft change", "more", "more", "more"];
        return [head, ...[size, ...answer].map((text, at) => cell(text, names[at], heads[at]))];
      }));
    const {replication, retention_days, fan_out, assumed, storage_gb_month, network_gb} = month;
    const prices = assumed ? `Prices of ${assumed}` : "Your prices";
    byId("explorer-prices").textContent = "Disk and network, without CPU, for the same records in every row. Assumed: "
      + `${replication} replicas, ${retention_days} days, ${fan_out} readers. ${prices}: `
      + `${storage_gb_month} US$ per GB-month, ${network_gb} US$ per GB of network.`;
  }

  function draw() {
    const {settings, notes} = state, v2 = sizeOf(settings, base);
    const rows = sets[settings.formats].map(name => {
      const found = sizeOf(settings, name), how = found ? hows([found, v2])[0] : absent(settings, name);
      const against = !found || !v2 ? ABSENT : name === base ? "base" : change(found.size, v2.size);
      return {name, found, how, against};
    });
    for (const input of inputs) input.value = settings[input.name];
    for (const name of ["header_key_bytes", "header_value_bytes"]) byId(`row-${name}`).hidden = settings.headers === 0;
    byId("explorer-summary").textContent = summaryWords(settings);
    drawFormats(rows, settings);
    drawBill(settings);
    byId("explorer-link").href = address.write(settings);
    byId("explorer-notes").hidden = !notes.length;
    byId("explorer-notes").textContent = notes.join(" ");
  }

  const options = {workload: name => name || "your own settings", codec: codecWords};
  for (const [name, choices] of Object.entries(address.CHOICES)) {
    const box = byId(`c-${name}`);
    box.append(...choices.map(value => element("option", {value}, (options[name] ?? String)(value))));
    box.parentElement.hidden = choices.length < 2;
  }
  form.closest(".explorer").hidden = false; // without scripts no dead form is shown
  for (const input of inputs) {
    const [least, most] = address.LIMITS[input.name] ?? [];
    if (input.type === "number") Object.assign(input, {min: least, max: most});
    input.addEventListener("change", () => {
      state = address.changed(state.settings, input.name, input.value);
      draw();
      replaceAddress(address.write(state.settings));
    });
  }
  form.addEventListener("submit", event => event.preventDefault());
  addEventListener("hashchange", () => {
    if (!location.hash.includes("=")) return; // a link to a part of the page
    state = address.read(location.hash);
    draw();
  });
  draw();
})();
