// Tokens as text. Text of a corpus enters a page as textContent only.
//
//   tokens     the tokens that occur: id, 2 * bytes + special, the bytes

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
const unseen = new RegExp("[\\u0000-\\u001f\\u007f-\\u00a0\\u00ad\\u034f\\u061c\\u115f\\u1160\\u1680\\u17b4\\u17b5\\u180e" +
                          "\\u2000-\\u200b\\u200e\\u200f\\u2028-\\u202f\\u205f-\\u206f\\u2800\\u3000\\u3164\\ufeff" +
                          "\\uffa0\\ufff9-\\ufffb\\u{e0001}-\\u{e007f}]", "u");
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

function drawBytes(e, bytes, id) {
  if (!bytes.length)
    e.append(make("span", "escape", "<#" + id + ">"));
  for (const part of parts(bytes))
    e.append(part.escape ? make("span", "escape", part.text) : part.text);
}

// Bytes of tokens [from, to) of a text, one after the other. tokenAt(i): the text's i-th token, an index into tokens().
function joined(from, to, tokenAt) {
  const all = [];
  for (let i = from; i < to; i++)
    all.push(...tokens().bytes(tokenAt(i)));
  return Uint8Array.from(all);
}

// How many tokens from `from` on (before `to`) make one piece: neighbours that share a character. A special token: one.
function pieceLength(from, to, tokenAt) {
  const special = i => tokens().special[tokenAt(i)];
  if (special(from))
    return 1;
  for (let n = 1; ; n++) {
    let more = from + n; // three tokens more can end a character
    while (more < to && more < from + n + 3 && !special(more))
      more++;
    const b = joined(from, from + n, tokenAt), ahead = joined(from, more, tokenAt);
    let i = 0;
    while (i < b.length)
      i += sequence(ahead, i) || 1;
    if (i === b.length || from + n >= more)
      return n;
  }
}
