"use strict";
/** Numbers in words, and elements of the page. */
window.kfbench ??= {};
window.kfbench.words = (() => {
  const number = (x, digits = 0) =>
    x.toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits}).replace("-", "−");
  const bytes = x => number(x, x < 10 ? 2 : x < 1000 ? 1 : 0);
  const percent = x => `${x > 0 ? "+" : ""}${number(100 * x, Math.abs(x) < 0.1 ? 2 : 1)}\u00a0%`;
  const change = (x, of) => Math.abs(x / of - 1) < 5e-5 ? "±0\u00a0%" : percent(x / of - 1);

  /** The two parts of an address: the calculator's settings, and all from `view=` on, which the views own. */
  function addressParts(hash) {
    const text = hash.replace(/^#/, ""), at = text.search(/(^|&)view=/);
    return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at).replace(/^&/, "")];
  }

  function replaceAddress(hash) {
    try { history.replaceState(null, "", hash); } catch { /* some browsers limit changes of the address */ }
  }

  const make = space => (tag, attributes = {}, ...children) => {
    const made = document.createElementNS(`http://www.w3.org/${space}`, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const element = make("1999/xhtml"), svg = make("2000/svg");

  return {number, bytes, change, addressParts, replaceAddress, element, svg};
})();
