// Tokens, one at a time.

// In a cell: a space that a token begins with can be seen.
const texts = new Map();
function tokenText(token) {
  if (!texts.has(token)) {
    const b = tokens().bytes(token), text = parts(b).map(p => p.text).join("");
    texts.set(token, b.length ? text.replace(/^ /, "·") : "<#" + tokens().id[token] + ">");
  }
  return texts.get(token);
}

// The first words of a text, for a list to choose from: what its tokens stand for, special ones left out.
function wordsOf(list) {
  const bytes = [...list].filter(t => t >= 0 && !tokens().special[t]).flatMap(t => [...tokens().bytes(t)]);
  return parts(Uint8Array.from(bytes)).map(p => p.text).join("").trim().slice(0, 40);
}

// A token as it is: its bytes, and on hover its number.
function chip(token) {
  const e = make("span", "chip"), b = tokens().bytes(token);
  drawBytes(e, b, tokens().id[token]);
  e.title = "token " + tokens().id[token] + (tokens().special[token] ? ", special" : "") + "  " + hex(b);
  return e;
}
