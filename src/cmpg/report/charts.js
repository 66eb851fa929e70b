"use strict";
// Charts as SVG: lines, dots, bars and heat maps. A figure is data and layout as report/charts.py writes them. Colours stay
// variables of the page, so that a chart follows light and dark.
const drawChart = (() => {
  const SUPERSCRIPTS = { "-": "⁻", "−": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  const raised = (text) => [...String(text)].map((c) => SUPERSCRIPTS[c] || c).join("");
  // Names come escaped, and powers as <sup>; here both are plain text.
  const words = (text) =>
    String(text ?? "").replace(/<sup>(.*?)<\/sup>/g, (_, power) => raised(power)).replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
  const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

  const pen = document.createElement("canvas").getContext("2d");
  const widthOf = (text, size) => {
    pen.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
    return pen.measureText(text).width;
  };

  function cut(text, size, width) {
    if (widthOf(text, size) <= width) return text;
    let end = text.length;
    while (end > 1 && widthOf(text.slice(0, end) + "…", size) > width) end -= 1;
    return text.slice(0, end) + "…";
  }

  function written(value, digits = 6) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size < 1e-4 || size >= 1e7) {
      const [mantissa, power] = value.toExponential(Math.min(digits, 4) - 1).split("e");
      return `${mantissa.replace(/\.?0+$/, "").replace("-", "−")}·10${raised(Number(power))}`;
    }
    const plain = String(Number(value.toPrecision(digits)));
    return Number(plain).toLocaleString("en", { maximumFractionDigits: 10 }).replace("-", "−");
  }

  function element(parent, name, attributes = {}, text = null) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) key === "style" ? made.style.cssText = value : made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    parent.append(made);
    return made;
  }

  // --- Axes: a scale from values to [0, 1], and ticks --------------------------------------------------------------

  function nice(low, high, most) {
    const rough = (high - low) / Math.max(most, 1), power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((unit) => unit * power).find((unit) => unit >= rough * 0.999);
  }

  function numberAxis(given, values, { fromZero, most }) {
    const logarithmic = given.type === "log", real = values.filter((v) => isNumber(v) && (!logarithmic || v > 0));
    const place = logarithmic ? Math.log10 : (v) => v;
    let [low, high] = given.range || [Math.min(...real.map(place)), Math.max(...real.map(place))];
    if (!isNumber(low) || !isNumber(high)) [low, high] = [0, 1];
    if (!given.range) {
      if (fromZero || given.rangemode === "tozero") [low, high] = [Math.min(low, 0), Math.max(high, 0)];
      const room = high > low ? 0.05 * (high - low) : Math.max(Math.abs(high) * 0.1, 1e-12);
      const rests = (end) => (fromZero || given.rangemode === "tozero") && end === 0;
      [low, high] = [rests(low) ? low : low - room, rests(high) ? high : high + room];
    }
    const scale = (v) => (place(v) - low) / (high - low);
    if (given.tickvals) {
      return { scale, ticks: given.tickvals.map((v, i) => ({ at: scale(v), text: words(given.ticktext ? given.ticktext[i] : written(v)) })) };
    }
    let step = given.dtick && (high - low) / given.dtick <= 2 * most ? given.dtick : nice(low, high, Math.min(most, given.nticks || most));
    const first = given.dtick === step ? given.tick0 || 0 : 0, ticks = [];
    for (let k = Math.ceil((low - first) / step - 1e-9); first + k * step <= high + 1e-9 * step; k += 1) {
      const value = first + k * step;
      ticks.push({ at: scale(value), text: written(Math.abs(value) < 1e-9 * step ? 0 : value) });
    }
    return { scale, ticks };
  }

  function categoryAxis(values) {
    const names = [...new Set(values.map(String))];
    const scale = (v) => (names.indexOf(String(v)) + 0.5) / names.length;
    return { scale, names, ticks: names.map((name) => ({ at: scale(name), text: words(name) })) };
  }

  function axisOf(given, data, letter, most) {
    const values = data.flatMap((each) => each[letter] || []);
    if (given.type === "category" || data.some((each) => each.type === "heatmap") || values.some((v) => typeof v === "string")) {
      return categoryAxis(values);
    }
    const bars = data.filter((each) => each.type === "bar");
    const along = bars.some((each) => (each.orientation === "h" ? "y" : "x") === letter);
    if (along) return numberAxis({ ...given, range: [Math.min(...values) - 0.6, Math.max(...values) + 0.6] }, values, { most });
    return numberAxis(given, values, { fromZero: bars.length > 0, most });
  }

  // --- Drawing ------------------------------------------------------------------------------------------------------

  function draw(div, figure) {
    const { data, layout } = figure, size = 12;
    const width = Math.max(div.clientWidth, 160), height = Math.max(div.clientHeight, 160);
    div.replaceChildren();
    const svg = element(div, "svg", { class: "main-svg", width, height, viewBox: `0 0 ${width} ${height}` });
    svg.style.display = "block";
    const legend = layout.showlegend ? data.filter((each) => each.name && each.showlegend !== false) : [];
    const top = legendRows(svg, legend, width, size) + 12;
    const y = axisOf(layout.yaxis, data, "y", Math.max(3, Math.floor((height - top) / 40)));
    const widest = Math.max(...y.ticks.map((tick) => widthOf(tick.text, size)), 0);
    const titled = layout.yaxis.title ? 20 : 0;
    const left = Math.min(widest, 0.45 * width) + 12 + titled, right = 14;
    const bottom = layout.xaxis.title ? 42 : 24;
    const x = axisOf(layout.xaxis, data, "x", Math.max(3, Math.floor((width - left) / 60)));
    const box = { left, top, width: width - left - right, height: height - top - bottom };
    const across = (v) => box.left + box.width * x.scale(v), up = (v) => box.top + box.height * (1 - y.scale(v));
    axes(svg, box, x, y, layout, size);
    const clip = `clip-${Math.random().toString(36).slice(2)}`;
    element(element(svg, "clipPath", { id: clip }), "rect", { x: box.left - 6, y: box.top - 6, width: box.width + 12, height: box.height + 12 });
    const inside = element(svg, "g", { "clip-path": `url(#${clip})` });
    for (const each of data) ({ bar: bars, heatmap: heat })[each.type]?.(inside, each, { x, y, across, up, box, layout, size }) ?? lines(inside, each, { x, y, across, up, size });
  }

  function legendRows(svg, legend, width, size) {
    let place = 4, row = 0;
    for (const each of legend) {
      const name = cut(words(each.name), size, width - 40), needed = 30 + widthOf(name, size);
      if (place > 4 && place + needed > width) { place = 4; row += 1; }
      const entry = element(svg, "g", { class: "legend-entry" }), middle = 10 + 17 * row;
      const colour = (each.line && each.line.color) || (each.marker && each.marker.color) || "var(--text)";
      if ((each.mode || "lines").includes("lines")) element(entry, "line", { x1: place, x2: place + 18, y1: middle, y2: middle, style: stroke(each, colour) });
      else element(entry, "circle", { cx: place + 9, cy: middle, r: 4, style: `fill: ${colour}` });
      element(entry, "text", { x: place + 23, y: middle + 4, "font-size": size }, name);
      place += needed + 10;
    }
    return legend.length ? 17 * (row + 1) : 0;
  }

  const DASHES = { dash: "7 5", dot: "2 4" };
  const stroke = (each, colour) =>
    `fill: none; stroke: ${colour}; stroke-width: ${(each.line && each.line.width) || 2}; ${each.line && DASHES[each.line.dash] ? `stroke-dasharray: ${DASHES[each.line.dash]}` : ""}`;

  function axes(svg, box, x, y, layout, size) {
    const floor = box.top + box.height, rule = "stroke: var(--rule); stroke-width: 1";
    // Labels that would collide are left out, every second, every third, and so on.
    const room = (box.width / Math.max(x.ticks.length, 1));
    const most = Math.max(...x.ticks.map((tick) => widthOf(tick.text, size)), 1) + 10;
    const named = x.names && x.names.length <= 4 ? 1 : Math.ceil(most / room), limit = layout.xaxis.nticks ? Math.ceil(x.ticks.length / layout.xaxis.nticks) : 1;
    const every = Math.max(1, named, x.names ? limit : 1);
    x.ticks.forEach((tick, i) => {
      if (tick.at < -1e-6 || tick.at > 1 + 1e-6 || i % every) return;
      const at = box.left + box.width * tick.at;
      if (!x.names) element(svg, "line", { x1: at, x2: at, y1: box.top, y2: floor, style: rule });
      const text = x.names ? cut(tick.text, size, room * every - 4) : tick.text;
      const half = widthOf(text, size) / 2, end = box.left + box.width + 12;
      element(element(svg, "g", { class: "xtick" }), "text", { x: Math.min(at, end - half), y: floor + 16, "text-anchor": "middle", "font-size": size }, text);
    });
    const rows = y.names ? Math.ceil(16 * y.names.length / box.height) : 1;
    y.ticks.forEach((tick, i) => {
      if (tick.at < -1e-6 || tick.at > 1 + 1e-6 || i % rows) return;
      const at = floor - box.height * tick.at;
      if (!y.names) element(svg, "line", { x1: box.left, x2: box.left + box.width, y1: at, y2: at, style: rule });
      const text = element(element(svg, "g", { class: "ytick" }), "text", { x: box.left - 6, y: at + 4, "text-anchor": "end", "font-size": size }, cut(tick.text, size, box.left - 8));
      if (text.textContent !== tick.text) element(text, "title", {}, tick.text);
    });
    const title = (text, attributes) => text && element(svg, "text", { "text-anchor": "middle", "font-size": 13, ...attributes }, cut(words(text), 13, attributes.most || box.width));
    title(layout.xaxis.title, { x: box.left + box.width / 2, y: floor + 36 });
    title(layout.yaxis.title, { transform: `translate(13 ${box.top + box.height / 2}) rotate(-90)`, most: box.height });
  }

  const isShown = (each, i, y, x) => each.y[i] !== null && each.y[i] !== undefined && each.x[i] !== null && Number.isFinite(y(each.y[i])) && Number.isFinite(x(each.x[i]));

  function lines(parent, each, { across, up, size }) {
    const colour = (each.line && each.line.color) || (each.marker && each.marker.color) || "var(--text)";
    const mode = each.mode || "lines", hv = each.line && each.line.shape === "hv";
    let path = "", open = false, last = 0;
    const points = [];
    each.x.forEach((x, i) => {
      if (!isShown(each, i, up, across)) { open = open && each.connectgaps !== false && !("connectgaps" in each && !each.connectgaps); return; }
      const at = across(x), high = up(each.y[i]);
      path += open ? (hv ? `L${at} ${last}L${at} ${high}` : `L${at} ${high}`) : `M${at} ${high}`;
      [open, last] = [true, high];
      points.push({ at, high, i });
    });
    if (mode.includes("lines")) element(parent, "path", { d: path, style: stroke(each, colour), "stroke-linejoin": "round" });
    const marker = each.marker || {}, dots = mode.includes("markers");
    if (!dots && points.length > 400) return;
    for (const { at, high, i } of points) {
      const dot = element(parent, "circle", { cx: at, cy: high, r: dots ? (marker.size || 6) / 2 : 6 });
      const filled = `fill: ${marker.color || colour}; opacity: ${marker.opacity || 1}`;
      const ring = `fill: none; stroke: ${marker.color || colour}; stroke-width: 2`;
      dot.style.cssText = !dots ? "fill: transparent" : marker.symbol === "circle-open" ? ring : filled;
      element(dot, "title", {}, `${each.name ? words(each.name) + ": " : ""}${typeof each.x[i] === "number" ? written(each.x[i]) : words(each.x[i])}, ${written(each.y[i])}`);
      if (mode.includes("text") && each.text) element(parent, "text", { x: at, y: high - 9, "text-anchor": "middle", "font-size": size }, words(each.text[i]));
    }
    return true;
  }

  function bars(parent, each, { x, y, across, up, box, layout }) {
    const flat = each.orientation === "h", names = flat ? each.y : each.x, sizes = flat ? each.x : each.y;
    const count = (flat ? y : x).names ? (flat ? y : x).names.length : names.length + 0.2;
    const thick = Math.max(1, ((flat ? box.height : box.width) / count) * (1 - (layout.bargap || 0.2)));
    names.forEach((name, i) => {
      if (!isNumber(sizes[i])) return;
      const ends = flat ? [across(0), across(sizes[i])] : [up(0), up(sizes[i])], middle = flat ? up(name) : across(name);
      const low = Math.min(...ends), long = Math.abs(ends[1] - ends[0]);
      const at = flat ? { x: low, y: middle - thick / 2, width: long, height: thick } : { x: middle - thick / 2, y: low, width: thick, height: long };
      const bar = element(parent, "rect", { ...at, rx: 1.5, style: `fill: ${each.marker.color}` });
      element(bar, "title", {}, `${words(name)}: ${written(sizes[i])}`);
    });
    return true;
  }

  function heat(parent, each, { x, y, across, up, box, size }) {
    const wide = box.width / x.names.length, tall = box.height / y.names.length, [low, high] = [each.zmin, each.zmax];
    const weak = each.colorscale[0][1], strong = each.colorscale[1][1];
    each.z.forEach((row, r) => row.forEach((value, c) => {
      if (!isNumber(value)) return;
      const share = high > low ? (value - low) / (high - low) : 1, at = across(each.x[c]), middle = up(each.y[r]);
      const cell = element(parent, "rect", { class: "heat", x: at - wide / 2 + 1, y: middle - tall / 2 + 1, width: Math.max(wide - 2, 1), height: Math.max(tall - 2, 1) });
      cell.style.fill = `color-mix(in srgb, ${strong} ${Math.round(100 * share)}%, ${weak})`;
      element(cell, "title", {}, `${words(each.x[c])}, ${words(each.y[r])}: ${written(value, 5)}`);
      const text = written(value, 3);
      if (each.written && widthOf(text, size) <= wide - 6 && tall >= size + 4) {
        element(parent, "text", { x: at, y: middle + 4, "text-anchor": "middle", "font-size": size, style: share > 0.55 ? "fill: var(--panel)" : "" }, text);
      }
    }));
    return true;
  }

  return draw;
})();
