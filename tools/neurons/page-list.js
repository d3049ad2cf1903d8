// The list of neurons: filters, sorting, and the rows that can be seen.

// The same in fewer characters, for the list.
function brief(x) {
  const a = Math.abs(x);
  return a >= 1e-3 && a < 1 ? x.toFixed(3) : a > 0 && a < 1e-3 ? x.toExponential(0) : short(x);
}

// --- columns. few, medium, minor: which go first when there is little room.

const shownColumns = [
  {key: "max", title: "Max", long: "highest value"},
  {key: "min", title: "Min", long: "lowest value"},
  {key: "mean", title: "Mean", long: "mean", minor: true},
  {key: "sd", title: "SD", long: "standard deviation", minor: true},
  {key: "skew", title: "Skew", long: "skewness", minor: true, medium: true},
  {key: "kurtosis", title: "Kurt", long: "kurtosis; 3: normal", medium: true},
  {key: "density", title: "> 0", long: "density: share of values above 0", show: percent},
];
if (head.clusters)
  shownColumns.push({key: "effective", title: "Kinds", medium: true,
                     long: "polysemanticity: effective number of clusters of the top contexts"});
for (const c of shownColumns)
  c.className = "number" + (c.minor ? " minor" : "") + (c.minor || c.medium ? " medium" : "");
$("grid").style.setProperty("--numbers", shownColumns.length);
$("grid").style.setProperty("--majors", shownColumns.filter(c => !c.minor).length);
$("grid").style.setProperty("--few", shownColumns.filter(c => !c.minor && !c.medium).length);

const sorting = {key: "", down: false}; // "": the order of the file; "neuron": by hook point and unit
const ROW = 30;
let order = new Int32Array(0); // neurons that pass the filters
let cursor = 0;                // index in order
let opened = -1;               // the neuron whose details are shown
let hits = null;               // of the search: occurrences()
let previews = head.sections[0];

// --- filters

// Which neurons a name means: "421", "N421", "L3", "L3N9", several with commas; or a part of the name.
function nameTest(text) {
  const tests = text.split(/[\s,]+/).filter(w => w).map(word => {
    const m = /^(?:L(\d+))?(?:N?(\d+))?$/i.exec(word);
    if (!m) {
      const part = word.toLowerCase();
      return n => nameOf(n).toLowerCase().includes(part);
    }
    return n => (m[1] === undefined || head.tables[columns.table[n]].layer === Number(m[1])) &&
                (m[2] === undefined || columns.unit[n] === Number(m[2]));
  });
  return tests.length ? n => tests.some(t => t(n)) : null;
}

function textTest(text) {
  hits = text ? occurrences(text) : null;
  if (!hits)
    return null;
  const {begin, at} = places($("which").value), {nextEnd} = hits;
  const token = $("where").value === "token";
  const before = head.whole ? 1e9 : head.before, after = head.whole ? 1e9 : head.after;
  const matches = p => {
    if (p < 0)
      return false;
    if (token)
      return nextEnd[p] === p;
    const w = windowOf(p, before, after);
    return nextEnd[w.from] < w.to;
  };
  return n => {
    for (let i = begin[n]; i < begin[n + 1]; i++)
      if (matches(at[i]))
        return true;
    return false;
  };
}

function rangeTest() {
  const low = $("least").value, high = $("most").value;
  if (low === "" && high === "")
    return null;
  const from = low === "" ? -Infinity : low / 100, to = high === "" ? Infinity : high / 100;
  return n => columns.density[n] >= from && columns.density[n] <= to;
}

function filter() {
  const layer = $("layer").value;
  const tests = [layer === "" ? null : n => columns.table[n] === Number(layer), nameTest($("name").value), rangeTest(),
                 textTest($("search").value)].filter(t => t);
  const kept = [];
  for (let n = 0; n < total; n++)
    if (tests.every(t => t(n)))
      kept.push(n);
  order = Int32Array.from(kept);
  sort();
  $("count").textContent = (tests.length ? grouped(order.length) + " of " : "") + grouped(total) +
                           (total === 1 ? " neuron" : " neurons") + (order.length ? "" : ": nothing fits the filters");
}

function sort() {
  const {key, down} = sorting, {unit, table} = columns;
  if (key === "")
    order.sort();
  else if (key === "neuron")
    order.sort((a, b) => (down ? -1 : 1) * (table[a] - table[b] || unit[a] - unit[b]) || a - b);
  else {
    const x = columns[key];
    order.sort((a, b) => { // what is not a number comes last
      const p = x[a], q = x[b];
      return p === q ? a - b : p !== p ? (q !== q ? a - b : 1) : q !== q ? -1 : (p < q) === down ? 1 : -1;
    });
  }
  cursor = Math.max(0, order.indexOf(opened));
  for (const cell of $("heading").children)
    if (cell.dataset.key)
      cell.setAttribute("aria-sort", cell.dataset.key !== key ? "none" : down ? "descending" : "ascending");
  $("sort").value = key === "" ? "" : key + (down ? " down" : " up");
  $("grid").setAttribute("aria-rowcount", order.length + 1);
  $("room").style.height = ROW * order.length + "px";
  $("grid").scrollTop = 0;
  draw();
}

function sortBy(key, down) {
  sorting.key = key;
  sorting.down = down;
  sort();
}

// --- rows: as many as can be seen exist

const rows = [];

function newRow() {
  const row = make("div", "row");
  row.setAttribute("role", "row");
  const cell = className => {
    const c = row.appendChild(make("span", className));
    c.setAttribute("role", "gridcell");
    return c;
  };
  const out = {row, neuron: -1, name: cell("name"), numbers: shownColumns.map(c => cell(c.className)),
               preview: cell("preview")};
  rows.push(out);
  $("room").append(row);
  return out;
}

// What fires the neuron first, in a few words: what is drawn for the tokens of its best places, each once.
function preview(n) {
  const list = record(n).lists[previews] || [];
  const texts = list.slice(0, 8).filter(h => h.at >= 0).map(h => {
    const [piece] = pieces(h.at, h.at + 1);
    return pieceText(piece.from, piece.n).trim();
  });
  return [...new Set(texts)].slice(0, 6).join(" · ");
}

function fill(r, i) {
  const n = order[i];
  if (r.neuron !== n) {
    r.neuron = n;
    r.row.id = "n" + n;
    const name = nameOf(n), unit = name.lastIndexOf("N");
    r.name.replaceChildren(make("span", "point", name.slice(0, unit)), name.slice(unit));
    shownColumns.forEach((c, j) => r.numbers[j].textContent = (c.show || brief)(columns[c.key][n]));
    r.preview.textContent = preview(n);
  }
  r.row.hidden = false;
  r.row.style.transform = "translateY(" + ROW * i + "px)";
  r.row.setAttribute("aria-rowindex", i + 2);
  r.row.setAttribute("aria-selected", n === opened);
  r.row.classList.toggle("cursor", i === cursor);
  r.row.classList.toggle("open", n === opened);
}

function draw() {
  const grid = $("grid"), first = Math.max(0, Math.floor(grid.scrollTop / ROW) - 2);
  const last = Math.min(order.length, first + Math.ceil(grid.clientHeight / ROW) + 4);
  while (rows.length < last - first)
    newRow();
  const free = new Map(rows.map(r => [r.neuron, r]));
  const wanted = new Set(order.subarray(first, last));
  const spare = rows.filter(r => !wanted.has(r.neuron));
  for (let i = first; i < last; i++)
    fill(wanted.has(order[i]) && free.get(order[i]) || spare.pop(), i);
  for (const r of spare) {
    r.row.hidden = true;
    r.row.removeAttribute("id");
    r.neuron = -1;
  }
  if (order.length)
    grid.setAttribute("aria-activedescendant", "n" + order[cursor]);
  else
    grid.removeAttribute("aria-activedescendant");
}

// Scrolls the list so that the cursor's row can be seen.
function reveal() {
  const grid = $("grid"), top = ROW * cursor, room = grid.clientHeight - ROW - 2;
  if (top < grid.scrollTop)
    grid.scrollTop = top;
  else if (top + ROW > grid.scrollTop + room)
    grid.scrollTop = top + ROW - room;
}

function moveTo(i) {
  if (!order.length)
    return;
  cursor = Math.max(0, Math.min(order.length - 1, i));
  reveal();
  draw();
}

// --- the table's head and the filters' choices

function heading(key, title, long, className) {
  const cell = $("heading").appendChild(make("span", className));
  cell.setAttribute("role", "columnheader");
  cell.setAttribute("aria-sort", "none");
  cell.dataset.key = key;
  const button = cell.appendChild(make("button", "", title));
  button.type = "button";
  button.title = "Sort by " + long;
  button.addEventListener("click", () => sortBy(key, sorting.key === key ? !sorting.down : key !== "neuron"));
}

const sectionTitles = {top: "top", bottom: "bottom", abs: "largest magnitude", random: "random sample"};
for (let i = 0; i + 1 < head.bands.length; i++)
  sectionTitles["band" + i] = "ranks " + head.bands[i] + " to " + head.bands[i + 1];

heading("neuron", "Neuron", "layer and unit", "name");
for (const c of shownColumns)
  heading(c.key, c.title, c.long, c.className);
const previewHead = $("heading").appendChild(make("span", "preview", head.sections.length ? "Fires on" : ""));
previewHead.setAttribute("role", "columnheader");
$("grid").setAttribute("aria-colcount", shownColumns.length + 2);

option("layer", "", "all");
tableNames.forEach((name, t) => option("layer", t, name));
option("sort", "", "as given");
option("sort", "neuron up", "layer, unit");
for (const c of shownColumns) {
  option("sort", c.key + " down", c.title + " ▼");
  option("sort", c.key + " up", c.title + " ▲");
}
for (const section of head.sections)
  option("which", section, sectionTitles[section]);

let waiting = 0;
function filterSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    filter();
    redraw();
  }, 120);
}
$("list").addEventListener("input", event => {
  if (event.target.id === "sort") {
    const [key, direction] = event.target.value.split(" ");
    sortBy(key, direction === "down");
  } else if (event.target.id === "which") {
    previews = event.target.value;
    rows.forEach(r => r.neuron = -1);
    filterSoon();
  } else
    filterSoon();
});
$("filters").addEventListener("reset", () => setTimeout(() => {
  sorting.key = "";
  previews = head.sections[0];
  rows.forEach(r => r.neuron = -1);
  filterSoon();
}));
$("filters").addEventListener("submit", event => event.preventDefault());
$("grid").addEventListener("scroll", draw, {passive: true});
addEventListener("resize", draw);
