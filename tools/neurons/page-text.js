// Text: tokens, stretches of documents, and what is drawn. Text of the corpus enters the page as textContent only.

const tokens = once(() => {
  const r = new Reader(bytesOf(block("tokens"))), n = r.count();
  const id = new Int32Array(n), special = new Uint8Array(n), begin = new Uint32Array(n), end = new Uint32Array(n);
  for (let i = 0; i < n; i++) {
    id[i] = r.count();
    const head = r.count();
    special[i] = head % 2;
    begin[i] = r.at;
    end[i] = r.at += Math.floor(head / 2);
  }
  return {id, special, bytes: i => r.bytes.subarray(begin[i], end[i])};
});

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

// --- bytes as characters

// Length of the valid UTF-8 sequence at i, 0: none. Nothing overlong, no surrogates.
function sequence(b, i) {
  const c = b[i];
  const n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
  if (n === 0 || i + n > b.length)
    return 0;
  for (let j = 1; j < n; j++)
    if ((b[i + j] & 0xc0) !== 0x80)
      return 0;
  const low = b[i + 1];
  const bad = c === 0xe0 && low < 0xa0 || c === 0xed && low > 0x9f || c === 0xf0 && low < 0x90 ||
              c === 0xf4 && low > 0x8f;
  return bad ? 0 : n;
}

// What acts, breaks a line, turns text around, or cannot be seen: shown as bytes. As in printable.c.
const unseen = new RegExp("[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e" +
                          "\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\u{e0001}-\\u{e007f}]", "u");
const letters = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"};
const utf8 = new TextDecoder("utf-8", {ignoreBOM: true});

function hex(bytes) {
  return Array.from(bytes, x => "\\x" + x.toString(16).padStart(2, "0")).join("");
}

// Bytes as parts to draw: {text, escape: true where it stands for something else}.
function parts(b) {
  const out = [];
  const put = (text, escape) => {
    const last = out[out.length - 1];
    if (last && last.escape === escape)
      last.text += text;
    else
      out.push({text, escape});
  };
  for (let i = 0, n; i < b.length; i += n || 1) {
    n = sequence(b, i);
    const c = n ? utf8.decode(b.subarray(i, i + n)) : "";
    if (letters[c])
      put(letters[c], true);
    else if (n === 0 || unseen.test(c))
      put(hex(b.subarray(i, i + (n || 1))), true);
    else
      put(c, false);
  }
  return out;
}

function joined(from, to) {
  const all = [];
  for (let i = from; i < to; i++)
    all.push(...tokens().bytes(stream()[i]));
  return Uint8Array.from(all);
}

// How many tokens from `from` on (before `to`) make one piece: neighbours that share a character. A special token: one.
function pieceLength(from, to) {
  const special = i => tokens().special[stream()[i]];
  if (special(from))
    return 1;
  for (let n = 1; ; n++) {
    let more = from + n; // three tokens more can end a character
    while (more < to && more < from + n + 3 && !special(more))
      more++;
    const b = joined(from, from + n), ahead = joined(from, more);
    let i = 0;
    while (i < b.length)
      i += sequence(ahead, i) || 1;
    if (i === b.length || from + n >= more)
      return n;
  }
}

// The pieces of tokens [from, to), whole characters where their stretch has them.
function pieces(from, to) {
  const s = stretchOf(from), out = [];
  let i = Math.max(s.at, from - 3);
  while (i < to) {
    const n = pieceLength(i, s.end);
    if (i + n > from)
      out.push({from: i, n});
    i += n;
  }
  return out;
}

function pieceText(from, n) {
  const b = joined(from, from + n);
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
