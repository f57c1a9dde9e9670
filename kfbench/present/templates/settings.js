"use strict";
/**
 * The settings of the explorer: their limits, and the page's address, which holds them.
 *
 * window.kfbench.settings.read(address) returns {settings, notes}. A value out of range is clamped, and a note says so.
 * The means of a workload are clamped, too.
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
  const firstChoices = Object.fromEntries(Object.entries(CHOICES).map(([name, [value]]) => [name, value]));
  const number = x => x.toLocaleString("en").replace("-", "−");
  const words = name => name.replaceAll("_", " ");

  /** Return a whole number inside the limits (mb_per_s may have decimals), and a note if it was outside. */
  function clamped(name, text) {
    const [least, most] = LIMITS[name], value = Number(text);
    if (String(text).trim() === "" || !Number.isFinite(value)) { // only in an address or a field
      const shown = String(text).slice(0, 20);
      return [DEFAULTS[name], `${words(name)}: “${shown}” is no number. ${number(DEFAULTS[name])} is used.`];
    }
    const inside = Math.min(Math.max(name === "mb_per_s" ? value : Math.round(value), least), most);
    const isNear = Math.abs(inside - value) < 1;
    const range = `${number(least)} to ${number(most)}`;
    return [inside, isNear ? "" : `${words(name)}: ${number(value)} is outside ${range}. `
      + `${number(inside)} is used.`];
  }

  /** Return the settings inside their limits, and the notes as a Map from the setting's name. */
  function inside(wanted) {
    const settings = {...wanted}, notes = new Map();
    for (const name of Object.keys(LIMITS).filter(each => each in wanted)) {
      const [value, note] = clamped(name, wanted[name]);
      settings[name] = value;
      notes.set(name, note);
    }
    return {settings, notes};
  }
  const start = inside({...first, mb_per_s: 10, ...firstChoices, ...first}), DEFAULTS = start.settings;
  const meansOf = name => inside(workloads.find(each => each.name === name)?.settings ?? {});

  /** Return the workload that has these settings, or "" if one was changed. */
  function workloadOf(settings) {
    const means = Object.entries(meansOf(settings.workload).settings);
    return means.every(([name, value]) => settings[name] === value) ? settings.workload : "";
  }

  function read(address) {
    const given = new URLSearchParams(address.replace(/^#/, "")), means = meansOf(given.get("workload"));
    const settings = {...DEFAULTS, ...means.settings}, notes = new Map([...start.notes, ...means.notes]);
    for (const [name, text] of given) {
      if (name in LIMITS) {
        const [value, note] = clamped(name, text);
        settings[name] = value;
        notes.set(name, note);
      } else if (name in CHOICES) {
        if (CHOICES[name].includes(text)) settings[name] = text;
        else notes.set(name, `${words(name)}: “${text.slice(0, 40)}” is not a choice here.`);
      } else if (address.includes("=")) {
        notes.set(name, `“${name.slice(0, 40)}” is no setting.`);
      }
    }
    settings.workload = workloadOf(settings);
    return {settings, notes: [...notes.values()].filter(Boolean)};
  }

  /** The address of these settings. Those with the default value are left out. */
  function write(settings) {
    const changed = Object.entries(settings).filter(([name, value]) => value !== DEFAULTS[name]);
    return `#${new URLSearchParams(changed.length ? changed : [["records", settings.records]])}`;
  }

  return {read, write, clamped, meansOf, workloadOf, LIMITS, CHOICES};
})();
