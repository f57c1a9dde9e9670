"use strict";
/** The picture of bytes per record over records per batch: one line per format, and the reader's batch size. */
window.kfbench.line = (() => {
  const {number, bytes, svg} = window.kfbench.words;
  const HEIGHT = 300, TOP = 30, BOTTOM = HEIGHT - 44; // pixels
  const LETTER = 9, LINE = 17; // the room for a letter and for a line of a label
  const NARROW = 260; // a plot that is narrower has a label at every second power of ten

  /** Positions on logarithmic axes. low: the power of ten below the least value. left: room for the longest tick. */
  function scales(lines, last, width) {
    const values = lines.flatMap(({points}) => points.map(([, size]) => size));
    const low = 10 ** Math.floor(Math.log10(Math.min(...values))), high = Math.max(...values) * 1.15;
    const right = width - Math.min(170, 20 + LETTER * Math.max(...lines.map(({name}) => name.length)));
    const ticks = [];
    for (let power = low; power <= high; power *= 10) {
      ticks.push(...[power, 3 * power].filter(each => each <= high).map(each => Number(each.toPrecision(1))));
    }
    const left = 14 + LETTER * Math.max(...ticks.map(tick => String(tick).length));
    return {
      left, right, ticks,
      x: records => left + (right - left) * Math.log(records) / Math.log(last),
      y: size => BOTTOM - (BOTTOM - TOP) * Math.log(size / low) / Math.log(high / low),
    };
  }

  function axes({left, right, ticks, x, y}, last) {
    const drawn = ticks.flatMap(tick => [
      svg("line", {x1: left, x2: right, y1: y(tick), y2: y(tick), class: "grid"}),
      svg("text", {x: left - 8, y: y(tick) + 5, "text-anchor": "end"}, String(tick)),
    ]);
    for (let records = 1; records <= last; records *= right - left < NARROW ? 100 : 10) {
      drawn.push(svg("text", {x: x(records), y: BOTTOM + 20, "text-anchor": "middle"}, number(records)));
    }
    return [...drawn, svg("text", {x: left, y: HEIGHT - 4}, "records per batch")];
  }

  /** The y of each label at the end of its line, moved apart so that none covers another: Map of name to y. */
  function labelPlaces(lines, y) {
    const labels = lines.map(({name, points}) => ({name, y: y(points.at(-1)[1]) + 5})).sort((a, b) => a.y - b.y);
    for (let i = 1; i < labels.length; i++) labels[i].y = Math.max(labels[i].y, labels[i - 1].y + LINE);
    let most = BOTTOM + 5;
    for (const label of labels.toReversed()) {
      label.y = Math.min(label.y, most);
      most = label.y - LINE;
    }
    return new Map(labels.map(label => [label.name, label.y]));
  }

  /** lines: [{name, colour, points: [[records, bytes]], here: bytes at the reader's records}]. */
  function draw(lines, records, last, width) {
    const scale = scales(lines, last, width), {left, right, x, y} = scale, places = labelPlaces(lines, y), at = x(records);
    const picture = svg("svg", {viewBox: `0 0 ${width} ${HEIGHT}`, role: "img"}, ...axes(scale, last),
      svg("line", {x1: at, x2: at, y1: TOP, y2: BOTTOM, class: "you"}),
      svg("text", {x: Math.max(at, left + 40), y: TOP - 10, "text-anchor": "middle", class: "here"},
        `you: ${number(records)}`));
    for (const {name, colour, points, here} of lines.toReversed()) { // the first line lies on top
      const path = points.map(([n, size]) => `${x(n).toFixed(1)} ${y(size).toFixed(1)}`).join("L");
      picture.append(svg("path", {d: `M${path}`, class: "line", style: `stroke:${colour}`}));
      if (here > 0) picture.append(svg("circle", {cx: at, cy: y(here), r: 5, style: `fill:${colour}`}));
      picture.append(svg("text", {x: right + 10, y: places.get(name), class: "label",
        style: `fill:color-mix(in srgb, ${colour} 70%, var(--ink))`}, name));
    }
    const found = lines.map(({name, here}) => `${name} ${here ? bytes(here) : "no size"}`).join(", ");
    picture.setAttribute("aria-label", "Bytes per record besides keys and values, over records per batch. "
      + `At ${number(records)} records per batch: ${found}.`);
    return picture;
  }

  return {draw};
})();
