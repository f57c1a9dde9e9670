"use strict";
/**
 * Bytes per record and CPU times, exact, measured or interpolated between measured neighbours. A month's bill.
 *
 * A cell is a grid point of a run or a named workload. Its numbers stand in the order of `formats`; 0 is missing.
 */
window.kfbench.measured = (() => {
  const {fields, sum} = window.kfbench;
  const {base, newest, cells: stored, workloads, runs, month, formats, is_sampled: isSampled} =
    JSON.parse(document.getElementById("kfbench-explorer").textContent);
  const AXES = ["records", "key_bytes", "value_bytes", "span_ms", "headers", "null_percent"];
  const OTHERS = AXES.filter(axis => axis !== "records" && axis !== "value_bytes"); // no interpolation along these
  const settingsOf = settings => Object.fromEntries(AXES.map((axis, i) => [axis, settings[i] ?? 0]));
  const cells = stored.map(([settings, run, bytes, cpu = {}]) => ({settings: settingsOf(settings), run, bytes, cpu}));
  const HEADER_BYTES = {header_key_bytes: 12, header_value_bytes: 20}; // of every cell with headers
  const NEIGHBOURS = 5; // on each axis, the larger one is at most so many times the smaller one
  const SPREAD = 0.012; // neighbours' savings differ by at most this share of a batch, and have one sign
  const bytesOf = (cell, codec, name) => cell.bytes[codec]?.[formats.indexOf(name)];

  /** The cells of the grid that have the settings' values on these axes. */
  function cellsOf(settings, axes) {
    const isHeader = ([name, length]) => !settings.headers || settings[name] === length;
    return Object.entries(HEADER_BYTES).every(isHeader)
      ? cells.filter(cell => axes.every(axis => cell.settings[axis] === settings[axis])) : [];
  }
  const named = name => workloads.filter(each => each.name === name).map(each => ({...each, run: runs.length - 1}));
  const at = settings => settings.workload ? named(settings.workload) : cellsOf(settings, AXES);
  const measured = (settings, name, run) =>
    at(settings).filter(cell => cell.run === run).map(cell => bytesOf(cell, settings.codec, name)).find(Boolean);
  /** The run whose numbers under a codec are shown: the first with v2's bytes, measured or between neighbours. */
  const runOf = settings => [...runs.keys()]
    .find(run => measured(settings, base, run) || !settings.workload && between(settings, base, run));

  /** The stops next to x, [stop, weight]: x itself, or two. None if x is outside, or they are far apart. */
  function beside(stops, x) {
    if (stops.includes(x)) return [[x, 1]];
    const low = Math.max(...stops.filter(stop => stop < x)), high = Math.min(...stops.filter(stop => stop > x));
    const weight = Math.log(x / low) / Math.log(high / low);
    return low > 0 && high <= NEIGHBOURS * low ? [[low, 1 - weight], [high, weight]] : [];
  }

  /**
   * Bytes per record between neighbours of one run, in batch size and value size; null without them.
   *
   * v2's logarithm is linear in the logarithms of both. v3 saves per batch the median of the neighbours' savings. It is
   * null if these savings disagree, or if those at the next smaller and larger values do.
   */
  function between(settings, name, run) {
    const {codec, records, value_bytes} = settings;
    const plane = cellsOf(settings, OTHERS).filter(cell => cell.run === run && bytesOf(cell, codec, base));
    const find = (n, length) => plane.find(cell => cell.settings.records === n && cell.settings.value_bytes === length);
    const lengths = plane.map(cell => cell.settings.value_bytes), near = beside(lengths, value_bytes);
    const counts = beside(plane.map(cell => cell.settings.records), records);
    const corners = counts.flatMap(([n, part]) => near.map(([length, share]) => [find(n, length), part * share]));
    if (!corners.length || corners.some(([cell]) => !cell)) return null;
    const size = Math.exp(sum(corners.map(([cell, weight]) => weight * Math.log(bytesOf(cell, codec, base)))));
    if (name === base) return size;
    const below = Math.max(...lengths.filter(length => length < near[0][0]));
    const above = Math.min(...lengths.filter(length => length > near.at(-1)[0]));
    const saved = cell => cell.settings.records * (bytesOf(cell, codec, base) - (bytesOf(cell, codec, name) || NaN));
    const outer = counts.flatMap(([n]) => [find(n, below), find(n, above)]).filter(Boolean).map(saved);
    const inner = corners.map(([cell]) => saved(cell)).sort((a, b) => a - b), middle = (inner.length - 1) / 2;
    const least = Math.min(...inner, ...outer), most = Math.max(...inner, ...outer);
    return least * most > 0 && most - least <= SPREAD * size * records
      ? size - (inner[Math.floor(middle)] + inner[Math.ceil(middle)]) / 2 / records : null;
  }

  /** {size, how, run, parts}: bytes per record, where they come from, and groups of fields if exact; or null. */
  function sizeOf(settings, name, run = runOf(settings)) {
    const {codec, records, null_percent, workload} = settings, found = measured(settings, name, run);
    if (found) return {size: found, how: isSampled && codec !== "none" ? "estimated" : "measured", run};
    if (workload) return null;
    if (codec === "none") {
      const groups = fields({...settings, null_values: Math.round(records * null_percent / 100)})[name];
      const shares = Object.entries(groups ?? {}).map(([group, size]) => [group, size / records]);
      const parts = Object.fromEntries(shares);
      return groups && {size: sum(parts), how: "exact", parts};
    }
    const size = run !== undefined && [base, newest].includes(name) && between(settings, name, run);
    return size ? {size, how: "interpolated", run} : null;
  }

  /** {ratio, low, high, run} to v2, or {ns, run} of v2 itself, or undefined. Numbers in the page are thousandths. */
  function cpuOf(settings, operation, name) {
    const numbersOf = cell => cell.cpu[settings.codec]?.[operation], number = at => numbers?.[formats.indexOf(at)];
    const cell = at(settings).find(each => numbersOf(each)?.[formats.indexOf(base)]), numbers = cell && numbersOf(cell);
    const found = number(name), run = cell?.run;
    if (!found || name === base) return found && {ns: found, run};
    const [ratio, below, above] = found;
    return {ratio: ratio / 1000, low: (ratio + below) / 1000, high: (ratio + above) / 1000, run};
  }

  /** The month's cost in US$ of bytes that are produced per second, as in `kfbench.money.month`. */
  function bill(bytesPerSecond) {
    const aDay = bytesPerSecond * 86400, produced = aDay * month.days, copies = produced * (month.replication - 1);
    const network = produced + copies + copies + produced * month.fan_out;
    const stored = aDay * month.retention_days * month.replication;
    return stored / 1e9 * month.storage_gb_month + network / 1e9 * month.network_gb;
  }

  return {sizeOf, cpuOf, bill};
})();
