// Maps as pictures: all heads small, one head large.

let shown = maps[0]; // undefined: there is none
let large = 0;       // index of the head that is large
const cursor = {at: 0};
let looked = 0;      // the token whose weights are shown: under the pointer, else the cursor's

// The largest weight that colours are measured by: of the whole head, without the first token of the window, which
// many heads read when they read nothing else, unless that is wished.
function largest(h) {
  const c = columnsOf(shown), p = patternOf(shown, h), from = $("first").checked || shown.n === 1 ? 0 : 1;
  let most = 0;
  for (let q = 0; q < shown.queries; q++)
    for (let k = from; k <= c.query[q]; k++)
      most = Math.max(most, p[c.at[q] + k] || 0);
  return most || 1;
}

const strengthOf = (x, most) => Number.isNaN(x) ? NaN : Math.min(1, x / most);

function rgbOf(strength) {
  return colourOf(strength).match(/\d+/g).map(Number);
}

// A pattern in so many pixels: each the largest of its weights.
function paint(canvas, h, wide, high) {
  const c = columnsOf(shown), p = patternOf(shown, h), most = largest(h), x = new Float32Array(wide * high).fill(NaN);
  for (let q = 0; q < shown.queries; q++) {
    const y = Math.floor(q * high / shown.queries);
    for (let k = 0; k <= c.query[q]; k++) {
      const i = y * wide + Math.floor(k * wide / shown.n), w = p[c.at[q] + k];
      if (!(x[i] >= w))
        x[i] = w;
    }
  }
  canvas.width = wide;
  canvas.height = high;
  const context = canvas.getContext("2d"), image = context.createImageData(wide, high);
  for (let i = 0; i < x.length; i++)
    if (!Number.isNaN(x[i]))
      image.data.set([...rgbOf(strengthOf(x[i], most)), 255], 4 * i);
  context.putImageData(image, 0, 0);
}

// --- all heads

const THUMB = 44;
const thumbs = [];

function makeHeads() {
  let layer = -1, row = null;
  head.heads.forEach(([l], h) => {
    if (l !== layer) {
      layer = l;
      row = $("heads").appendChild(make("div", "layer"));
      row.append(make("span", "", "L" + l));
    }
    const b = row.appendChild(make("button", "head"));
    b.type = "button";
    b.title = headName(h);
    b.setAttribute("aria-label", "Head " + headName(h));
    b.tabIndex = -1;
    b.append(make("canvas"));
    b.addEventListener("click", () => setHead(h));
    thumbs.push(b);
  });
}

let painting = 0;
function paintHeads() {
  const mine = ++painting;
  const some = from => {
    if (mine !== painting || !shown)
      return;
    const until = performance.now() + 20;
    let h = from;
    for (; h < thumbs.length && performance.now() < until; h++)
      paint(thumbs[h].firstChild, h, Math.min(THUMB, shown.n), Math.min(THUMB, shown.queries));
    if (h < thumbs.length)
      setTimeout(some, 0, h);
    else
      performance.mark("heads-painted");
  };
  some(0);
}

// --- one head

const CELL = {least: 3, most: 22};

function cellSize() {
  const room = Math.min($("large").clientWidth - 4, 900);
  return Math.max(CELL.least, Math.min(CELL.most, Math.floor(room / shown.n)));
}

function paintLarge() {
  const canvas = $("canvas"), size = cellSize();
  paint(canvas, large, shown.n, shown.queries);
  canvas.style.width = shown.n * size + "px";
  canvas.style.height = shown.queries * size + "px";
  canvas.setAttribute("aria-label", "Pattern of " + headName(large) +
                      ": rows are tokens that read, columns tokens that are read");
  drawCross();
}

// The row and the column of the token that is looked at.
function drawCross() {
  const size = cellSize(), q = columnsOf(shown).row[looked];
  $("row").hidden = q < 0;
  $("row").style.cssText = "top:" + q * size + "px;width:" + shown.n * size + "px;height:" + size + "px";
  $("column").style.cssText = "left:" + looked * size + "px;height:" + shown.queries * size + "px;width:" + size + "px";
}

// [query, key] under the pointer.
function cellAt(event) {
  const box = $("canvas").getBoundingClientRect(), size = cellSize();
  const q = Math.floor((event.clientY - box.top) / size), k = Math.floor((event.clientX - box.left) / size);
  const c = columnsOf(shown);
  return q >= 0 && q < shown.queries && k >= 0 && k <= c.query[q] ? [c.query[q], k] : null;
}
