// The map: rows of the stream's places, columns of positions. As many cells exist as can be seen.

const ROW = 26, TOP = 46; // heights of a row and of the heading
const narrow = matchMedia("(max-width: 520px)");
const columnWidth = () => narrow.matches ? 66 : 84;
const nameWidth = 24 + 8 * Math.max(4, ...head.lines.map(l => l.name.length));

let shown = documents[0]; // the document; undefined: there is none
let stat = head.shown;
let scale = null;         // of that statistic in that document
let lastOnTop = false;
const cursor = {line: 0, at: 0}; // at: index among the document's positions
let drawn = null;                // {left, right, top, bottom} of the cells that exist

const lineOfRow = row => lastOnTop ? finalLine - row : row;
const valueAt = (name, line, at) => columnsOf(shown).stat[name][line * shown.n + at];

// --- columns

// Neighbours that share a character, around [from, to): [{from, n}]. Positions that are left out cut them.
function piecesAround(from, to) {
  const c = columnsOf(shown), tokenAt = i => c.id[i], out = [];
  for (let i = Math.max(0, from - 3); i < to;) {
    let end = i + 1;
    while (end < shown.n && end < i + 8 && c.pos[end] === c.pos[end - 1] + 1 && c.id[end] >= 0)
      end++;
    const n = c.id[i] < 0 ? 1 : pieceLength(i, end, tokenAt);
    out.push({from: i, n});
    i += n;
  }
  return out;
}

function pieceText(piece) {
  const c = columnsOf(shown);
  if (piece.n === 1)
    return c.id[piece.from] < 0 ? "" : tokenText(c.id[piece.from]);
  return parts(joined(piece.from, piece.from + piece.n, i => c.id[i])).map(p => p.text).join("").replace(/^ /, "·");
}

// --- cells

function place(e, role, left, width, column) {
  e.setAttribute("role", role);
  e.setAttribute("aria-colindex", column);
  e.style.left = left + "px";
  e.style.width = width + "px";
  return e;
}

function drawCell(line, at) {
  const w = columnWidth(), e = place(make("span", "cell"), "gridcell", nameWidth + at * w, w, at + 2);
  const [top] = topsOf(shown, line, at), c = columnsOf(shown);
  const follows = top !== undefined && top.token === c.next[at];
  e.id = "c" + line + "-" + at;
  if (follows)
    e.append(make("b", "", "*"));
  e.append(top === undefined ? "–" : tokenText(top.token));
  e.style.background = colourOf(scale ? scale.strength(valueAt(stat, line, at)) : NaN);
  const here = line === cursor.line && at === cursor.at;
  e.classList.toggle("here", here);
  e.setAttribute("aria-selected", here);
  return e;
}

function drawHeading(left, right) {
  const row = make("div", "heading"), w = columnWidth(), c = columnsOf(shown);
  row.setAttribute("role", "row");
  row.setAttribute("aria-rowindex", 1);
  const corner = place(make("span", "corner", "row"), "columnheader", 0, nameWidth, 1);
  row.append(corner);
  for (const piece of piecesAround(left, right))
    for (let k = 0; k < piece.n; k++) {
      const at = piece.from + k;
      if (at < left || at >= right)
        continue;
      const e = place(make("span", "position"), "columnheader", nameWidth + at * w, w, at + 2);
      const number = e.appendChild(make("small", "", c.pos[at]));
      if (piece.n > 1)
        number.textContent += "  part " + (k + 1) + "/" + piece.n;
      const special = c.id[at] >= 0 && tokens().special[c.id[at]];
      e.append(make("span", special ? "special" : "", k === 0 ? pieceText(piece) : "…"));
      e.classList.toggle("here", at === cursor.at);
      row.append(e);
    }
  return row;
}

function drawRow(row, left, right) {
  const e = make("div", "line"), line = lineOfRow(row);
  e.setAttribute("role", "row");
  e.setAttribute("aria-rowindex", row + 2);
  e.style.top = TOP + row * ROW + "px";
  const name = place(make("span", "name", head.lines[line].name), "rowheader", 0, nameWidth, 1);
  name.title = head.lines[line].hook;
  name.classList.toggle("here", line === cursor.line);
  e.append(name);
  for (let at = left; at < right; at++)
    e.append(drawCell(line, at));
  return e;
}

// What can be seen, and a little more.
function visible() {
  const grid = $("grid"), w = columnWidth(), more = 6;
  const left = Math.floor(grid.scrollLeft / w), top = Math.floor(grid.scrollTop / ROW);
  return {left: Math.max(0, left - more), right: Math.min(shown.n, left + Math.ceil(grid.clientWidth / w) + more),
          top: Math.max(0, top - more), bottom: Math.min(lines, top + Math.ceil(grid.clientHeight / ROW) + more)};
}

function draw() {
  const grid = $("grid");
  if (!shown) {
    grid.replaceChildren(make("p", "plain", "No position was measured."));
    return;
  }
  const room = make("div", "room"), v = drawn = visible();
  room.setAttribute("role", "rowgroup");
  room.style.width = nameWidth + shown.n * columnWidth() + "px";
  room.style.height = TOP + lines * ROW + "px";
  room.append(drawHeading(v.left, v.right));
  for (let row = v.top; row < v.bottom; row++)
    room.append(drawRow(row, v.left, v.right));
  grid.replaceChildren(room);
  grid.setAttribute("aria-rowcount", lines + 1);
  grid.setAttribute("aria-colcount", shown.n + 1);
  grid.setAttribute("aria-activedescendant", "c" + cursor.line + "-" + cursor.at);
}

// Draws again where cells are missing that can be seen by now.
function drawMissing() {
  if (!shown)
    return;
  const grid = $("grid"), w = columnWidth();
  const left = Math.floor(grid.scrollLeft / w), right = Math.min(shown.n, left + Math.ceil(grid.clientWidth / w));
  const top = Math.floor(grid.scrollTop / ROW), bottom = Math.min(lines, top + Math.ceil(grid.clientHeight / ROW));
  if (!drawn || left < drawn.left || right > drawn.right || top < drawn.top || bottom > drawn.bottom)
    draw();
}

// Scrolls so that the cursor's cell can be seen.
function reveal() {
  const grid = $("grid"), w = columnWidth(), x = cursor.at * w, y = lineOfRow(cursor.line) * ROW;
  const wide = grid.clientWidth - nameWidth, high = grid.clientHeight - TOP;
  grid.scrollLeft = Math.min(x, Math.max(grid.scrollLeft, x + w - wide));
  grid.scrollTop = Math.min(y, Math.max(grid.scrollTop, y + ROW - high));
}
