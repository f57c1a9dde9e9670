"use strict";
/** Numbers and settings in words, and elements of the page. */
window.kfbench.words = (() => {
  const number = (x, digits = 0) =>
    x.toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits}).replace("-", "−");
  const bytes = x => number(x, x < 10 ? 2 : x < 1000 ? 1 : 0);
  const percent = x => `${x > 0 ? "+" : ""}${number(100 * x, Math.abs(x) < 0.1 ? 2 : 1)}\u00a0%`;
  const change = (x, of) => Math.abs(x / of - 1) < 5e-5 ? "±0\u00a0%" : percent(x / of - 1);
  const length = x => x < 0 ? "null" : `${number(x)} bytes`;
  function duration(ms) {
    const units = [[86400000, "d"], [3600000, "h"], [60000, "min"], [1000, "s"]];
    const [size, unit] = units.find(([least]) => ms >= least) ?? [1, "ms"];
    return `${(ms / size).toLocaleString("en", {maximumFractionDigits: 2})} ${unit}`;
  }
  /** The value of each setting in words. */
  const SETTINGS = {
    records: x => `${number(x)} ${x === 1 ? "record" : "records"} per batch`,
    key_bytes: x => x < 0 ? "no key" : `key ${length(x)}`,
    value_bytes: x => x < 0 ? "no value" : `value ${length(x)}`,
    span_ms: x => `time span ${duration(x)}`,
    headers: x => `${number(x)} ${x === 1 ? "header" : "headers"}`,
    null_percent: x => `${number(x)} % null values`,
    header_key_bytes: x => `header name ${length(x)}`,
    header_value_bytes: x => `header value ${length(x)}`,
  };

  function element(tag, properties = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }
  function swatch(colour) {
    const made = element("span", {className: "sw"});
    made.style.background = colour;
    return made;
  }
  function svg(tag, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  return {number, bytes, change, SETTINGS, element, swatch, svg};
})();
