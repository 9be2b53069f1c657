// Filters and sorts the tables, draws the samples of a row, and keeps both in the address.
// Builds every node itself: no text of the report is ever parsed as markup.
"use strict";

const one = (query, from = document) => from.querySelector(query);
const all = (query, from = document) => [...from.querySelectorAll(query)];
const SVG = "http://www.w3.org/2000/svg";
const FILTERS = ["implementation", "dtype", "threads", "regime", "verdict", "text"];
const STOPPED = { plateau: "the noise had settled", budget: "time was up", exact: "as many as asked for" };
const known = JSON.parse(one("#samples-data").textContent);
const form = one("#filters");
const state = {};

function node(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// The address: `#dtype=float32&sort=median+us&row=7`. One without `=` names a part of the page.

function read() {
  const text = location.hash.slice(1);
  if (text && !text.includes("=")) return false;
  for (const key of Object.keys(state)) delete state[key];
  Object.assign(state, Object.fromEntries(new URLSearchParams(text)));
  return true;
}

function write() {
  const kept = Object.entries(state).filter(([, value]) => value !== "");
  history.replaceState(null, "", `#${new URLSearchParams(kept)}`);
}

// Filters.

function searched(row) {
  return `${row.textContent} ${one("a", row).title}`.toLowerCase();
}

function matches(row) {
  const text = (state.text || "").toLowerCase();
  return ["implementation", "dtype", "threads", "verdict"].every(
    (name) => !state[name] || row.dataset[name] === state[name],
  ) && (!text || searched(row).includes(text));
}

function filter() {
  let shown = 0, total = 0;
  for (const part of all(".regime")) {
    const apart = state.regime && part.dataset.regime !== state.regime;
    let inside = 0;
    for (const row of all("tbody tr", part)) {
      row.hidden = apart || !matches(row);
      inside += !row.hidden;
      total += 1;
    }
    part.hidden = inside === 0;
    shown += inside;
  }
  one("#shown").textContent = `${shown} of ${total} rows`;
}

// Sorting: rows without a value stay last either way.

function compare(a, b, kind, sign) {
  if (kind === "text") return sign * a.localeCompare(b, "en", { numeric: true });
  if (a === "" || b === "") return (a === "") - (b === "");
  return sign * (Number(a) - Number(b));
}

function order(table) {
  const heads = all("thead th", table);
  const at = heads.findIndex((head) => head.dataset.key === state.sort);
  const sign = state.order === "descending" ? -1 : 1;
  heads.forEach((head, i) => head.setAttribute(
    "aria-sort", i !== at ? "none" : sign < 0 ? "descending" : "ascending",
  ));
  const body = one("tbody", table);
  const kind = at < 0 ? "number" : heads[at].dataset.kind;
  const value = (row) => {
    if (at < 0) return row.id.slice("row=".length);
    const cell = row.cells[at];
    return kind === "number" ? cell.dataset.value || "" : cell.textContent;
  };
  const before = all("tr", body);
  const after = before.map((row) => [value(row), row])
    .sort(([a], [b]) => compare(a, b, kind, at < 0 ? 1 : sign)).map(([, row]) => row);
  if (after.some((row, i) => row !== before[i])) body.append(...after);
}

function sortable(table) {
  for (const head of all("thead th", table)) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const again = state.sort === head.dataset.key && state.order !== "descending";
      state.sort = head.dataset.key;
      state.order = again ? "descending" : "ascending";
      write();
      all("table.figures").forEach(order);
    });
  }
}

// Samples of a row, by round.

function time(us) {
  const [size, unit] = us >= 1e6 ? [1e6, "s"] : us >= 1e3 ? [1e3, "ms"] : [1, "µs"];
  return `${Number((us / size).toPrecision(4))} ${unit}`;
}

function range(row) {
  const low = row.us ? row.us : row.stretches.map((each) => each[2]);
  const high = row.us ? row.us : row.stretches.map((each) => each[4]);
  const least = Math.min(...low), most = Math.max(...high, row.p90);
  const room = (most - least || most || 1) * 0.06;
  const first = row.us ? row.rounds[0] : row.stretches[0][0];
  const last = row.us ? row.rounds[row.rounds.length - 1] : row.stretches.at(-1)[1];
  return { least: Math.max(0, least - room), most: most + room, first, last: Math.max(last, first + 1) };
}

function axes(plot, x, y, ends, box) {
  for (let i = 0; i <= 4; i += 1) {
    const us = ends.least + (i / 4) * (ends.most - ends.least);
    plot.append(node("path", { d: `M${box.left} ${y(us)}H${box.right}`, class: "grid" }));
    plot.append(node("text", { x: box.left - 5, y: y(us) + 4, class: "end" }, time(us)));
  }
  const rounds = [ends.first, Math.round((ends.first + ends.last) / 2), ends.last];
  ["start", "middle", "end"].forEach((anchor, i) => plot.append(
    node("text", { x: x(rounds[i]), y: box.bottom + 16, "text-anchor": anchor }, `round ${rounds[i]}`),
  ));
}

function draw() {
  const row = known[state.row];
  const place = one("#sample-plot");
  if (!row || !place) return;
  const width = Math.max(280, place.clientWidth - 16);
  const box = { left: 80, right: width - 10, top: 12, bottom: 250 };
  const ends = range(row);
  const x = (round) => box.left + ((round - ends.first) / (ends.last - ends.first)) * (box.right - box.left);
  const y = (us) => box.bottom - ((us - ends.least) / (ends.most - ends.least)) * (box.bottom - box.top);
  const plot = node("svg", { viewBox: `0 0 ${width} 276`, height: 276, role: "img" });
  plot.append(node("title", {}, `Samples by round: ${row.name}`));
  axes(plot, x, y, ends, box);
  if (row.us) {
    const dots = row.us.map((us, i) => `M${x(row.rounds[i]).toFixed(1)} ${y(us).toFixed(1)}h0`);
    plot.append(node("path", { d: dots.join(""), class: "dots" }));
  } else {
    const at = (i) => row.stretches.map((each) => `${x((each[0] + each[1]) / 2).toFixed(1)} ${y(each[i]).toFixed(1)}`);
    plot.append(node("path", { d: `M${at(4).join("L")}L${at(2).reverse().join("L")}z`, class: "spread" }));
    plot.append(node("path", { d: `M${at(3).join("L")}`, class: "middle-line" }));
  }
  for (const name of ["median", "p90"]) {
    plot.append(node("path", { d: `M${box.left} ${y(row[name])}H${box.right}`, class: "level" }));
    const above = name === "median" ? 13 : -4;
    plot.append(node("text", { x: box.right, y: y(row[name]) + above, class: "end" }, `${name} ${time(row[name])}`));
  }
  place.replaceChildren(plot);
}

function facts(row) {
  const dropped = Object.entries(row.dropped).map(([why, count]) => `${count} for '${why}'`);
  const said = [
    `${row.taken} samples of ${row.calls} calls each; ${STOPPED[row.stopped] || row.stopped}.`,
    `Median ${time(row.median)}, p90 ${time(row.p90)}, least ${time(row.minimum)}.`,
    dropped.length ? `Not counted: ${dropped.join(", ")}.` : "None was dropped.",
  ];
  if (row.stretches) said.push(`Drawn: least, median and greatest of ${row.stretches.length} stretches of rounds.`);
  if (row.unstable.length) said.push(`Unstable: ${row.unstable.join("; ")}.`);
  return said.join(" ");
}

function choose() {
  for (const row of all("tr.chosen")) row.classList.remove("chosen");
  const line = document.getElementById(`row=${state.row}`);
  if (line) line.classList.add("chosen");
  const chooser = one("#sample-row");
  if (!chooser) return;
  const row = known[state.row] || known[chooser.value];
  if (known[state.row]) chooser.value = state.row;
  one("#sample-facts").textContent = facts(row);
  const before = state.row;
  if (!known[before]) state.row = chooser.value;
  draw();
  state.row = before;
  if (before === undefined) delete state.row;
}

function apply() {
  for (const name of FILTERS) form.elements[name].value = state[name] || "";
  filter();
  all("table.figures").forEach(order);
  choose();
}

function begin() {
  form.hidden = false;
  all("table.figures").forEach(sortable);
  form.addEventListener("input", () => {
    for (const name of FILTERS) state[name] = form.elements[name].value;
    write();
    filter();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => {
    for (const name of [...FILTERS, "sort", "order"]) delete state[name];
    write();
    setTimeout(apply);
  });
  for (const link of all("a[data-row]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      state.row = link.dataset.row;
      write();
      choose();
      one(known[state.row] ? "#samples" : "#reasons").scrollIntoView();
    });
  }
  if (one("#sample")) {
    one("#sample").hidden = false;
    one("#sample-row").addEventListener("change", (event) => {
      state.row = event.target.value;
      write();
      choose();
    });
    addEventListener("resize", choose);
  }
  addEventListener("hashchange", () => read() && apply());
  addEventListener("beforeprint", () => all("details").forEach((each) => { each.open = true; }));
  read();
  apply();
  if (state.row) document.getElementById(`row=${state.row}`)?.scrollIntoView({ block: "center" });
}

if (form) begin();
