// Elements, and numbers as text.

const $ = id => document.getElementById(id);

function make(tag, className, text) {
  const e = document.createElement(tag);
  if (className)
    e.className = className;
  if (text !== undefined)
    e.textContent = text;
  return e;
}

function option(select, value, text) {
  const o = $(select).appendChild(make("option", "", text));
  o.value = value;
}

// --- numbers

function short(x) {
  if (!Number.isFinite(x))
    return "–";
  const a = Math.abs(x);
  return a === 0 ? "0" : a >= 1e5 || a < 1e-3 ? x.toExponential(1) : a >= 1000 ? x.toFixed(0) : x.toPrecision(3);
}

// A float in the fewest digits that give it back.
function exact(x) {
  if (!Number.isFinite(x))
    return String(x);
  for (let digits = 1; digits < 9; digits++) {
    const text = x.toPrecision(digits);
    if (Math.fround(Number(text)) === Math.fround(x))
      return String(Number(text));
  }
  return String(Number(x.toPrecision(9)));
}

function percent(x) {
  return !Number.isFinite(x) ? "–" : (x >= 0.001 && x < 0.1 ? (100 * x).toFixed(2) : short(100 * x)) + "%";
}

const grouped = n => n.toLocaleString("en-US");

function svg(tag, attributes, text) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes))
    e.setAttribute(name, value);
  if (text !== undefined)
    e.textContent = text;
  return e;
}
