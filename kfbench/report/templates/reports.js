"use strict";
/* Show the comparison of the two chosen reports. The choice is in the page's address: #OLDER..NEWER. */
{
  const form = document.getElementById("choice"), pairs = [...document.querySelectorAll("article[data-older]")];
  const {older, newer} = form.elements, words = form.querySelector("output");
  for (const [select, key] of [[older, "older"], [newer, "newer"]]) {
    const names = [...new Set(pairs.map(pair => pair.dataset[key]))];
    select.append(...names.map(name => new Option(name, name)));
  }
  const show = () => {
    for (const pair of pairs) pair.hidden = pair.id !== `${older.value}..${newer.value}`;
    const isShown = pairs.some(pair => !pair.hidden);
    words.textContent = isShown ? `Shown: ${older.value} to ${newer.value}.`
      : "Not compared: two reports need one profile, the older one first, and a place among the 5 newest.";
  };
  const choose = () => {
    const asked = pairs.find(pair => `#${pair.id}` === location.hash)
      ?? pairs.find(pair => "alike" in pair.dataset) ?? pairs[0];
    [older.value, newer.value] = [asked.dataset.older, asked.dataset.newer];
    show();
  };
  form.addEventListener("change", () => {
    history.replaceState(null, "", `#${older.value}..${newer.value}`);
    show();
  });
  addEventListener("hashchange", choose);
  form.hidden = false;
  choose();
}
