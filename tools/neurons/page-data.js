// The data: a head of JSON and blocks of base64, decoded when they are first looked at.
//
//   head       what was searched, and how: model, text, masks, options, tables (hook points)
//   rows       each neuron, 72 bytes: mean, sd, skew, kurtosis, density, effective (float64); min, max (float32); unit,
//              length of its record, clusters, table (uint32)
//   records    of each neuron: its lists and samples, counts, histogram, weights (record() below)
//   tokens     the tokens that occur: id, 2 * bytes + special, the bytes
//   stream     the text that is shown, as indexes into tokens
//   stretches  where the parts of the stream stand: document, position, 4 * length + 2 * ends + begins
//
// Numbers are little endian; counts take seven bits a byte, the lowest first.
const head = JSON.parse(document.getElementById("head").textContent);

// --- neurons

const columns = {};
const total = head.neurons;
const recordAt = new Float64Array(total + 1);
let largest = 0; // magnitude of all neurons

(function () {
  const bytes = bytesOf(block("rows")), view = bytes.slice().buffer;
  const doubles = new Float64Array(view), floats = new Float32Array(view), integers = new Uint32Array(view);
  ["mean", "sd", "skew", "kurtosis", "density", "effective"].forEach((name, i) => {
    const column = columns[name] = new Float64Array(total);
    for (let n = 0; n < total; n++)
      column[n] = doubles[9 * n + i];
  });
  ["min", "max"].forEach((name, i) => {
    const column = columns[name] = new Float32Array(total);
    for (let n = 0; n < total; n++)
      column[n] = floats[18 * n + 12 + i];
  });
  ["unit", "length", "clusters", "table"].forEach((name, i) => {
    const column = columns[name] = new Uint32Array(total);
    for (let n = 0; n < total; n++)
      column[n] = integers[18 * n + 14 + i];
  });
  for (let n = 0; n < total; n++) {
    recordAt[n + 1] = recordAt[n] + columns.length[n];
    largest = Math.max(largest, magnitude(n));
  }
})();

// The largest magnitude of a neuron; 0 where it has no value.
function magnitude(n) {
  return Math.max(Math.abs(columns.max[n]), Math.abs(columns.min[n])) || 0;
}

// "L3" where one hook point of the layer was searched; else with the site; outside of the layers the hook's name.
const tableNames = head.tables.map(t => {
  const alone = head.tables.filter(other => other.layer === t.layer).length === 1;
  return t.layer < 0 ? t.hook : alone ? "L" + t.layer : "L" + t.layer + " " + t.site;
});

function nameOf(n) {
  const t = columns.table[n], name = tableNames[t], unit = "N" + columns.unit[n];
  return name === "L" + head.tables[t].layer ? name + unit : name + " " + unit;
}

const byName = once(() => {
  const map = new Map();
  for (let n = 0; n < total; n++)
    map.set(hashOf(n), n);
  return map;
});

function hashOf(n) {
  return encodeURIComponent(nameOf(n).replace(/ /g, "."));
}

// --- records

const recordText = once(() => block("records"));

// Bytes [from, to) of the records: base64 can be cut at every third byte.
function recordBytes(from, to) {
  const first = Math.floor(from / 3), end = Math.ceil(to / 3);
  return bytesOf(recordText().slice(4 * first, 4 * end)).subarray(from - 3 * first, to - 3 * first);
}

function readHit(r, named) {
  const hit = {value: r.f32(), at: r.count() - 1};
  if (hit.at < 0) {
    hit.doc = r.count();
    hit.pos = r.count();
  }
  hit.count = r.count();
  hit.cluster = r.count() - 1;
  if (named) {
    const n = r.count();
    hit.lead = n ? r.count() : 0;
    hit.values = Array.from({length: n}, () => r.f32());
  }
  return hit;
}

const HALVES = 24; // of octaves, columns of the histogram on either side

// Everything of a neuron. lists: by the names of head.sections.
function record(n) {
  const r = new Reader(recordBytes(recordAt[n], recordAt[n + 1]));
  const out = {named: r.count() > 0, lists: {}};
  for (const section of head.sections)
    out.lists[section] = r.list(() => readHit(r, out.named));
  out.count = r.count();
  out.nonfinite = r.count();
  out.above = head.thresholds.map(() => r.count());
  out.exponent = r.count() - 20;
  out.histogram = Array.from({length: 2 * HALVES + 1}, () => r.count());
  out.weights = Array.from({length: 6}, () => r.list(() => ({token: r.count(), score: r.f32()})));
  out.followed = r.count();
  out.agree = r.count();
  if (out.named) {
    out.means = [0, 1].map(() => r.list(() => ({token: r.count(), count: r.count(), mean: r.f64()})));
    out.related = [0, 1].map(() => r.list(() => ({unit: r.count(), r: r.f64(), cofire: r.f64()})));
  }
  return out;
}

// The places of one section for all neurons: at[begin[n] .. begin[n + 1]) in the stream, -1 without text.
const placesOf = {};
function places(section) {
  if (placesOf[section])
    return placesOf[section];
  const r = new Reader(bytesOf(recordText()));
  const begin = new Uint32Array(total + 1), at = [];
  for (let n = 0; n < total; n++) {
    r.at = recordAt[n];
    const named = r.count() > 0;
    for (const name of head.sections) {
      for (let i = r.count(); i > 0; i--) {
        const hit = readHit(r, named);
        if (name === section)
          at.push(hit.at);
      }
      if (name === section)
        break;
    }
    begin[n + 1] = at.length;
  }
  return placesOf[section] = {begin, at: Int32Array.from(at)};
}
