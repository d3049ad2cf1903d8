// One token: the text, coloured by what it reads and what reads it, and both as lists.

const MOST = 10; // of a list

function drawText() {
  const c = columnsOf(shown), text = make("div", "");
  for (let i = 0; i < shown.n; i++) {
    const e = text.appendChild(make("span", "token", tokenName(shown, i)));
    e.id = "t" + i;
    e.setAttribute("role", "option");
    e.dataset.at = i;
    if (c.token[i] >= 0 && tokens().special[c.token[i]])
      e.classList.add("special");
    if (c.row[i] < 0)
      e.classList.add("mute");
  }
  $("text").replaceChildren(...text.childNodes);
}

// Orange: what the token reads; blue: what reads it.
function colourText() {
  const most = largest(large);
  for (let i = 0; i < shown.n; i++) {
    const e = $("t" + i), x = i <= looked ? weight(shown, large, looked, i) : weight(shown, large, i, looked);
    const s = strengthOf(x, most);
    e.style.background = Number.isNaN(s) || s < .02 ? "" : colourOf(i <= looked ? s : -s);
    e.classList.toggle("here", i === cursor.at);
    e.classList.toggle("looked", i === looked);
    e.setAttribute("aria-selected", i === cursor.at);
  }
  $("text").setAttribute("aria-activedescendant", "t" + cursor.at);
}

// The tokens with the largest weights: [{i, x}].
function best(from, to, x) {
  const all = [];
  for (let i = from; i < to; i++)
    if (x(i) > 0)
      all.push({i, x: x(i)});
  return all.sort((a, b) => b.x - a.x || a.i - b.i).slice(0, MOST);
}

function drawList(title, list, id, none) {
  const t = make("table", "tops");
  t.id = id;
  t.createCaption().textContent = title;
  const tr = t.createTHead().insertRow();
  for (const h of ["", "token", "share", "weight"])
    tr.append(Object.assign(make("th", "", h), {scope: "col"}));
  const body = t.createTBody();
  for (const {i, x} of list) {
    const row = body.insertRow(), token = columnsOf(shown).token[i];
    row.dataset.at = i;
    row.insertCell().textContent = posName(shown, i);
    row.insertCell().append(token < 0 ? "?" : chip(token));
    const share = row.insertCell();
    share.style.setProperty("--share", x);
    share.append(make("span", "", percent(x)));
    row.insertCell().textContent = exact(x);
  }
  if (!list.length)
    body.insertRow().append(Object.assign(make("td", "plain", none), {colSpan: 4}));
  return t;
}

function drawToken() {
  const i = looked, c = columnsOf(shown), title = make("h2", "", headName(large));
  title.append(make("span", "", "position " + posName(shown, i) + ", "));
  title.lastChild.append(c.token[i] < 0 ? "a token that is not known" : chip(c.token[i]));
  const reads = c.row[i] < 0 ? [] : best(0, i + 1, k => weight(shown, large, i, k));
  const readers = best(i, shown.n, j => weight(shown, large, j, i));
  const none = c.row[i] < 0 ? "Its own row was not asked for." : "Nothing.";
  $("cell").replaceChildren(title, drawList("It reads", reads, "reads", none),
                            drawList("It is read by", readers, "readers", "No token that was asked for."));
}
