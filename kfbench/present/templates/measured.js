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

  /** The axes on which a cell differs from the settings: [axis, cell's value]. Lengths of headers count if there are any. */
  const differences = (cell, settings) => [
    ...AXES.map((axis, i) => [axis, cell.settings[i]]), ...(settings.headers > 0 ? Object.entries(HEADER_BYTES) : []),
  ].filter(([axis, value]) => value !== settings[axis]);

  /** Return the workload of the settings, or the cell that was measured at exactly these settings, if any. */
  const cellOf = settings => workloads.find(({name}) => name === settings.workload)
    ?? cells.find(cell => !differences(cell, settings).length);

  /** Return up to three measured cells near the settings. has: cell => boolean. */
  function nearest(settings, has) {
    const doublings = ([axis, value]) => Math.abs(Math.log2((value + 2) / (settings[axis] + 2)));
    const distance = cell => differences(cell, settings).reduce((total, each) => total + doublings(each), 0);
    return cells.filter(has).sort((a, b) => distance(a) - distance(b)).slice(0, 3);
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

  /** The month's cost in US$ of bytes that are produced per second, as in `kfbench.whatif.month`. */
  function bill(bytesPerSecond) {
    const aDay = bytesPerSecond * 86400, produced = aDay * month.days, copies = produced * (month.replication - 1);
    const network = produced + copies + copies + produced * month.fan_out;
    const stored = aDay * month.retention_days * month.replication;
    return stored / 1e9 * month.storage_gb_month + network / 1e9 * month.network_gb;
  }

  return {cellOf, nearest, differences, bytesOf, cpuOf, bill};
})();
