// The statistic that is chosen, from row to row: of the position that is looked at, the median of all positions, and
// the band in which nine in ten of them lie. Rows of one site, and the final one: those of the cell's own site.

const CHART = {wide: 760, high: 210, left: 52, right: 22, top: 12, bottom: 26}; // wide: at most

let chartWidth = CHART.wide; // asked for rarely: the answer makes the browser lay out all cells
function measureChart() {
  chartWidth = Math.max(240, Math.min(CHART.wide, $("view").clientWidth - 28));
}

function rowsOfSite(line) {
  const site = head.lines[line === finalLine ? Math.max(0, finalLine - 1) : line].site;
  return head.lines.map((_, l) => l).filter(l => l === finalLine || head.lines[l].site === site);
}

// Of each row quantiles 5 %, 50 %, 95 % over the positions that make the scale; NaN where it has no value.
const spreads = new Map();
function spreadOf(rows) {
  const key = [shown.doc, stat, $("first").checked, rows.join()].join(" ");
  if (!spreads.has(key)) {
    const c = columnsOf(shown), all = $("first").checked || c.pos.every(p => p === 0);
    spreads.set(key, rows.map(l => {
      const v = Float32Array.from([...c.pos.keys()].filter(i => all || c.pos[i] !== 0)
        .map(i => valueAt(stat, l, i)).filter(x => Number.isFinite(x) && !(stat === "rank" && x === 0))).sort();
      return [.05, .5, .95].map(q => v.length ? quantile(v, q) : NaN);
    }));
  }
  return spreads.get(key);
}

// Points as a path that what is not a number breaks.
function pathOf(points) {
  let drawn = false;
  return points.map(([x, y]) => {
    const part = Number.isNaN(y) ? "" : (drawn ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1);
    drawn = !Number.isNaN(y);
    return part;
  }).join("");
}

function axis(low, high, log) {
  if (log)
    return Array.from({length: Math.floor(Math.log10(high)) + 1}, (_, i) => 10 ** i);
  const raw = (high - low) / 4, power = 10 ** Math.floor(Math.log10(raw)), share = raw / power;
  const step = power * (share > 5 ? 10 : share > 2 ? 5 : share > 1 ? 2 : 1), out = [];
  for (let i = Math.ceil(low / step); i * step <= high * (1 + 1e-9); i++)
    out.push(i * step);
  return out;
}

function drawLines(line, at) {
  const box = $("lines"), rows = shown && scale ? rowsOfSite(line) : [];
  box.hidden = rows.length < 2;
  if (box.hidden)
    return;
  const spread = spreadOf(rows), own = rows.map(l => valueAt(stat, l, at)), {log} = statistics[stat];
  // What is no part of the scale may leave the chart.
  const far = columnsOf(shown).pos[at] === 0 && !$("first").checked;
  const inside = (_, i) => scaledLines.includes(rows[i]);
  const seen = [...spread.filter(inside).flat(), ...far ? [] : own.filter(inside)]
    .filter(x => Number.isFinite(x) && !(log && x < 1));
  const low = Math.min(log ? 1 : 0, ...seen), high = Math.max(low + 1e-6, log ? 10 : -Infinity, ...seen);
  const place = log ? x => x < 1 ? NaN : Math.log(x) : x => x;
  const wide = chartWidth;
  const x = i => CHART.left + (wide - CHART.left - CHART.right) * i / (rows.length - 1);
  const y = v => Math.max(2, CHART.high - CHART.bottom - (CHART.high - CHART.top - CHART.bottom) *
                             (place(v) - place(low)) / (place(high) - place(low)));
  const e = svg("svg", {viewBox: "0 0 " + wide + " " + CHART.high, role: "img",
                        "aria-label": statistics[stat].title + " by row at position " + columnsOf(shown).pos[at]});
  for (const v of axis(low, high, log))
    e.append(svg("line", {x1: CHART.left, x2: wide - CHART.right, y1: y(v), y2: y(v)}),
             svg("text", {x: CHART.left - 6, y: y(v) + 4, "text-anchor": "end"}, short(v)));
  const every = Math.ceil(rows.length * nameWidth / (wide - CHART.left));
  rows.forEach((l, i) => {
    if (i % every === 0 && (rows.length - 1 - i >= every || l === finalLine) || l === finalLine)
      e.append(svg("text", {x: x(i), y: CHART.high - 6, "text-anchor": "middle"}, head.lines[l].name));
  });
  const band = [...spread.map((s, i) => [x(i), y(s[2])]), ...spread.map((s, i) => [x(i), y(s[0])]).reverse()];
  if (band.every(p => !Number.isNaN(p[1])))
    e.append(svg("path", {class: "band", d: pathOf(band) + "Z"}));
  e.append(svg("path", {class: "median", d: pathOf(spread.map((s, i) => [x(i), y(s[1])]))}),
           svg("path", {class: "own", d: pathOf(own.map((v, i) => [x(i), y(v)]))}));
  rows.forEach((l, i) => {
    if (l === line && Number.isFinite(y(own[i])))
      e.append(svg("circle", {cx: x(i), cy: y(own[i]), r: 4.5}));
  });
  $("chart").replaceChildren(e);
}
