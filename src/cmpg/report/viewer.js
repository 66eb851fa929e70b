"use strict";
// The viewer of a policy: one function per kind of game, from a step to panels. `view` is what report/viewer.py lays
// out, `find` returns the elements by name (steps, step, step-name, step-word, play, who, agent, view), and `first` is
// the step that is shown first.
function startViewer(view, find, first = view.first || 0) {
  const escape = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const exactly = (thousandths) => (thousandths / 1000).toFixed(3);
  const chance = (thousandths) => (thousandths % 1000 === 0 ? String(thousandths / 1000) : exactly(thousandths).replace(/0$/, ""));
  const series = (i) => `var(--series-${(i % 8) + 1})`;

  function svg(width, height, label, body) {
    return `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escape(label)}">${body}</svg>`;
  }

  function panel(title, body, words, wide) {
    const text = words ? `<p class="where">${words}</p>` : "";
    return `<figure${wide ? ' class="whole"' : ""}><h3>${escape(title)}</h3>${body}${text}</figure>`;
  }

  // On a large map an arrow fills its cell, and begins behind the middle.
  function arrow(x, y, dx, dy, weight, colour, large) {
    if (!dx && !dy) return `<circle cx="${x}" cy="${y}" r="${(large ? 2 : 1) * (0.5 + 0.7 * weight)}" fill="${colour}" opacity="${0.35 + 0.65 * weight}"/>`;
    const reach = 1.4 + 2 * weight, tipX = x + dx * reach, tipY = y + dy * reach, back = large ? 2.4 : 1.1;
    if (large) [x, y] = [x - dx * reach, y - dy * reach];
    const wing = (side) => `${tipX - back * dx + side * back * dy * 0.75},${tipY - back * dy + side * back * dx * 0.75}`;
    return `<g class="arrow" stroke="${colour}" stroke-width="${(large ? 2 : 1) * (0.35 + 0.45 * weight)}" opacity="${0.35 + 0.65 * weight}">` +
      `<path d="M${x},${y}L${tipX},${tipY}"/><path d="M${wing(1)}L${tipX},${tipY}L${wing(-1)}"/></g>`;
  }

  const moveName = (dx, dy) => (!dx && !dy ? "stays" : dx ? (dx > 0 ? "→" : "←") : (dy > 0) === view.upwards ? "↑" : "↓");

  function gridPanel(title, entries, marks, colour, way = []) {
    const at = (cell) => [10 * cell[0], 10 * (view.upwards ? view.height - 1 - cell[1] : cell[1])];
    const small = view.width > 8, parts = [`<rect class="ground" width="${10 * view.width}" height="${10 * view.height}"/>`];
    for (const cell of view.cells) {
      const [x, y] = at(cell);
      parts.push(`<rect class="cell" x="${x}" y="${y}" width="10" height="10"/>`);
    }
    if (way.length) parts.push(`<polyline points="${way.map((place) => at(view.cells[place]).map((c) => c + 5).join(",")).join(" ")}" fill="none" stroke="${colour}" stroke-width="1.6" stroke-linejoin="round" stroke-linecap="round" opacity="0.5"/>`);
    for (const [place, weight, ...acts] of entries) {
      const [x, y] = at(view.cells[place]), shade = Math.min(weight / 1000, 1);
      parts.push(`<rect x="${x + 0.2}" y="${y + 0.2}" width="9.6" height="9.6" fill="${colour}" opacity="${0.1 + 0.5 * shade}"/>`);
      for (let i = 0; i < acts.length; i += 2) {
        if (acts[i + 1] < 20) continue;
        const [dx, dy] = view.moves[acts[i]];
        parts.push(arrow(x + 5, y + 4.6, dx, view.upwards ? -dy : dy, acts[i + 1] / 1000, "var(--text)", small));
      }
      if (!small) parts.push(`<text x="${x + 9.5}" y="${y + 9.4}" font-size="1.9" text-anchor="end">${chance(weight)}</text>`);
    }
    for (const mark of marks) {
      const [x, y] = at(mark.cell);
      if (!small) parts.push(`<text class="quiet-text" x="${x + 0.6}" y="${y + 9.4}" font-size="1.7">${escape(mark.text)}</text>`);
      else if (mark.text === "goal") parts.push(goalMark(x + 5, y + 5, colour, 1));
      else parts.push(`<circle cx="${x + 5}" cy="${y + 5}" r="3.8" fill="none" stroke="${colour}" stroke-width="1"/>`);
    }
    const likely = [...entries].sort((a, b) => b[1] - a[1]).slice(0, 3);
    const words = likely.map(([place, weight, ...acts]) => {
      const does = [];
      for (let i = 0; i < acts.length; i += 2) {
        if (acts[i + 1] >= 20) does.push(moveName(...view.moves[acts[i]]) + (acts[i + 1] < 1000 ? " " + chance(acts[i + 1]) : ""));
      }
      return `(${view.cells[place]}) ${chance(weight)}${does.length ? ", " + does.join(" ") : ""}`;
    });
    const more = entries.length > 3 ? `; ${entries.length - 3} more` : "";
    const key = small && marks.length ? "<br>○ start, ◇ goal" + (way.length ? ", line: its likeliest way" : "") : "";
    const spoken = `${title}: ${words.join("; ")}`;
    return panel(title, svg(10 * view.width, 10 * view.height, spoken, parts.join("")), words.join("; ") + more + key);
  }

  // As many colours as there are agents, each far from the one before.
  const ownColour = (i) => `hsl(${Math.round(i * 137.508) % 360} 62% var(--fleet))`;

  const goalMark = (x, y, colour, opacity) => `<path class="goal" d="M${x},${y - 4.4}l4.4,4.4l-4.4,4.4l-4.4,-4.4z" fill="none" stroke="${colour}" stroke-width="1.2" opacity="${opacity}"/>`;

  // All agents on one map, each in its own colour: where it probably is or, in a drawn run, where it is, with its trail and its goal.
  function fleetPanel(title, ways, step, chosen, words) {
    const at = (place) => [10 * view.cells[place][0] + 5, 10 * (view.upwards ? view.height - 1 - view.cells[place][1] : view.cells[place][1]) + 5];
    const parts = [`<rect class="ground" width="${10 * view.width}" height="${10 * view.height}"/>`];
    for (const cell of view.cells) {
      const [x, y] = [10 * cell[0], 10 * (view.upwards ? view.height - 1 - cell[1] : cell[1])];
      parts.push(`<rect class="cell" x="${x}" y="${y}" width="10" height="10"/>`);
    }
    const most = view.hot.length ? view.hot[0][1] : 1;
    for (const [place, pairs] of view.hot) {
      const [x, y] = at(place);
      parts.push(`<rect class="hot" x="${x - 4.8}" y="${y - 4.8}" width="9.6" height="9.6" opacity="${0.15 + 0.5 * pairs / most}"/>`);
    }
    ways.forEach((way, i) => {
      const faint = chosen === null || chosen === i ? 1 : 0.45;
      if (view.goals[i] !== null && view.goals[i] !== undefined) {
        const [x, y] = at(view.goals[i]);
        parts.push(goalMark(x, y, ownColour(i), faint));
      }
      const trail = way.slice(Math.max(0, step - 6), step + 1).map((place) => at(place).join(","));
      if (trail.length > 1) parts.push(`<polyline points="${trail.join(" ")}" fill="none" stroke="${ownColour(i)}" stroke-width="1.6" stroke-linejoin="round" stroke-linecap="round" opacity="${0.55 * faint}"/>`);
      const [x, y] = at(way[step]);
      parts.push(`<circle cx="${x}" cy="${y}" r="2.9" fill="${ownColour(i)}" opacity="${faint}"/>`);
      if (chosen === i) parts.push(`<circle cx="${x}" cy="${y}" r="4.6" fill="none" stroke="var(--text)" stroke-width="0.9"/>`);
    });
    return panel(title, svg(10 * view.width, 10 * view.height, title, parts.join("")), words);
  }

  function meetings(ways, step) {
    const here = new Map();
    ways.forEach((way, i) => here.set(way[step], [...(here.get(way[step]) || []), i]));
    const met = [...here].filter(([, who]) => who.length > 1).map(([place, who]) => `${who.map((i) => escape(view.agents[i] || String(i))).join(" and ")} meet on (${view.cells[place].join(", ")})`);
    return met.join("; ") || "no agents meet at this step";
  }

  function showGrid(step, agent) {
    const alone = view.goals.every((goal) => goal === null);
    const own = (i) => gridPanel(view.agents[i], view.frames[i][step], view.marks.filter((m) => m.agent === null || m.agent === i), alone ? series(i) : ownColour(i), alone ? [] : view.likely[i]);
    if (alone && agent === null) return view.agents.map((_, i) => own(i));
    const hot = view.hot.length ? `; red: where agents probably meet, most of all on (${view.cells[view.hot[0][0]].join(", ")}), ${chance(view.hot[0][1])} pairs expected in all` : "";
    const key = "● where each agent probably is, with its last six steps; ◇ its goal" + hot;
    const fleet = [fleetPanel("Where all agents probably are", view.likely, step, agent, key)];
    if (view.sample.length) fleet.push(fleetPanel("One run, drawn at random", view.sample, step, agent, meetings(view.sample, step)));
    if (agent === null) return view.agents.length > MAX_OWN ? fleet : [...fleet, ...view.agents.map((_, i) => own(i))];
    return [...fleet, own(agent), gridPanel("Expected number of agents on each cell", view.together[step], view.marks.filter((m) => m.agent === null), series(0))];
  }

  function networkPanel(title, uses, visits, ends, most) {
    const size = 100, edge = 8, place = ([x, y]) => [edge + x * size, edge + y * size];
    const tall = 2 * edge + size * Math.max(...view.nodes.map((node) => node[1]));
    const wide = 2 * edge + size * Math.max(...view.nodes.map((node) => node[0]));
    const used = new Map(uses), parts = [], labels = [], careful = new Set(view.protected);
    const order = view.links.map((_, e) => e).sort((e, f) => (used.get(e) || 0) - (used.get(f) || 0));
    for (const e of order) {
      const [tail, head] = view.links[e], [x1, y1] = place(view.nodes[tail]), [x2, y2] = place(view.nodes[head]);
      const length = Math.hypot(x2 - x1, y2 - y1) || 1, ux = (x2 - x1) / length, uy = (y2 - y1) / length;
      const load = (used.get(e) || 0) / 1000, off = 1.15, cut = 3.2;
      // Both directions of a road lie beside each other, as traffic on the right does.
      const ax = x1 - uy * off + ux * cut, ay = y1 + ux * off + uy * cut, bx = x2 - uy * off - ux * cut, by = y2 + ux * off - uy * cut;
      const over = careful.has(e) && !ends && load > view.limit + 5e-4;
      const colour = over ? "var(--series-6)" : careful.has(e) ? "var(--series-2)" : load ? "var(--series-1)" : "var(--rule)";
      const thick = load ? 0.35 + (1.7 * load) / most : 0.3, head2 = load ? 2.6 : 0, wing = thick / 2 + 0.75;
      parts.push(`<path d="M${ax},${ay}L${bx - head2 * 0.8 * ux},${by - head2 * 0.8 * uy}" stroke="${colour}" stroke-width="${thick}"${careful.has(e) && !load ? ' stroke-dasharray="1.2 1"' : ""}/>`);
      if (load) parts.push(`<path d="M${bx - head2 * ux - wing * uy},${by - head2 * uy + wing * ux}L${bx},${by}L${bx - head2 * ux + wing * uy},${by - head2 * uy - wing * ux}z" fill="${colour}"/>`);
      if (load && (careful.has(e) || ends)) {
        // Beside the arrow: a label that stands to its right begins there, and one to its left ends there.
        const anchor = uy < -0.3 ? "start" : uy > 0.3 ? "end" : "middle", away = thick / 2 + 2;
        labels.push(`<text class="halo" x="${(ax + bx) / 2 - uy * away}" y="${(ay + by) / 2 + ux * away + 1}" font-size="3.1" text-anchor="${anchor}">${load.toFixed(2)}</text>`);
      }
    }
    const here = new Map(visits);
    view.nodes.forEach((node, i) => {
      const [x, y] = place(node), p = (here.get(i) || 0) / 1000;
      parts.push(`<circle cx="${x}" cy="${y}" r="2.9" fill="var(--panel)" stroke="var(--limit)" stroke-width="0.4"/>`);
      if (p) parts.push(`<circle cx="${x}" cy="${y}" r="2.9" fill="var(--series-3)" opacity="${0.25 + 0.6 * p}"/>`);
      if (ends && i === ends[1]) parts.push(`<circle cx="${x}" cy="${y}" r="3.9" fill="none" stroke="var(--series-3)" stroke-width="0.8"/>`);
      if (ends && i === ends[0]) parts.push(`<circle cx="${x}" cy="${y}" r="3.9" fill="none" stroke="var(--series-3)" stroke-width="0.6" stroke-dasharray="1.2 1"/>`);
      parts.push(`<text x="${x}" y="${y + 1.1}" font-size="3.1" text-anchor="middle">${i + 1}</text>`);
    });
    const name = (e) => `${view.links[e][0] + 1}→${view.links[e][1] + 1}`;
    const top = order[order.length - 1], busiest = used.size ? `busiest: ${name(top)}, ${chance(used.get(top))} ${escape(view.words.agent)}s` : "no link is in use";
    const words = ends
      ? (uses.length ? uses.map(([e, p]) => `${name(e)} ${chance(p)}`).join("; ") : "uses no link at this step") + "<br>dashed ring: origin; ring: destination"
      : [busiest, careful.size ? `protected: ${view.protected.map((e) => `${name(e)} ${chance(used.get(e) || 0)}`).join("; ")} (each can carry ${view.limit})` : "no link is protected"].join("<br>");
    return panel(title, svg(wide, tall, title, parts.join("") + labels.join("")), words);
  }

  function showNetwork(step, agent) {
    const most = Math.max(1, ...view.loads.flat().map(([, load]) => load / 1000));
    const own = (i) => networkPanel(view.agents[i], view.uses[i][step], view.visits[i][step], [view.origins[i], view.destinations[i]], 1);
    return [networkPanel("Expected load of every link", view.loads[step], [], null, most), own(agent || 0)];
  }

  function bars(label, heights, { limits, chosen, names, above }) {
    const top = Math.max(...limits.map((limit) => limit * 1.15), ...heights) || 1, width = 100, height = 46, left = 8, base = 39;
    const step = (width - left) / heights.length, y = (value) => base - (value / top) * 35;
    const every = Math.ceil(names.length / 9), parts = [];
    const rough = top / 4, unit = 10 ** Math.floor(Math.log10(rough)), gap = unit * [1, 2, 5, 10].find((m) => m * unit >= rough);
    for (let tick = 0; tick <= top * 1.001; tick = Number((tick + gap).toPrecision(9))) {
      parts.push(`<path d="M${left},${y(tick)}H${width}" stroke="var(--rule)" stroke-width="0.2"/>`);
      parts.push(`<text class="quiet-text" x="${left - 1}" y="${y(tick) + 0.9}" font-size="3" text-anchor="end">${tick}</text>`);
    }
    if (chosen !== null) parts.push(`<rect x="${left + chosen * step}" y="3" width="${step}" height="${base - 3}" fill="var(--soft)"/>`);
    heights.forEach((value, i) => {
      const colour = above(i) ? "var(--series-6)" : "var(--series-1)", faint = chosen === null || chosen === i ? 1 : 0.45;
      parts.push(`<rect x="${left + i * step + step * 0.12}" y="${y(value)}" width="${step * 0.76}" height="${base - y(value)}" fill="${colour}" opacity="${faint}"/>`);
      const x = left + (i + 0.5) * step, half = 0.8 * String(names[i]).length; // a letter is about 1.6 wide: the last name must not be cut
      if (i % every === 0) parts.push(`<text class="quiet-text" x="${Math.min(x, width - half)}" y="${base + 3.6}" font-size="3" text-anchor="middle">${escape(names[i])}</text>`);
    });
    if (limits.length) parts.push(`<path class="limit" fill="none" d="M${left},${limits.map((limit, i) => `${y(limit)}H${left + (i + 1) * step}`).join("V")}"/>`);
    parts.push(`<path class="axis" d="M${left},${base}H${width}"/>`);
    return svg(width, height, label, parts.join(""));
  }

  function heatMap(step) {
    const now = (h) => (h === step ? ' class="now"' : "");
    const apart = Math.ceil(view.steps.length / 4), groups = Math.ceil(view.steps.length / apart);
    const span = (g) => Math.min(apart, view.steps.length - g * apart); // a last group of few columns has no place for a name
    const head = [...Array(groups).keys()].map((g) => `<th scope="colgroup" colspan="${span(g)}">${2 * span(g) < apart ? "" : escape(view.steps[g * apart])}</th>`).join("");
    const rows = view.agents.map((name, i) => {
      const cells = view.uses[i].map((uses, h) => {
        const p = uses.reduce((sum, [, part]) => sum + part, 0);
        return `<td${now(h)} style="--p:${p / 1000}" title="${escape(view.steps[h])}: ${chance(p)}"></td>`;
      });
      return `<tr><th scope="row" title="${escape(name)}">${escape(name)}</th>${cells.join("")}</tr>`;
    });
    const letters = Math.max(...view.agents.map((name) => name.length)); // a phone shows names whole
    return `<table class="hours" style="--letters:${letters}"><thead><tr><th></th>${head}</tr></thead><tbody>${rows.join("")}</tbody></table>`;
  }

  function amount(users) {
    const inUnits = view.words.unit ? ` (${Number((users * view.each).toPrecision(4))} ${escape(view.words.unit)})` : "";
    return `${Number(users.toFixed(2))} ${escape(view.words.agent)}s${inUnits}`;
  }

  function showLoads(step) {
    const panels = [];
    view.resources.forEach((name, e) => {
      const limits = view.capacities[e], limit = limits[step], loads = view.loads[e].map((load) => load / 1000), chances = view.likely[e][step].map((p) => p / 1000);
      const over = chances.reduce((sum, p, m) => sum + (m > limit ? p : 0), 0);
      const beyond = chances.reduce((sum, p, m) => sum + p * Math.max(m - limit, 0), 0);
      const hours = { limits, chosen: step, names: view.steps, above: (h) => loads[h] > limits[h] };
      panels.push(panel(`${name}: expected load by ${view.words.step}`, bars(`${name}: expected load by ${view.words.step}`, loads, hours), `dashed: capacity, ${amount(limit)}; at ${view.steps[step]} the expected load is ${amount(loads[step])}`));
      const counts = { limits: [], chosen: null, names: chances.map((_, m) => String(m)), above: (m) => m > limit };
      panels.push(panel(`${name}: load at ${view.steps[step]}`, bars(`Probability of each load at ${view.steps[step]}`, chances, counts), `above capacity with probability ${over.toFixed(3)}; expected excess ${beyond.toFixed(3)}`));
    });
    return [...panels, panel(`Which ${view.words.agent} uses what, by ${view.words.step}`, heatMap(step), "the stronger the colour, the likelier", true)];
  }

  function showTables(step) {
    return view.panels[step].map(([title, weight, cells, rows = view.rows, columns = view.columns]) => {
      const head = columns.map((name) => `<th scope="col">${escape(name)}</th>`).join("");
      const body = cells.map((row, i) => `<tr><th scope="row">${escape(rows[i])}</th>` +
        row.map((p) => `<td class="heat${p ? "" : " none"}" style="--p:${p / 1000}">${p % 1000 ? exactly(p) : p / 1000}</td>`).join("") + "</tr>").join("");
      const table = `<div class="scroll"><table><thead><tr><th></th>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
      const reached = weight === null ? "" : weight ? `reached with probability ${chance(weight)}` : "never reached on the way";
      return panel(title, weight === 0 ? `<div class="faint">${table}</div>` : table, view.discounted && weight ? `expected discounted visits ${chance(weight)}` : reached);
    });
  }

  const MAX_OWN = 4; // agents that have panels of their own without being asked for

  const slider = find("step"), select = find("agent"), play = find("play"), target = find("view");
  const show = { grid: showGrid, network: showNetwork, loads: showLoads, tables: showTables }[view.kind];
  const choose = (view.kind === "grid" && view.agents.length > MAX_OWN) || view.kind === "network";
  if (choose) {
    const all = view.kind === "grid" ? '<option value="">all</option>' : "";
    select.innerHTML = all + view.agents.map((name, i) => `<option value="${i}">${escape(name)}</option>`).join("");
    find("who").hidden = false;
  }
  target.classList.toggle("wide", view.kind === "network" || view.kind === "loads" || (view.kind === "grid" && view.width > 8));
  const update = () => {
    const step = Number(slider.value);
    find("step-name").textContent = view.steps.length < 2 ? "" : view.kind === "loads" ? view.steps[step] : `${view.steps[step]} of ${view.steps.length}`;
    slider.setAttribute("aria-valuetext", find("step-name").textContent);
    target.innerHTML = show(step, choose && select.value !== "" ? Number(select.value) : null).join("");
    target.dataset.step = String(step);
  };
  const word = (view.words && view.words.step) || "step";
  find("step-word").textContent = word[0].toUpperCase() + word.slice(1);
  find("step-name").hidden = view.steps.length < 2;
  slider.max = String(view.steps.length - 1);
  find("steps").hidden = play.hidden = view.steps.length < 2;
  slider.value = String(first);
  let timer = null;
  const stop = () => {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
    play.setAttribute("aria-pressed", "false");
  };
  play.addEventListener("click", () => {
    if (timer) return stop();
    if (Number(slider.value) === view.steps.length - 1) slider.value = 0;
    play.textContent = "Pause";
    play.setAttribute("aria-pressed", "true");
    timer = setInterval(() => {
      slider.value = Number(slider.value) + 1;
      update();
      if (Number(slider.value) === view.steps.length - 1) stop();
    }, view.steps.length > 20 ? 300 : 800);
    update();
  });
  slider.addEventListener("input", () => { if (timer) stop(); update(); });
  select.addEventListener("change", update);
  update();
}
