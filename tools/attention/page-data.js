// The data: a head of JSON and blocks of base64, decoded when they are first looked at.
//
//   head    what was looked at, and how: model, text, heads ([layer, head])
//   map     a window of a document: for each of n tokens the token (1 + its index in tokens; 0: not known) and 1 + its
//           position in the document (0: none); then the indices of the tokens that read (queries)
//   pM-H    weights of head H in map M: of each query those of all tokens up to it, float32
//   tokens  text.js

const head = JSON.parse(block("head"));
const headName = h => "L" + head.heads[h][0] + "H" + head.heads[h][1];

const maps = [...document.querySelectorAll("script.map")].map((e, number) => ({
  number, doc: Number(e.dataset.doc), n: Number(e.dataset.n), queries: Number(e.dataset.queries),
  text: e, patterns: [],
}));

// token, pos [n] (-1: none); query [queries]; row[i] which query a token is (-1: none); at [queries] where a query's
// weights begin in a pattern.
function columnsOf(m) {
  if (!m.columns) {
    const r = new Reader(bytesOf(m.text.textContent));
    const c = m.columns = {token: new Int32Array(m.n), pos: new Float64Array(m.n), query: new Int32Array(m.queries),
                           row: new Int32Array(m.n).fill(-1), at: new Int32Array(m.queries)};
    for (let i = 0; i < m.n; i++) {
      c.token[i] = r.count() - 1;
      c.pos[i] = r.count() - 1;
    }
    for (let q = 0, at = 0; q < m.queries; q++) {
      c.query[q] = r.count();
      c.row[c.query[q]] = q;
      c.at[q] = at;
      at += c.query[q] + 1;
    }
  }
  return m.columns;
}

function patternOf(m, h) {
  if (!m.patterns[h])
    m.patterns[h] = new Float32Array(bytesOf(block("p" + m.number + "-" + h)).slice().buffer);
  return m.patterns[h];
}

// How much token i reads of token k; NaN where that is not known, 0 where k comes later.
function weight(m, h, i, k) {
  const c = columnsOf(m), q = c.row[i];
  return q < 0 ? NaN : k > i ? 0 : patternOf(m, h)[c.at[q] + k];
}

// What is drawn for each token; of neighbours that share a character the first has it, and the others "…".
function namesOf(m) {
  if (!m.names) {
    const {token} = columnsOf(m), tokenAt = i => token[i];
    m.names = [];
    for (let i = 0; i < m.n;) {
      let end = i;
      while (end < m.n && end < i + 8 && token[end] >= 0)
        end++;
      const n = end > i ? pieceLength(i, end, tokenAt) : 1;
      m.names.push(n > 1 ? parts(joined(i, i + n, tokenAt)).map(p => p.text).join("").replace(/^ /, "·")
                         : token[i] < 0 ? "?" : tokenText(token[i]));
      for (let k = 1; k < n; k++)
        m.names.push("…");
      i += n;
    }
  }
  return m.names;
}

const tokenName = (m, i) => namesOf(m)[i];
const posName = (m, i) => columnsOf(m).pos[i] < 0 ? "BOS" : String(columnsOf(m).pos[i]);
