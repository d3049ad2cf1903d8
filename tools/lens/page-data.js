// The data: a head of JSON and blocks of base64, decoded when they are first looked at.
//
//   head    what was measured, and how: model, lens, statistics, lines (places of the stream, the earliest first; the
//           last one is the final row)
//   block   up to 64 positions of a document, three parts with a space between them:
//             places  n position (the first one; then distances), n token, n token that follows, n token asked about
//             tops    [line][position][k] token, and where there is one its log-probability (float32)
//             values  [statistic][line][position] float32
//   tokens  text.js
//
// A token is 1 + its index in tokens, 0: none.

const head = JSON.parse(block("head"));
const lines = head.lines.length;
const finalLine = lines - 1;

// Documents, as runs of blocks: {doc, n, blocks: [{first, n, parts}]}.
const documents = [];
for (const e of document.querySelectorAll("script.block")) {
  const doc = Number(e.dataset.doc), n = Number(e.dataset.n);
  if (!documents.length || documents[documents.length - 1].doc !== doc)
    documents.push({doc, n: 0, blocks: []});
  const d = documents[documents.length - 1];
  d.blocks.push({first: d.n, n, part: i => e.textContent.split(" ")[i]});
  d.n += n;
}

function readPlaces(b, out) {
  const r = new Reader(bytesOf(b.part(0)));
  let pos = 0;
  for (let i = 0; i < b.n; i++)
    out.pos[b.first + i] = pos += r.count();
  for (const column of [out.id, out.next, out.target])
    for (let i = 0; i < b.n; i++)
      column[b.first + i] = r.count() - 1;
}

function readValues(b, out, n) {
  const bytes = bytesOf(b.part(2)), x = new Float32Array(bytes.slice().buffer);
  head.stats.forEach((name, s) => {
    for (let l = 0; l < lines; l++)
      out.stat[name].set(x.subarray((s * lines + l) * b.n, (s * lines + l + 1) * b.n), l * n + b.first);
  });
}

// A document's columns pos, id, next, target [n], and stat[name] [lines, n].
function columnsOf(d) {
  if (!d.columns) {
    const tokenColumn = () => new Int32Array(d.n);
    d.columns = {pos: new Float64Array(d.n), id: tokenColumn(), next: tokenColumn(), target: tokenColumn(), stat: {}};
    for (const name of head.stats)
      d.columns.stat[name] = new Float32Array(lines * d.n);
    for (const b of d.blocks) {
      readPlaces(b, d.columns);
      readValues(b, d.columns, d.n);
    }
  }
  return d.columns;
}

// Where the first tokens of a document stand, without reading all of it.
function beginningOf(d) {
  const b = d.blocks[0], out = {pos: [], id: [], next: [], target: []};
  readPlaces({...b, first: 0}, out);
  return out;
}

function blockAt(d, i) {
  let low = 0, high = d.blocks.length - 1;
  while (low < high) {
    const mid = low + high + 1 >> 1;
    if (d.blocks[mid].first <= i)
      low = mid;
    else
      high = mid - 1;
  }
  return d.blocks[low];
}

// The likeliest tokens of a cell, best first: {token, logprob}.
function topsOf(d, line, i) {
  const b = blockAt(d, i), k = head.k;
  if (!b.token) {
    const r = new Reader(bytesOf(b.part(1)));
    b.token = new Int32Array(lines * b.n * k);
    b.logprob = new Float32Array(lines * b.n * k);
    for (let j = 0; j < b.token.length; j++) {
      b.token[j] = r.count() - 1;
      b.logprob[j] = b.token[j] < 0 ? NaN : r.f32();
    }
  }
  const from = (line * b.n + i - b.first) * k, out = [];
  for (let j = from; j < from + k && b.token[j] >= 0; j++)
    out.push({token: b.token[j], logprob: b.logprob[j]});
  return out;
}
