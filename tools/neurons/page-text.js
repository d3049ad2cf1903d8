// Text: tokens, stretches of documents, and what is drawn. Text of the corpus enters the page as textContent only.

const stretches = once(() => {
  const r = new Reader(bytesOf(block("stretches"))), out = [];
  let at = 0;
  for (let i = r.count(); i > 0; i--) {
    const doc = r.count(), pos = r.count(), last = r.count(), n = Math.floor(last / 4);
    out.push({doc, pos, at, end: at + n, begins: last % 2 === 1, ends: last % 4 > 1});
    at += n;
  }
  return out;
});

const stream = once(() => {
  const r = new Reader(bytesOf(block("stream"))), all = stretches();
  const out = new Uint32Array(all.length ? all[all.length - 1].end : 0);
  for (let i = 0; i < out.length; i++)
    out[i] = r.count();
  return out;
});

const streamAt = i => stream()[i];

function stretchOf(at) {
  const all = stretches();
  let low = 0, high = all.length;
  while (low < high) {
    const mid = low + high >> 1;
    if (all[mid].end <= at)
      low = mid + 1;
    else
      high = mid;
  }
  return all[low];
}

// A place: document and position of a hit.
function placeOf(hit) {
  if (hit.at < 0)
    return {doc: hit.doc, pos: hit.pos};
  const s = stretchOf(hit.at);
  return {doc: s.doc, pos: s.pos + hit.at - s.at};
}

// Tokens [from, to) of the stream that lie at most so far from a place, in its stretch.
function windowOf(at, before, after) {
  const s = stretchOf(at);
  return {from: Math.max(s.at, at - before), to: Math.min(s.end, at + after + 1), stretch: s};
}

// The pieces of tokens [from, to), whole characters where their stretch has them.
function pieces(from, to) {
  const s = stretchOf(from), out = [];
  let i = Math.max(s.at, from - 3);
  while (i < to) {
    const n = pieceLength(i, s.end, streamAt);
    if (i + n > from)
      out.push({from: i, n});
    i += n;
  }
  return out;
}

function pieceText(from, n) {
  const b = joined(from, from + n, streamAt);
  return b.length ? parts(b).map(p => p.text).join("") : "<#" + tokens().id[stream()[from]] + ">";
}

// --- search

// The stream as text, stretch by stretch: charAt[i] is where token i begins in the text of its stretch (a token that
// begins inside a character: that character).
const texts = once(() => {
  const charAt = new Uint32Array(stream().length + 1), begun = [];
  const text = stretches().map(s => {
    const bytes = [];
    for (let i = s.at; i < s.end; i++) {
      begun.push(bytes.length);
      for (const b of tokens().bytes(stream()[i]))
        bytes.push(b);
    }
    let at = 0, chars = 0, out = "", token = s.at;
    const b = Uint8Array.from(bytes);
    while (at < b.length) {
      const n = sequence(b, at), c = n ? utf8.decode(b.subarray(at, at + n)) : "\ufffd";
      for (; token < s.end && begun[token] < at + (n || 1); token++)
        charAt[token] = chars;
      out += c;
      chars += c.length;
      at += n || 1;
    }
    charAt.fill(chars, token, s.end);
    return out;
  });
  return {text, charAt};
});

// Where a text occurs. nextEnd[i]: the lowest last token of an occurrence that begins at token i or behind it, in the
// same stretch; found[i]: token i is part of one. Small letters find capitals too.
function occurrences(what) {
  const n = stream().length, nextEnd = new Uint32Array(n + 1).fill(0xffffffff), found = new Uint8Array(n);
  const small = what === what.toLowerCase(), {text, charAt} = texts();
  stretches().forEach((s, k) => {
    let t = text[k];
    const lower = small ? t.toLowerCase() : t;
    t = lower.length === t.length ? lower : t; // few letters change their length: then as it stands
    let first = s.at, from = t.indexOf(what);
    for (; from >= 0; from = t.indexOf(what, from + 1)) {
      while (first + 1 < s.end && charAt[first + 1] <= from)
        first++;
      let last = first;
      while (last + 1 < s.end && charAt[last + 1] < from + what.length)
        last++;
      nextEnd[first] = Math.min(nextEnd[first], last);
      found.fill(1, first, last + 1);
    }
    for (let i = s.end - 2; i >= s.at; i--)
      nextEnd[i] = Math.min(nextEnd[i], nextEnd[i + 1]);
  });
  return {nextEnd, found};
}
