"use strict";
/** A picture with one line per format or setting, and a label at the end of each line. */
window.kfbench.line = (() => {
  const {svg} = window.kfbench.words;
  const HEIGHT = 300, TOP = 30, BOTTOM = HEIGHT - 44; // pixels
  const LETTER = 9, LINE = 17; // the room for a letter and for a line of a label
  const TICK_PX = 46; // the least distance of two labels of the x axis

  /** Ticks at 1 and 3 times each power of ten, or at up to six round numbers. */
  function ticksOf(low, high, isLog) {
    const step = 10 ** Math.floor(Math.log10((high - low) / 2)), wide = step * ((high - low) / step > 6 ? 5 : 1);
    const count = isLog ? Math.ceil(Math.log10(high / low)) : Math.floor(high / wide) - Math.ceil(low / wide) + 1;
    const steps = [...Array(count).keys()];
    const ticks = isLog ? steps.flatMap(power => [1, 3].map(times => times * low * 10 ** power))
      : steps.map(at => (at + Math.ceil(low / wide)) * wide);
    return ticks.filter(tick => tick <= high).map(tick => Number(tick.toPrecision(4)));
  }

  /** Positions on the axes. left and right leave room for the longest tick and the longest label. */
  function scales(lines, [from, to], width, {isLogX, isLogY}) {
    const values = lines.flatMap(({points}) => points.map(([, value]) => value));
    const most = Math.max(...values), least = Math.min(...values), room = 0.15 * (most - Math.min(least, 0)) || 1;
    const low = isLogY ? 10 ** Math.floor(Math.log10(least)) : least < 0 ? least - room : 0;
    const high = isLogY ? most * 1.15 : Math.max(most, 0) + (most > 0 ? room : 0), ticks = ticksOf(low, high, isLogY);
    const right = width - Math.min(170, 20 + LETTER * Math.max(...lines.map(({name}) => name.length)));
    const left = 14 + LETTER * Math.max(...ticks.map(tick => String(tick).length));
    const along = (value, start, end, isLog) =>
      isLog ? Math.log(value / start) / Math.log(end / start) : (value - start) / (end - start || 1);
    return {
      left, right, ticks,
      x: value => left + (right - left) * along(value, from, to, isLogX),
      y: value => BOTTOM - (BOTTOM - TOP) * along(value, low, high, isLogY),
    };
  }

  function axes({left, right, ticks, x, y}, stops, label) {
    const drawn = ticks.flatMap(tick => [
      svg("line", {x1: left, x2: right, y1: y(tick), y2: y(tick), class: "grid"}),
      svg("text", {x: left - 8, y: y(tick) + 5, "text-anchor": "end"}, String(tick).replace("-", "−")),
    ]);
    let free = -Infinity;
    for (const [value, text] of stops.filter(([value]) => x(value) <= right + 1)) {
      if (x(value) < free) continue;
      free = x(value) + Math.max(TICK_PX, LETTER * text.length);
      drawn.push(svg("text", {x: x(value), y: BOTTOM + 20, "text-anchor": "middle"}, text));
    }
    return [...drawn, svg("text", {x: left, y: HEIGHT - 4}, label)];
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

  /**
   * lines: [{name, colour, points: [[x, y]]}]. from, to: the ends of the x axis. stops: [[x, text]] of its labels.
   * what: the picture in words.
   */
  function draw(lines, width, {what, from, to, stops, label, ...logs}) {
    const scale = scales(lines, [from, to], width, logs), {right, x, y} = scale, places = labelPlaces(lines, y);
    const picture = svg("svg", {viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": what},
      ...axes(scale, stops, label));
    for (const {name, colour, points} of lines.toReversed()) { // the first line lies on top
      const path = points.map(([n, value]) => `${x(n).toFixed(1)} ${y(value).toFixed(1)}`).join("L");
      picture.append(svg("path", {d: `M${path}`, class: "line", style: `stroke:${colour}`}),
        ...points.map(([n, value]) => svg("circle", {cx: x(n), cy: y(value), r: 3, style: `fill:${colour}`})),
        svg("text", {x: right + 10, y: places.get(name), class: "label",
          style: `fill:color-mix(in srgb, ${colour} 70%, var(--ink))`}, name));
    }
    return picture;
  }

  return {draw};
})();
