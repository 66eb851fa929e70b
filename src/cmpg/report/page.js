"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const read = (id) => (find(id) ? JSON.parse(find(id).textContent) : null);

  // Charts: drawn when they are first seen.
  const figures = read("figures");
  const drawn = new Map();

  function draw(div) {
    drawChart(div, figures[div.dataset.chart]);
    drawn.set(div, div.clientWidth);
  }

  function drawVisible() {
    const visible = [...document.querySelectorAll(".chart")].filter((div) => div.offsetParent !== null);
    // A chart that was hidden while the window changed has its old size.
    visible.filter((div) => drawn.get(div) !== div.clientWidth).forEach(draw);
  }

  addEventListener("resize", drawVisible);

  // Tabs: without this script all parts stand below each other.
  const tabs = [...document.querySelectorAll("[role=tab]")];

  function open(tab, { focus = false } = {}) {
    for (const each of tabs) {
      const chosen = each === tab;
      each.setAttribute("aria-selected", String(chosen));
      each.tabIndex = chosen ? 0 : -1;
      find(each.getAttribute("aria-controls")).hidden = !chosen;
    }
    if (focus) tab.focus();
    // Let the tab change before a long drawing begins.
    setTimeout(drawVisible, 0);
  }

  tabs.forEach((tab, place) => {
    const panel = find(tab.getAttribute("aria-controls"));
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    panel.removeAttribute("aria-label");
    tab.addEventListener("click", () => {
      open(tab);
      history.replaceState(null, "", "#" + panel.id);
    });
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      open(tabs[(to + tabs.length) % tabs.length], { focus: true });
    });
  });

  // Tables: a click on a head sorts, and long ones can be searched.
  const number = (cell) => {
    const data = cell.querySelector("data");
    return data ? Number(data.value) : NaN;
  };

  function sortBy(table, place, button) {
    const head = button.closest("th"), down = head.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("thead th").forEach((each) => each.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows];
    const order = (a, b) => {
      const x = number(a.cells[place]), y = number(b.cells[place]);
      if (Number.isNaN(x) || Number.isNaN(y)) return a.cells[place].textContent.localeCompare(b.cells[place].textContent, undefined, { numeric: true });
      return x - y;
    };
    rows.sort((a, b) => (down ? -1 : 1) * order(a, b));
    table.tBodies[0].append(...rows);
  }

  function makeHandy(table) {
    if (!table.tHead || table.tBodies[0].rows.length < 3) return;
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      if (!button.textContent) button.setAttribute("aria-label", "sort by the first column");
      head.append(button);
      button.addEventListener("click", () => sortBy(table, place, button));
    });
    if (table.tBodies[0].rows.length <= 12) return;
    const box = document.createElement("label"), field = document.createElement("input"), count = document.createElement("output");
    box.className = "filter";
    field.type = "search";
    field.placeholder = "part of a name";
    box.append("Show only ", field, count);
    table.closest(".scroll").before(box);
    field.addEventListener("input", () => {
      const wanted = field.value.toLowerCase();
      let shown = 0;
      for (const row of table.tBodies[0].rows) {
        row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
        shown += !row.hidden;
      }
      count.textContent = wanted ? `${shown} of ${table.tBodies[0].rows.length}` : "";
    });
  }

  document.querySelectorAll(".scroll > table[id]").forEach(makeHandy);

  /* The claim is checked here, by the script in #claim-checker, which a worker runs so that the page stays alive. */
  function startCheck() {
    const holder = find("claim-data"), line = find("self-check");
    if (!holder || !line || typeof DecompressionStream === "undefined") return;
    const bytes = () => Uint8Array.from(atob(holder.textContent.trim()), (letter) => letter.charCodeAt(0));
    const proofText = () => new Response(new Blob([bytes()]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
    const say = (words, state) => {
      line.hidden = false; line.textContent = words; line.dataset.state = state;
      if (state !== "refused") return;
      const box = find("verdict");                    // what is written above was proved of another claim, if at all
      box.classList.replace("good", "warn");
      box.querySelector("strong span").textContent = "Claimed, and not proved here:";
    };
    const seconds = (began) => `${Math.max(0.1, (performance.now() - began) / 1000).toFixed(1)} s`;
    function verdict(found, began) {
      const when = new Date().toLocaleTimeString();
      if (found.proved) say(`Checked in this browser just now (${when}, ${seconds(began)}): every threshold is met, and no agent gains more than ${found.epsilon} (the bound is ${found.gain ? found.gain.toPrecision(2) : 0}).`, "proved");
      else say(`Not proved by this browser (${when}): ${found.problem}. The claim in this page may have been changed.`, "refused");
    }
    async function check() {
      const began = performance.now();
      say("Checking the claim in this browser …", "running");
      try {
        const text = await proofText();
        const source = `${find("claim-checker").textContent}
          onmessage = (event) => {
            try { postMessage({ found: checkWithMoreBits(event.data, (share) => postMessage({ share })) }); }
            catch (error) { postMessage({ found: { proved: false, problem: error.message } }); }
          };`;
        const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
        worker.onmessage = ({ data }) => {
          if (data.found) { verdict(data.found, began); worker.terminate(); }
          else say(`Checking the claim in this browser: ${Math.round(100 * data.share)} %`, "running");
        };
        worker.onerror = (event) => { event.preventDefault(); verdict({ proved: false, problem: event.message || "the check did not run" }, began); };
        worker.postMessage(text);
      } catch (error) {
        verdict({ proved: false, problem: "the claim in this page cannot be read" }, began);
      }
    }
    find("proof-file").addEventListener("click", async () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([await proofText()], { type: "text/plain" }));
      link.download = "claim.proof";
      link.click();
    });
    if (holder.dataset.large === "no") return check();
    const button = document.createElement("button");
    button.type = "button";
    button.id = "check-now";
    button.textContent = "Check the claim in this browser";
    button.addEventListener("click", check);
    line.hidden = false;
    line.replaceChildren(button);
  }

  // A sweep: sliders choose the run whose numbers and picture are shown.
  async function startChooser(swept) {
    const part = (name) => document.querySelector(`[data-part="${name}"]`), sliders = [];
    const bytes = Uint8Array.from(atob(swept.views), (letter) => letter.charCodeAt(0));
    const unpacked = new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
    const views = await unpacked.json().catch(() => ({}));
    const rows = [...document.querySelectorAll("#runs tbody tr")];
    const rowOf = new Map(rows.map((row) => [row.cells[0].textContent, row]));

    function choose() {
      const run = swept.runs.find((each) => each.at.every((place, axis) => place === Number(sliders[axis].value)));
      swept.axes.forEach((axis, i) => {
        const text = axis.values[Number(sliders[i].value)];
        sliders[i].setAttribute("aria-valuetext", text);
        sliders[i].closest("label").querySelector("output").textContent = text;
      });
      rows.forEach((row) => row.classList.toggle("now", run !== undefined && row === rowOf.get(String(run.run))));
      find("chosen-facts").replaceChildren(...(run ? run.facts : [["run", "missing"]]).map(([label, value]) => {
        const fact = document.createElement("li"), bold = document.createElement("b");
        bold.textContent = value;
        fact.append(label + " ", bold);
        return fact;
      }));
      find("chosen").dataset.run = run ? String(run.run) : "";
      find("chosen-words").textContent = run ? run.words : "";
      const view = run && views[run.run], old = part("view") && part("view").dataset.step;
      const agent = part("agent") && part("agent").value;
      find("chosen-view").replaceChildren(...(view ? [find("run-view").content.cloneNode(true)] : []));
      if (!view) return;
      // The step and the agent that were looked at stay, as long as they are there.
      startViewer(view, part, old !== null && Number(old) < view.steps.length ? Number(old) : view.first || 0);
      if (agent && [...part("agent").options].some((each) => each.value === agent)) {
        part("agent").value = agent;
        part("agent").dispatchEvent(new Event("change"));
      }
    }

    swept.axes.forEach((axis, i) => {
      const label = document.createElement("label"), slider = document.createElement("input"), value = document.createElement("output");
      label.className = "slider";
      Object.assign(slider, { type: "range", min: 0, max: axis.values.length - 1, step: 1 });
      slider.value = String(swept.first[i]);
      slider.dataset.option = axis.name;
      slider.addEventListener("input", choose);
      label.append(axis.name, slider, value);
      label.hidden = axis.values.length < 2;
      sliders.push(slider);
      find("choose").append(label);
    });
    find("chosen").hidden = false;
    choose();
  }

  const view = read("view-data"), swept = read("swept");
  if (view) startViewer(view, (name) => document.querySelector(`[data-part="${name}"]`));
  const named = () => tabs.find((tab) => "#" + tab.getAttribute("aria-controls") === location.hash);
  document.querySelector(".tabs").hidden = false;
  open(named() || tabs[0]);
  addEventListener("hashchange", () => open(named() || tabs[0]));
  addEventListener("load", startCheck);
  addEventListener("beforeprint", () => document.querySelectorAll(".chart").forEach((div) => drawn.has(div) || draw(div)));
  (swept ? startChooser(swept) : Promise.resolve()).then(() => { document.documentElement.dataset.ready = "yes"; });
})();
