// One neuron: numbers, histogram, weights, and its places.

let shown = null;          // record() of the opened neuron
let scaleOfAll = false;    // heat by the largest magnitude of all neurons, not of this one
const expanded = new Set(); // places ("top 3") whose whole stretch is shown
let allExpanded = false;

const COLLAPSED = 10; // tokens on either side
const EDGE = 3;       // tokens kept for whole characters: no reason to expand

// --- heat

// Colours e by a value; nothing where it is not known. Returns how strongly, 0 to 1.
function heat(e, value) {
  const most = scaleOfAll ? largest : magnitude(opened);
  if (!Number.isFinite(value) || most === 0)
    return 0;
  e.classList.add("heat");
  e.style.setProperty("--colour", value < 0 ? "var(--negative)" : "var(--positive)");
  const strength = Math.min(1, Math.abs(value) / most);
  e.style.setProperty("--strength", strength.toFixed(3));
  return strength;
}

// --- tokens

function chip(token, note) {
  const e = make("span", "chip");
  drawBytes(e, tokens().bytes(token), tokens().id[token]);
  if (note !== undefined)
    e.append(make("small", "", note));
  e.dataset.tip = "token " + tokens().id[token] + "  " + hex(tokens().bytes(token));
  return e;
}

function tokenTip(at, value) {
  const s = stretchOf(at), t = stream()[at];
  return (Number.isFinite(value) ? exact(value) : "value not kept") +
         "\ndocument " + s.doc + ", position " + (s.pos + at - s.at) +
         "\ntoken " + tokens().id[t] + (tokens().special[t] ? ", special" : "") + "  " + hex(tokens().bytes(t));
}

// One piece of a context. Its value: the place's where that is in it, else the largest of its tokens.
function drawPiece(piece, hit) {
  const e = make("span", "piece"), end = piece.from + piece.n;
  let value = NaN;
  for (let i = piece.from; i < end; i++) {
    const x = hit.values ? hit.values[i - hit.at + hit.lead] : NaN;
    if (Number.isFinite(x) && !(Math.abs(x) <= Math.abs(value)))
      value = x;
  }
  const holds = hit.at >= piece.from && hit.at < end;
  if (holds)
    value = hit.value;
  drawBytes(e, joined(piece.from, end, streamAt), tokens().id[stream()[piece.from]]);
  if (tokens().special[stream()[piece.from]])
    e.classList.add("special");
  if (piece.n > 1)
    e.classList.add("split");
  if (hits && hits.found.subarray(piece.from, end).some(x => x))
    e.classList.add("found");
  const strong = heat(e, value) > 0.2;
  e.classList.toggle("led", (strong || holds) && e.textContent.startsWith(" "));
  const split = piece.n > 1 ? "\none character or more in " + piece.n + " tokens" : "";
  e.dataset.tip = tokenTip(holds ? hit.at : piece.from, value) + split;
  if (holds) {
    e.classList.add("hit");
    e.tabIndex = 0;
    e.dataset.tip += (piece.n > 1 ? ", the place is number " + (hit.at - piece.from + 1) : "") + "\n" + countText(hit);
  }
  return e;
}

function countText(hit) {
  return hit.count === 0 ? "count not known: a place that is not listed ties with it"
       : hit.count === 1 ? "stands once" : grouped(hit.count) + " places like this, with this value";
}

function drawText(hit, wide) {
  const e = make("div", "text");
  if (hit.at < 0) {
    e.append(make("span", "edge", "(no tokens of this place are kept)"));
    return e;
  }
  const before = wide ? 1e9 : Math.min(head.whole ? COLLAPSED : head.before, COLLAPSED);
  const after = wide ? 1e9 : Math.min(head.whole ? COLLAPSED : head.after, COLLAPSED);
  const w = windowOf(hit.at, before, after);
  if (!(w.stretch.begins && w.from === w.stretch.at))
    e.append(make("span", "edge", "…"));
  for (const piece of pieces(w.from, w.to))
    e.append(drawPiece(piece, hit));
  if (!(w.stretch.ends && w.to === w.stretch.end))
    e.append(make("span", "edge", "…"));
  return e;
}

function drawPlace(hit, key) {
  const li = make("li"), place = placeOf(hit);
  const value = li.appendChild(make("div", "value", short(hit.value)));
  value.dataset.tip = exact(hit.value);
  if (hit.count > 1)
    value.append(make("small", "", "× " + grouped(hit.count)));
  li.append(drawText(hit, allExpanded !== expanded.has(key)));
  const foot = li.appendChild(make("div", "foot"));
  foot.append(make("span", "", "doc " + place.doc + ":" + place.pos));
  if (hit.at >= 0) {
    const s = stretchOf(hit.at);
    const goesOn = hit.at + 1 < s.end;
    const next = foot.appendChild(make("span", "", goesOn ? "next " : s.ends ? "the document ends here" : ""));
    if (goesOn)
      next.append(chip(stream()[hit.at + 1]));
    if (hit.cluster >= 0)
      foot.append(make("span", "", "kind " + (hit.cluster + 1)));
    const w = windowOf(hit.at, Math.min(head.before, COLLAPSED), Math.min(head.after, COLLAPSED));
    if (w.from - s.at > EDGE || s.end - w.to > EDGE) {
      const wide = allExpanded !== expanded.has(key);
      const button = foot.appendChild(make("button", "", wide ? "less" : "more"));
      button.type = "button";
      button.setAttribute("aria-expanded", wide);
      button.setAttribute("aria-label", wide ? "Show less of the text" : "Show more of the text");
      button.addEventListener("click", () => {
        if (!expanded.delete(key))
          expanded.add(key);
        const again = drawPlace(hit, key);
        li.replaceWith(again);
        again.querySelector("button").focus();
      });
    }
  }
  return li;
}

function drawSection(name) {
  const e = make("section"), list = shown.lists[name];
  const title = {top: "Highest", bottom: "Lowest", abs: "Largest magnitude", random: "Random sample"}[name] ||
                "Sample of " + sectionTitles[name];
  e.append(make("h3", "", title));
  e.dataset.section = name;
  const places = e.appendChild(make("ol", "places"));
  places.setAttribute("aria-label", title);
  list.forEach((hit, i) => places.append(drawPlace(hit, name + " " + i)));
  if (!list.length)
    e.append(make("p", "plain", "No places."));
  return e;
}

// --- numbers

function drawStats() {
  const dl = make("dl", "stats"), n = opened;
  const put = (name, text, tip) => {
    const d = dl.appendChild(make("div"));
    d.append(make("dt", "", name), make("dd", "", text));
    if (tip !== undefined)
      d.dataset.tip = name + ": " + tip;
  };
  for (const key of ["max", "min"])
    put(key, short(columns[key][n]), exact(columns[key][n]));
  for (const key of ["mean", "sd", "skew", "kurtosis"])
    put(key, short(columns[key][n]), String(columns[key][n]));
  head.thresholds.forEach((t, i) => put("> " + t, percent(shown.above[i] / shown.count),
                                        grouped(shown.above[i]) + " of " + grouped(shown.count) + " values"));
  if (head.clusters)
    put("kinds", short(columns.effective[n]), columns.clusters[n] + " clusters of the top contexts; " +
        columns.effective[n] + " by the entropy of their sizes");
  put("values", grouped(shown.count));
  if (shown.nonfinite)
    put("NaN or infinite", grouped(shown.nonfinite));
  return dl;
}

// Edges of the histogram's columns: half octaves (2^e, 1.5 * 2^e) down from 2^exponent; in the middle what is smaller.
function edges(column) {
  const edge = k => (k % 2 ? 0.75 : 1) * 2 ** (shown.exponent - (k - k % 2) / 2); // k half octaves down
  if (column === HALVES)
    return [-edge(HALVES), edge(HALVES)];
  const k = column < HALVES ? column : 2 * HALVES - column;
  const out = k === 0 && shown.exponent === 20 ? Infinity : edge(k);
  return column < HALVES ? [-out, -edge(k + 1)] : [edge(k + 1), out];
}

function drawHistogram() {
  const counts = shown.histogram, used = counts.map((c, i) => c ? i : -1).filter(i => i >= 0);
  const box = make("section");
  box.append(make("h3", "", "Values"));
  if (!used.length)
    return box;
  const first = used[0], last = used[used.length - 1], W = 640, H = 110, FLOOR = 110, TOP = 8;
  const step = W / (last - first + 1), high = Math.log10(1 + Math.max(...counts));
  const y = c => FLOOR - (FLOOR - TOP) * Math.log10(1 + c) / high;
  const e = svg("svg", {class: "histogram", viewBox: "0 0 " + W + " " + H, preserveAspectRatio: "none", role: "group",
                        "aria-label": "Histogram of the values, counts on a logarithmic scale"});
  for (let power = 1; power < Math.max(...counts); power *= 10)
    e.append(svg("line", {x1: 0, x2: W, y1: y(power), y2: y(power)}));
  for (let i = first; i <= last; i++) {
    const x = step * (i - first), [low, up] = edges(i);
    const kind = i < HALVES ? "negative" : i > HALVES ? "positive" : "";
    e.append(svg("rect", {class: "column " + kind, x: x + .5, width: Math.max(.5, step - 1), y: y(counts[i]),
                          height: FLOOR - y(counts[i])}));
    const text = (i === HALVES ? "between " : "") + exact(low) + (i === HALVES ? " and " : " to ") + exact(up) + ": " +
                 grouped(counts[i]) + " (" + percent(counts[i] / shown.count) + ")";
    const area = svg("rect", {class: "catch", x, width: step, y: 0, height: FLOOR, role: "img", "aria-label": text});
    area.dataset.tip = text;
    area.dataset.count = counts[i];
    e.append(area);
  }
  box.append(e, drawAxis(first, last));
  return box;
}

// Names under the columns that begin with a power of two, as many as there is room for.
function drawAxis(first, last) {
  const axis = make("div", "axis"), n = last - first + 1;
  const every = Math.max(2, 2 * Math.ceil(n / 18));
  for (let i = first; i <= last + 1; i++) {
    const fromZero = i <= HALVES ? i : 2 * HALVES + 1 - i; // column's left edge, in half octaves down
    if (fromZero % every)
      continue;
    const text = fromZero === HALVES ? "" : (i <= HALVES ? "-" : "") + short(2 ** (shown.exponent - fromZero / 2));
    const mark = axis.appendChild(make("span", "", text));
    mark.style.left = 100 * (i - first) / n + "%";
  }
  axis.setAttribute("aria-hidden", "true");
  return axis;
}

// --- weights, means, relations

function drawWeights() {
  const gated = shown.weights[2].length > 0, names = [gated ? "In, gate" : "In", "In, up", "Out"];
  if (!shown.weights.some(w => w.length))
    return [];
  const box = make("section"), dl = make("dl", "weights");
  box.append(make("h3", "", "What the weights say"), dl);
  shown.weights.forEach((list, part) => {
    if (!list.length)
      return;
    dl.append(make("dt", "", names[part >> 1] + (part % 2 ? " −" : " +")));
    const dd = dl.appendChild(make("dd"));
    for (const w of list) {
      const c = dd.appendChild(chip(w.token, short(w.score)));
      c.dataset.tip = "score " + exact(w.score) + "\n" + c.dataset.tip;
    }
  });
  if (shown.followed)
    box.append(make("p", "plain",
                    "The first out-token follows " + shown.agree + " of " + shown.followed + " top places."));
  return [box];
}

function table(title, heads, lines) {
  const box = make("section"), t = make("table", "plainly");
  box.append(make("h3", "", title), t);
  const tr = t.createTHead().insertRow();
  heads.forEach(h => tr.append(Object.assign(make("th", "", h), {scope: "col"})));
  const body = t.createTBody();
  for (const line of lines) {
    const row = body.insertRow();
    for (const cell of line)
      row.insertCell().append(cell);
  }
  return box;
}

function drawNamed() {
  if (!shown.named)
    return [];
  const pair = make("div", "pair");
  ["Highest means, of tokens seen twice or more", "Lowest means, likewise"].forEach((title, i) => {
    if (shown.means[i].length)
      pair.append(table(title, ["token", "mean", "count"],
                        shown.means[i].map(m => [chip(m.token), short(m.mean), grouped(m.count)])));
  });
  ["Most correlated units of this hook point", "Units that fire together with it"].forEach((title, i) => {
    if (shown.related[i].length)
      pair.append(table(title, ["unit", "Pearson r", "co-firing"],
                        shown.related[i].map(m => ["N" + m.unit, short(m.r), short(m.cofire)])));
  });
  return [pair];
}

// --- the whole

function button(text, title, disabled, act) {
  const b = make("button", "", text);
  b.type = "button";
  b.title = title;
  b.disabled = disabled;
  b.addEventListener("click", act);
  return b;
}

function drawBar() {
  const bar = make("div", "bar"), t = head.tables[columns.table[opened]], at = order.indexOf(opened);
  const title = bar.appendChild(make("h2", "", nameOf(opened)));
  title.append(make("span", "", t.hook + (t.site !== t.hook ? "  (" + t.site + ")" : "")));
  bar.append(button("← Previous", "Previous neuron of the list", at <= 0, () => step(-1)),
             button("Next →", "Next neuron of the list", at < 0 || at + 1 >= order.length, () => step(1)),
             button(allExpanded ? "Collapse" : "Expand", "Texts around the places (e)", false, toggleAll),
             button("Close", "Back to the list (Esc)", false, close));
  return bar;
}

// Draws the opened neuron again, after what is shown of it has changed.
function redraw() {
  if (opened < 0)
    return;
  const pair = make("div", "pair"), rest = make("div", "pair");
  for (const name of head.sections)
    (name === "top" || name === "bottom" || name === "abs" ? pair : rest).append(drawSection(name));
  hideTip();
  $("detail").replaceChildren(drawBar(), drawStats(), drawHistogram(), ...drawWeights(), pair, ...drawNamed(), rest);
}
