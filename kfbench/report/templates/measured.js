"use strict";
/**
 * The measured cells of the run: bytes under a codec, CPU times, and a month's bill.
 *
 * A cell is a grid point or a named workload. Its numbers stand in the order of `formats`; 0 is missing. A workload also
 * has `rivals`: codec -> [[name, bytes, those of v2 on the same records]].
 */
window.kfbench.measured = (() => {
  const {base, cells, workloads, month, formats} = JSON.parse(document.getElementById("kfbench-explorer").textContent);
  const AXES = ["records", "key_bytes", "value_bytes", "span_ms", "headers", "null_percent"];
  const HEADER_BYTES = {header_key_bytes: 12, header_value_bytes: 20}; // of every cell with headers
  const at = name => formats.indexOf(name);

  /** The axes with the cell's and the reader's value: [axis, cell's, reader's]. Lengths of headers count if there are any. */
  const pairs = (cell, settings) => [
    ...AXES.map((axis, i) => [axis, cell.settings[i], settings[axis]]),
    ...(settings.headers > 0 ? Object.entries(HEADER_BYTES).map(([axis, size]) => [axis, size, settings[axis]]) : []),
  ];

  /**
   * Doublings between two settings, summed over the axes. A null length is 1 below an empty one. The time span counts a
   * quarter, because it changes few bytes.
   */
  const doublings = (axis, a, b) => Math.abs(Math.log2((a + 2) / (b + 2))) * (axis === "span_ms" ? 0.25 : 1);
  const distance = (cell, settings) =>
    pairs(cell, settings).reduce((sum, [axis, theirs, yours]) => sum + doublings(axis, theirs, yours), 0);

  /** Return the nearest cell that has all chosen formats which any cell has. has: (cell, format) => boolean. */
  function nearest(settings, chosen, has) {
    const common = chosen.filter(name => cells.some(cell => has(cell, name)));
    const whole = cells.filter(cell => has(cell, base) && common.every(name => has(cell, name)));
    let best = null;
    for (const cell of whole) {
      const apart = distance(cell, settings);
      if (best === null || apart < best.apart) best = {cell, apart};
    }
    return best;
  }

  const bytesOf = (cell, codec, name) => cell.bytes[codec]?.[at(name)] || null;

  /** {ratio, low, high} to v2, or {ns} of v2 itself, or null. Numbers in the page are thousandths. */
  function cpuOf(cell, codec, operation, name) {
    const stored = cell.cpu[codec]?.[operation]?.[at(name)];
    if (!stored) return null;
    if (name === base) return {ns: stored, ratio: 1};
    const [ratio, below, above] = stored;
    return {ratio: ratio / 1000, low: (ratio + below) / 1000, high: (ratio + above) / 1000};
  }

  const workload = name => workloads.find(each => each.name === name);

  /** The month's cost in US$ of bytes that are produced per second, as in `kfbench.whatif.month`. */
  function bill(bytesPerSecond) {
    const aDay = bytesPerSecond * 86400, produced = aDay * month.days, copies = produced * (month.replication - 1);
    const network = produced + copies + copies + produced * month.fan_out;
    const stored = aDay * month.retention_days * month.replication;
    return stored / 1e9 * month.storage_gb_month + network / 1e9 * month.network_gb;
  }

  /** The axes on which a cell differs from the settings: [axis, cell's value, reader's value]. */
  const differences = (cell, settings) => pairs(cell, settings)
    .filter(([, theirs, yours]) => theirs !== yours);

  return {nearest, bytesOf, cpuOf, workload, bill, differences};
})();
