// One cell: where it is, its statistics, its likeliest tokens.

// The text around a position, with the position's token marked.
function drawText(at) {
  const e = make("p", "text"), c = columnsOf(shown), from = Math.max(0, at - 12), to = Math.min(shown.n, at + 5);
  if (c.pos[from] > 0)
    e.append(make("span", "edge", "…"));
  let last = -1;
  for (const piece of piecesAround(from, to)) {
    if (piece.from + piece.n <= from)
      continue;
    if (last >= 0 && c.pos[piece.from] !== c.pos[last] + 1)
      e.append(make("span", "edge", " … "));
    last = piece.from + piece.n - 1;
    const s = make("span", at >= piece.from && at <= last ? "hit" : "");
    if (c.id[piece.from] >= 0)
      drawBytes(s, joined(piece.from, last + 1, i => c.id[i]), tokens().id[c.id[piece.from]]);
    e.append(s);
  }
  if (to < shown.n || c.next[shown.n - 1] >= 0)
    e.append(make("span", "edge", "…"));
  return e;
}

function drawWhere(at) {
  const c = columnsOf(shown), dl = make("dl", "where");
  const put = (name, token) => {
    dl.append(make("dt", "", name));
    dl.appendChild(make("dd")).append(token >= 0 ? chip(token) : make("span", "plain", "nothing"));
  };
  put("stands here", c.id[at]);
  put("comes next", c.next[at]);
  if (c.target[at] >= 0)
    put("asked about", c.target[at]);
  return dl;
}

function drawStatistics(line, at) {
  const t = make("table", "statistics"), body = t.createTBody();
  t.createCaption().textContent = "Statistics";
  for (const name of head.stats) {
    const row = body.insertRow(), value = valueAt(name, line, at), none = name === "rank" && value === 0;
    row.dataset.stat = name;
    row.title = statistics[name].long;
    row.classList.toggle("chosen", name === stat);
    row.append(Object.assign(make("th", "", statistics[name].title), {scope: "row"}));
    row.insertCell().textContent = Number.isNaN(value) || none ? "–" : exact(value);
  }
  return t;
}

function drawTops(line, at) {
  const t = make("table", "tops"), next = columnsOf(shown).next[at], target = columnsOf(shown).target[at];
  t.createCaption().textContent = "Likeliest to come next";
  const tr = t.createTHead().insertRow();
  for (const h of ["", "token", "probability", "ln p"])
    tr.append(Object.assign(make("th", "", h), {scope: "col"}));
  const body = t.createTBody();
  topsOf(shown, line, at).forEach((top, i) => {
    const row = body.insertRow(), p = Math.exp(top.logprob);
    row.dataset.token = tokens().id[top.token];
    row.insertCell().textContent = i + 1;
    const name = row.insertCell();
    if (top.token === next)
      name.append(Object.assign(make("b", "", "*"), {title: "it does come next"}));
    name.append(chip(top.token));
    if (top.token === target)
      name.append(make("small", "", " asked about"));
    const share = row.insertCell();
    share.style.setProperty("--share", p);
    share.append(make("span", "", percent(p)));
    row.insertCell().textContent = exact(top.logprob);
  });
  return t;
}

function showCell(line, at) {
  if (!shown) {
    $("cell").replaceChildren();
    $("lines").hidden = true;
    return;
  }
  drawLines(line, at);
  const title = make("h2", "", head.lines[line].name + ", position " + columnsOf(shown).pos[at]);
  title.append(make("span", "", head.lines[line].hook));
  $("cell").replaceChildren(title, drawText(at), drawWhere(at), drawStatistics(line, at), drawTops(line, at));
}
