"use strict";
/**
 * The settings of the calculator: their limits, and the page's address, which holds them.
 *
 * read(address) and changed(settings, name, text) return {settings, notes}. A value out of range is clamped, and a note
 * says so.
 */
window.kfbench.settings = (() => {
  const {addressParts} = window.kfbench.words;
  const {first, sets, codecs, workloads} = JSON.parse(document.getElementById("kfbench-explorer").textContent);
  const LIMITS = {
    records: [1, 1e6], key_bytes: [-1, 1e6], value_bytes: [-1, 1e7], span_ms: [0, 315576e6], headers: [0, 64],
    header_key_bytes: [0, 1000], header_value_bytes: [-1, 1e6], null_percent: [0, 100], mb_per_s: [0, 1e6],
  };
  const CHOICES = {
    formats: Object.keys(sets), codec: ["none", ...codecs], workload: ["", ...workloads.map(({name}) => name)],
  };
  const firstChoices = Object.fromEntries(Object.entries(CHOICES).map(([name, [value]]) => [name, value]));
  const number = x => x.toLocaleString("en").replace("-", "−");
  const words = name => name.replaceAll("_", " ");

  /** Return a whole number inside the limits (mb_per_s may have decimals), and a note if it was outside. */
  function clamped(name, text) {
    const [least, most] = LIMITS[name], value = Number(text);
    if (String(text).trim() === "" || !Number.isFinite(value)) { // only in an address or a field
      const shown = String(text).slice(0, 20);
      return [first[name], `${words(name)}: “${shown}” is no number. ${number(first[name])} is used.`];
    }
    const inside = Math.min(Math.max(name === "mb_per_s" ? value : Math.round(value), least), most);
    const kind = name === "mb_per_s" ? "" : "whole numbers from ", range = `${number(least)} to ${number(most)}`;
    const note = `${words(name)}: ${number(inside)} instead of ${number(value)}. Possible: ${kind}${range}.`;
    return [inside, inside === value ? "" : note];
  }

  /** Apply changes, [name, text] each. The settings leave the workload if they differ from its means. */
  function apply(before, changes) {
    const settings = {...before}, notes = new Map();
    for (const [name, text] of changes) {
      if (name in LIMITS) {
        const [value, note] = clamped(name, text);
        settings[name] = value;
        notes.set(name, note);
      } else if (CHOICES[name]?.includes(text)) {
        settings[name] = text;
      } else {
        notes.set(name, name in CHOICES ? `${words(name)}: “${text.slice(0, 40)}” is not a choice here.`
          : `“${name.slice(0, 40)}” is no setting.`);
      }
    }
    const isMean = ([name, value]) => settings[name] === clamped(name, value)[0];
    if (!meansOf(settings.workload).every(isMean)) settings.workload = "";
    return {settings, notes: [...notes.values()].filter(Boolean)};
  }
  const meansOf = name => Object.entries(workloads.find(each => each.name === name)?.settings ?? {});
  const DEFAULTS = apply({}, Object.entries({...firstChoices, ...first})).settings;
  const changed = (settings, name, text) => apply(settings, [...meansOf(name === "workload" && text), [name, text]]);

  function read(address) {
    const [own] = addressParts(address), given = new URLSearchParams(own.includes("=") ? own : "");
    return apply(DEFAULTS, [...Object.entries(first), ...meansOf(given.get("workload")), ...given]);
  }

  /** The address of these settings, before what the views keep in it. Those with the default value are left out. */
  function write(settings) {
    const changes = Object.entries(settings).filter(([name, value]) => value !== DEFAULTS[name]);
    const own = new URLSearchParams(changes.length ? changes : [["records", settings.records]]);
    return `#${[own, addressParts(location.hash)[1]].filter(String).join("&")}`;
  }

  return {read, changed, write, LIMITS, CHOICES};
})();
