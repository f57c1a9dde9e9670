"use strict";
/**
 * The settings of the explorer: their limits, and the page's address, which holds them.
 *
 * window.kfbench.settings.read(address) returns {settings, notes}. A value out of range is clamped, and a note says so.
 */
window.kfbench.settings = (() => {
  const {first, sets, codecs, workloads} = JSON.parse(document.getElementById("kfbench-explorer").textContent);
  const LIMITS = {
    records: [1, 1e6], key_bytes: [-1, 1e6], value_bytes: [-1, 1e7], span_ms: [0, 315576e6], headers: [0, 64],
    header_key_bytes: [0, 1000], header_value_bytes: [-1, 1e6], null_percent: [0, 100], mb_per_s: [0, 1e6],
  };
  const CHOICES = {
    formats: Object.keys(sets), codec: ["none", ...codecs], workload: ["", ...workloads.map(({name}) => name)],
    bars: ["overhead", "all"],
  };
  const DEFAULTS = {...first, mb_per_s: 10, ...Object.fromEntries(
    Object.entries(CHOICES).map(([name, [value]]) => [name, value]))};

  const number = x => x.toLocaleString("en").replace("-", "−");
  const words = name => name.replaceAll("_", " ");

  /** Return a whole number inside the limits (mb_per_s may have decimals), and a note if it was outside. */
  function clamped(name, text) {
    const [least, most] = LIMITS[name], value = Number(text);
    if (String(text).trim() === "" || !Number.isFinite(value)) {
      const shown = String(text).slice(0, 20);
      return [DEFAULTS[name], `${words(name)}: “${shown}” is no number. ${number(DEFAULTS[name])} is used.`];
    }
    const inside = Math.min(Math.max(name === "mb_per_s" ? value : Math.round(value), least), most);
    const isNear = Math.abs(inside - value) < 1;
    const range = `${number(least)} to ${number(most)}`;
    return [inside, isNear ? "" : `${words(name)}: ${number(value)} is outside ${range}. `
      + `${number(inside)} is used.`];
  }

  function read(address) {
    const given = new URLSearchParams(address.replace(/^#/, "")), notes = [];
    const means = workloads.find(({name}) => name === given.get("workload"))?.settings;
    const settings = {...DEFAULTS, ...means};
    for (const [name, text] of given) {
      if (name in LIMITS) {
        const [value, note] = clamped(name, text);
        settings[name] = value;
        if (note) notes.push(note);
      } else if (name in CHOICES) {
        if (CHOICES[name].includes(text)) settings[name] = text;
        else notes.push(`${words(name)}: “${text.slice(0, 40)}” is not a choice here.`);
      } else if (address.includes("=")) {
        notes.push(`“${name.slice(0, 40)}” is no setting.`);
      }
    }
    return {settings, notes};
  }

  /** The address of these settings. Those with the default value are left out. */
  function write(settings) {
    const changed = Object.entries(settings).filter(([name, value]) => value !== DEFAULTS[name]);
    return `#${new URLSearchParams(changed.length ? changed : [["records", settings.records]])}`;
  }

  return {read, write, clamped, LIMITS, CHOICES};
})();
