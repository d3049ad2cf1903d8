// Choices, hover, keyboard, the address, and how it all begins.

// --- choices

function rescale() {
  scale = shown && stat in statistics && head.stats.includes(stat) ? scaleOf(shown, stat, $("first").checked) : null;
  $("legend").hidden = !scale;
  if (scale)
    drawLegend(stat, scale);
}

function refresh() {
  rescale();
  draw();
  showCell(cursor.line, cursor.at);
}

function setStat(name) {
  stat = name;
  $("stat").value = name;
  refresh();
  remember();
}

function stepStat(by) {
  const n = head.stats.length;
  if (n)
    setStat(head.stats[(head.stats.indexOf(stat) + by + n) % n]);
}

function setDocument(i) {
  if (i < 0 || i >= documents.length)
    return;
  shown = documents[i];
  cursor.at = Math.min(cursor.at, shown.n - 1);
  $("document").value = i;
  $("before").disabled = i === 0;
  $("behind").disabled = i === documents.length - 1;
  $("grid").scrollLeft = 0;
  refresh();
  reveal();
  drawMissing();
  remember();
}

function stepDocument(by) {
  setDocument(documents.indexOf(shown) + by);
}

function setOrder(up) {
  lastOnTop = up;
  $("up").checked = up;
  draw();
  reveal();
  drawMissing();
}

function toggleFirst() {
  $("first").checked = !$("first").checked;
  refresh();
}

// --- the cursor

function moveTo(line, at) {
  if (!shown)
    return;
  cursor.line = Math.max(0, Math.min(finalLine, line));
  cursor.at = Math.max(0, Math.min(shown.n - 1, at));
  reveal();
  draw();
  showCell(cursor.line, cursor.at);
  remember();
}

function step(down, right) {
  moveTo(lineOfRow(lineOfRow(cursor.line) + down), cursor.at + right);
}

const pageOfColumns = () => Math.max(1, Math.floor(($("grid").clientWidth - nameWidth) / columnWidth()) - 1);

function cellOf(event) {
  const e = event.target.closest(".cell");
  return e && e.id.slice(1).split("-").map(Number);
}

$("grid").addEventListener("pointerover", event => {
  const cell = event.pointerType !== "touch" && cellOf(event);
  if (cell)
    showCell(...cell);
});
$("grid").addEventListener("pointerleave", () => shown && showCell(cursor.line, cursor.at));
$("grid").addEventListener("click", event => {
  const cell = cellOf(event);
  if (cell)
    moveTo(...cell);
});
$("grid").addEventListener("scroll", drawMissing, {passive: true});
addEventListener("resize", () => {
  measureChart();
  draw();
  reveal();
  showCell(cursor.line, cursor.at);
});
addEventListener("theme", refresh);

// --- the address: document, row, position, statistic

let address = "";

function remember() {
  if (!shown)
    return;
  address = "#doc=" + shown.doc + "&row=" + encodeURIComponent(head.lines[cursor.line].name) + "&pos=" +
            columnsOf(shown).pos[cursor.at] + "&stat=" + stat;
  history.replaceState(null, "", address);
}

function openAddress() {
  if (location.hash === address)
    return;
  const wanted = new URLSearchParams(location.hash.slice(1));
  const d = documents.findIndex(x => x.doc === Number(wanted.get("doc") || NaN));
  const line = head.lines.findIndex(l => l.name === wanted.get("row"));
  if (head.stats.includes(wanted.get("stat")))
    stat = $("stat").value = wanted.get("stat");
  setDocument(Math.max(0, d));
  const at = columnsOf(shown).pos.indexOf(Number(wanted.get("pos") || NaN));
  moveTo(line < 0 ? cursor.line : line, at < 0 ? cursor.at : at);
}

// --- keyboard

const keys = {
  ArrowLeft: () => step(0, -1),
  ArrowRight: () => step(0, 1),
  ArrowUp: () => step(-1, 0),
  ArrowDown: () => step(1, 0),
  h: () => step(0, -1),
  l: () => step(0, 1),
  k: () => step(-1, 0),
  j: () => step(1, 0),
  PageUp: () => step(0, -pageOfColumns()),
  PageDown: () => step(0, pageOfColumns()),
  Home: () => moveTo(cursor.line, 0),
  End: () => shown && moveTo(cursor.line, shown.n - 1),
  s: () => stepStat(1),
  S: () => stepStat(-1),
  "[": () => stepDocument(-1),
  "]": () => stepDocument(1),
  f: toggleFirst,
  u: () => setOrder(!lastOnTop),
  t: otherTheme,
  "?": help,
  Escape: () => $("grid").focus(),
};
head.stats.slice(0, 9).forEach((name, i) => keys[i + 1] = () => setStat(name));
// These scroll, unless the map has the focus.
const mapKeys = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"];

listen(keys, mapKeys, at => at === $("grid"));

// --- the beginning

function provenance() {
  const norms = {recompute: "of each row itself", cached: "of the final row: parts of the final logits, no lens",
                 none: "left out: no norm, gain or bias"};
  $("what").textContent = [head.model, head.source].filter(x => x).join(" – ");
  tell("Model", head.model);
  tell("Model's fingerprint", head.fingerprint);
  tell("Tokenizer's fingerprint", head.tokenizer);
  tell("Lens", head.lens);
  tell("Norm's statistics", norms[head.norm] || head.norm);
  tell("Soft cap", head.no_softcap ? "left out: the final row is not the model's own" : "");
  tell("Text", head.source);
  tell("Source", head.text);
  tell("Windows", head.ctx ? grouped(head.ctx) + " tokens, the next " + grouped(head.stride) + " later" : "");
  tell("BOS", head.bos ? "before each window" : "none");
  tell("Documents", grouped(documents.length) + ", " + grouped(documents.reduce((n, d) => n + d.n, 0)) + " positions");
  tell("Asked about", {next: "the token that follows", final: "the final row's first token"}[head.target] ||
                     (head.target === null ? "" : shownToken(head.target)));
  tell("Contrast", head.contrast.length ? head.contrast.map(shownToken).join(" minus ") : "");
  tell("Vocabulary", grouped(head.vocabulary) + " tokens" +
                    (head.masked_from < 0 ? "" : "; those from " + grouped(head.masked_from) + " on left out"));
  tell("Changes to the model", head.interventions === "[]" ? "" : head.interventions);
  tell("Written by", "weir " + head.weir);
}

// A document's number and its first words.
const titleOf = d => d.doc + ": " + wordsOf(beginningOf(d).id.slice(0, 8)) + " (" + grouped(d.n) + ")";

documents.forEach((d, i) => option("document", i, titleOf(d)));
for (const name of head.stats)
  option("stat", name, statistics[name].title);
$("documents").hidden = documents.length < 2;
$("document").addEventListener("change", event => setDocument(Number(event.target.value)));
$("before").addEventListener("click", () => stepDocument(-1));
$("behind").addEventListener("click", () => stepDocument(1));
$("stat").addEventListener("change", event => setStat(event.target.value));
$("first").addEventListener("change", refresh);
$("up").addEventListener("change", event => setOrder(event.target.checked));
$("choices").addEventListener("submit", event => event.preventDefault());
addEventListener("hashchange", () => shown && openAddress());

provenance();
measureChart();
if (!head.stats.includes(stat))
  stat = head.stats[0];
cursor.line = finalLine;
if (shown) {
  const [token] = beginningOf(shown).id;
  cursor.at = shown.n > 1 && token >= 0 && tokens().special[token] ? 1 : 0; // there is little to see behind a BOS
  $("stat").value = stat;
  openAddress();
  if (!location.hash)
    setDocument(0);
} else
  refresh();
$("grid").focus({preventScroll: true});
markPainted("map-painted");
