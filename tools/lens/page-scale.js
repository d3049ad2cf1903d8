// Statistics: what they are, and how a value of one becomes a colour.

const asked = head.target === null ? "the row's own first token" : "the token asked about";
const statistics = {
  prob: {title: "Probability", long: "probability of " + asked, from: () => [0, 1]},
  logit: {title: "Logit", long: "logit of " + asked, from: between},
  rank: {title: "Rank", long: "rank of " + (head.target === null ? "the final row's first token" : asked) + ", from 1",
         from: v => [1, Math.max(10, quantile(v, .95))], log: true, down: true},
  entropy: {title: "Entropy", long: "entropy of the row's distribution, in nats", from: fromZero},
  kl: {title: "KL to final", long: "KL(final row || this row), in nats", from: fromZero},
  kl_prev: {title: "KL to previous", long: "KL(this row || the row before it), in nats", from: fromZero},
  jsd: {title: "JSD to final", long: "Jensen-Shannon divergence to the final row, in nats, <= ln 2", from: fromZero},
  ce: {title: "Cross-entropy", long: "minus ln p(the token that follows), in nats", from: fromZero},
  contrast: {title: "Contrast", long: "logit of " + shownToken(head.contrast[0]) + " minus logit of " +
             shownToken(head.contrast[1]), from: aroundZero, both: true},
};

function shownToken(text) {
  return text === undefined ? "" : "'" + text + "'";
}

// Of ascending numbers.
function quantile(v, q) {
  const at = q * (v.length - 1), i = Math.floor(at);
  return v[i] + (at - i) * ((i + 1 < v.length ? v[i + 1] : v[i]) - v[i]);
}

function between(v) {
  return [quantile(v, .05), quantile(v, .95)];
}

function fromZero(v) {
  return [0, quantile(v, .95)];
}

function aroundZero(v) {
  const most = Math.max(Math.abs(quantile(v, .05)), Math.abs(quantile(v, .95)));
  return [-most, most];
}

// Rows that the scale is made of: where there are others, not the stream before the first block, which is no
// prediction yet and far from all others.
const scaledLines = head.lines.map((_, l) => l)
  .filter(l => head.lines[l].layer >= 0 || head.lines.every(o => o.layer < 0));

// What the scale of a document is made of: the values of all positions but the first of the text (its values are often
// far from all others), where that is wished and there are others; never what is not a number.
function scaledValues(d, name, withFirst) {
  const c = columnsOf(d), x = c.stat[name], rank = name === "rank", out = [];
  const all = withFirst || c.pos.every(p => p === 0);
  for (const l of scaledLines)
    for (let i = 0; i < d.n; i++) {
      const v = x[l * d.n + i];
      if (Number.isFinite(v) && (all || c.pos[i] !== 0) && !(rank && v === 0))
        out.push(v);
    }
  return Float32Array.from(out).sort();
}

// {low, high, strength(x)}: 0 to 1 (-1 to 1 where both signs have a colour), NaN where there is no value.
function scaleOf(d, name, withFirst) {
  const s = statistics[name], v = scaledValues(d, name, withFirst);
  const [low, high] = v.length ? s.from(v) : [0, 1];
  const place = s.log ? Math.log : x => x;
  const share = x => {
    const range = place(high) - place(low);
    const t = range > 0 ? (place(x) - place(low)) / range : x > low ? 1 : 0;
    return Math.max(0, Math.min(1, t));
  };
  const strength = x => !Number.isFinite(x) || s.log && x <= 0 ? NaN : s.both ? 2 * share(x) - 1
                      : s.down ? 1 - share(x) : share(x);
  const at = t => s.log ? Math.exp(place(low) + t * (place(high) - place(low))) : low + t * (high - low);
  return {low, high, strength, at, clipped: v.length > 0 && (v[0] < low || v[v.length - 1] > high)};
}

// The legend: the scale as a bar, with the values at its ends and between them.
function drawLegend(name, scale) {
  const s = statistics[name], bar = $("bar"), marks = [], colours = [];
  for (let i = 0; i <= 16; i++)
    colours.push(colourOf(scale.strength(scale.at(i / 16))));
  bar.style.background = "linear-gradient(to right, " + colours.join(", ") + ")";
  for (const t of [0, .5, 1])
    marks.push(make("span", "", short(scale.at(t))));
  $("marks").replaceChildren(...marks);
  $("bar").setAttribute("aria-label", "Colours from " + short(scale.low) + " to " + short(scale.high));
  $("meaning").textContent = s.long + (s.log ? "; logarithmic scale" : "") +
                             (scale.clipped ? "; values beyond the ends have the colours of the ends" : "");
}
