"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const data = JSON.parse(find("live-data").textContent);
  const made = (tag, text = "", name = "") => Object.assign(document.createElement(tag), { textContent: text, className: name });
  const FRESH = 400; // milliseconds for which a running request is waited for before a newer one supersedes it
  const SLOW = 500; // milliseconds after which progress is shown

  document.title = `${data.title}: what if?`;
  find("title").textContent = data.title;
  find("subtitle").textContent = data.subtitle;
  find("fixed").textContent = Object.entries(data.fixed).map(([name, value]) => `${name} ${value}`).join(", ");

  // Answers.
  let kept = null, current = null;

  function shown(answer, name, before) {
    const article = find("answer").content.firstElementChild.cloneNode(true);
    const part = (id) => article.querySelector(`[data-part="${id}"]`);
    const say = (id, text) => { part(id).textContent = text; part(id).hidden = !text; };
    const fill = (id, holder, html) => { part(id).innerHTML = html; part(holder).hidden = !html; }; // tables, which the library has quoted
    say("name", name);
    part("verdict").classList.add(answer.verdict.tone);
    part("verdict").dataset.status = answer.verdict.status;
    say("word", answer.verdict.word + ":");
    say("sentence", answer.verdict.sentence);
    say("detail", answer.verdict.detail);
    say("options", Object.entries(answer.options).map(([label, value]) => `${label} ${value}`).join(", "));
    say("warning", answer.warning);
    for (const [label, value] of Object.entries(answer.facts)) {
      const fact = made("li", label + " ");
      fact.append(made("b", value));
      part("facts").append(fact);
    }
    part("good").append(...answer.good.map((sentence) => made("p", sentence)));
    fill("constraints", "priced", answer.constraints);
    fill("outcomes", "gets", answer.outcomes);
    const earlier = (id) => before && before.querySelector(`[data-part="${id}"]`);
    part("gets").open = Boolean(before && earlier("gets").open);
    say("view-words", answer.view_words);
    say("view-note", answer.view_note);
    part("picture").hidden = !answer.view;
    if (answer.view) {
      const steps = answer.view.steps.length, old = earlier("view");
      // The step that was looked at stays, as long as there is one.
      const first = old && old.dataset.step && Number(old.dataset.step) < steps ? Number(old.dataset.step) : answer.view.first || 0;
      startViewer(answer.view, part, first);
      const agent = old && earlier("agent").value;
      if (agent && [...part("agent").options].some((each) => each.value === agent)) {
        part("agent").value = agent;
        part("agent").dispatchEvent(new Event("change"));
      }
    }
    return article;
  }

  const written = (value) => (value === null || value === undefined ? "–" : String(Number(value.toPrecision(6))).replace("-", "−"));

  function compare() {
    const holder = find("compared");
    holder.hidden = !kept || !current;
    if (holder.hidden) return;
    const table = made("table"), head = table.createTHead().insertRow(), body = table.createTBody();
    for (const name of ["", "A", "B", "B − A"]) head.append(made("th", name));
    for (const name of new Set([...Object.keys(kept.numbers), ...Object.keys(current.numbers)])) {
      const [a, b] = [kept.numbers[name] ?? null, current.numbers[name] ?? null], row = body.insertRow();
      row.append(made("th", name), ...[a, b, a === null || b === null ? null : b - a].map((value) => made("td", written(value))));
    }
    holder.replaceChildren(table);
  }

  function show() {
    const place = find("answers"), before = [...place.children];
    const list = [kept && [kept, current ? "A" : ""], current && [current, kept ? "B" : ""]].filter(Boolean);
    place.replaceChildren(...list.map(([answer, name], i) => shown(answer, name, before[Math.min(i, before.length - 1)])));
    place.classList.remove("stale");
    compare();
    const last = current || kept;
    if (!last) return;
    const word = made("b", last.verdict.word), value = last.numbers["total value"];
    word.style.setProperty("--tone", last.verdict.tone === "good" ? "var(--good)" : "var(--warn)");
    find("summary").replaceChildren(word, value === undefined ? "" : `, total value ${written(value)}`, ` (${last.seconds.toFixed(2)} s)`);
    find("summary").dataset.number = String(last.number);
    find("keep").disabled = !current;
    find("forget").hidden = !kept;
    find("save").hidden = false;
    find("save").href = "export?" + list.map(([answer]) => `answer=${answer.number}`).join("&");
  }

  if (data.static) {
    [kept, current] = data.answers.length > 1 ? data.answers : [null, data.answers[0] || null];
    show();
    document.documentElement.dataset.ready = "yes";
    return;
  }

  // Options.
  const fields = new Map();

  function setValue(control, value) {
    const { field, slider } = fields.get(control.name);
    field.value = value;
    if (!slider || value === "" || !Number.isFinite(Number(value))) return;
    slider.min = String(Math.min(control.low, Number(value)));
    slider.max = String(Math.max(control.high, Number(value)));
    slider.value = value;
  }

  for (const control of data.controls) {
    const box = made("div", "", "option"), label = made("label", control.label), field = made(control.choices.length ? "select" : "input");
    field.name = control.name;
    if (control.choices.length) field.append(...control.choices.map((choice) => Object.assign(made("option", choice), { value: choice })));
    else Object.assign(field, { type: "text", inputMode: "decimal", autocomplete: "off", placeholder: "as it comes" });
    label.append(field);
    box.append(label);
    let slider = null;
    if (control.high !== null) {
      slider = Object.assign(made("input"), { type: "range", min: control.low, max: control.high, step: control.step });
      slider.dataset.slider = control.name;
      slider.setAttribute("aria-label", control.label);
      slider.addEventListener("input", () => { field.value = slider.value; change(); });
      box.append(slider);
    }
    box.append(made("p", control.meaning, "note"));
    fields.set(control.name, { control, field, slider });
    setValue(control, control.value);
    field.addEventListener("change", () => { setValue(control, field.value.trim()); change(); });
    find(slider || control.choices.length ? "sliders" : "fields").append(box);
  }
  find("more").hidden = !find("fields").children.length;
  find("form").hidden = false;
  find("form").addEventListener("submit", (event) => event.preventDefault());

  // Requests: one at a time; a newer one supersedes an older one, which the server then cancels.
  let number = 0, running = null, wanted = false;

  function change() {
    wanted = true;
    pump();
  }

  function pump() {
    if (!wanted) return;
    const age = running ? performance.now() - running.began : FRESH;
    if (age < FRESH) return void setTimeout(pump, FRESH - age);
    wanted = false;
    request();
  }

  const post = async (path, body) => {
    const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`the command refused the request (${answer.status})`);
    return answer.json();
  };

  function problem(text) {
    find("problem").textContent = text;
    find("problem").hidden = !text;
    find("answers").classList.toggle("stale", Boolean(text));
  }

  async function request() {
    const mine = { number: ++number, began: performance.now() };
    running = mine;
    const options = Object.fromEntries([...fields].map(([name, { field }]) => [name, field.value]));
    follow(mine);
    let found;
    try {
      found = await post("answer", { options });
    } catch (error) {
      found = { problem: error instanceof TypeError ? "The command does not answer. Was it stopped?" : `${error.message}.` };
    }
    if (running !== mine) return; // a newer request was sent
    running = null;
    find("working").hidden = true;
    if (!current && (found.cancelled || found.problem)) find("summary").textContent = "No answer yet";
    if (found.cancelled) problem(current ? "Cancelled. What is shown was computed with other options." : "Cancelled.");
    else if (found.problem) problem(found.problem);
    else {
      problem("");
      current = found;
      show();
    }
    pump();
  }

  async function follow(mine) {
    await new Promise((resolve) => setTimeout(resolve, SLOW));
    while (running === mine) {
      find("working").hidden = false;
      try {
        const phase = await (await fetch("progress")).json();
        if (running === mine) find("phase").textContent = `${phase.text}, ${((performance.now() - mine.began) / 1000).toFixed(0)} s`;
      } catch (error) {
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, SLOW));
    }
  }

  find("cancel").addEventListener("click", () => post("cancel", {}).catch(() => {}));
  find("keep").addEventListener("click", () => { kept = current; show(); });
  find("forget").addEventListener("click", () => { kept = null; show(); });
  find("reset").addEventListener("click", () => {
    for (const { control } of fields.values()) setValue(control, control.value);
    change();
  });
  document.documentElement.dataset.ready = "yes";
  change();
})();
