// Choices, hover, keyboard, the address, and how it all begins.

// --- what is shown

function look(i) {
  looked = i;
  colourText();
  drawToken();
  drawCross();
}

function moveTo(i) {
  if (!shown)
    return;
  cursor.at = Math.max(0, Math.min(shown.n - 1, i));
  look(cursor.at);
  $("t" + cursor.at).scrollIntoView({block: "nearest"});
  remember();
}

function setHead(h) {
  if (!shown || h < 0 || h >= head.heads.length)
    return;
  large = h;
  thumbs.forEach((b, i) => {
    b.setAttribute("aria-pressed", i === h);
    b.tabIndex = i === h ? 0 : -1;
  });
  thumbs[h].scrollIntoView({block: "nearest", inline: "nearest"});
  $("name").textContent = headName(h);
  paintLarge();
  drawLegend();
  look(cursor.at);
  remember();
}

function setMap(i) {
  if (i < 0 || i >= maps.length)
    return;
  shown = maps[i];
  cursor.at = looked = Math.min(cursor.at, shown.n - 1);
  $("document").value = i;
  $("before").disabled = i === 0;
  $("behind").disabled = i === maps.length - 1;
  drawText();
  setHead(large);
  paintHeads();
}

function stepMap(by) {
  setMap(maps.indexOf(shown) + by);
}

function drawLegend() {
  const colours = [];
  for (let i = 0; i <= 8; i++)
    colours.push(colourOf(i / 8));
  $("bar").style.background = "linear-gradient(to right, " + colours.join(", ") + ")";
  $("most").textContent = short(largest(large));
}

function refresh() {
  if (!shown)
    return;
  paintLarge();
  drawLegend();
  look(looked);
  paintHeads();
}

// --- pointer

$("text").addEventListener("pointerover", event => {
  if (event.pointerType !== "touch" && event.target.dataset.at)
    look(Number(event.target.dataset.at));
});
$("text").addEventListener("pointerleave", () => shown && look(cursor.at));
$("text").addEventListener("click", event => event.target.dataset.at && moveTo(Number(event.target.dataset.at)));
$("canvas").addEventListener("pointermove", event => {
  const cell = event.pointerType !== "touch" && shown && cellAt(event);
  if (!cell)
    return;
  if (cell[0] !== looked)
    look(cell[0]);
  $("under").textContent = "'" + tokenName(shown, cell[0]) + "' (" + posName(shown, cell[0]) + ") reads '" +
                           tokenName(shown, cell[1]) + "' (" + posName(shown, cell[1]) + "): " +
                           exact(weight(shown, large, ...cell));
});
$("canvas").addEventListener("pointerleave", () => {
  if (shown)
    look(cursor.at);
  $("under").textContent = "";
});
$("canvas").addEventListener("click", event => {
  const cell = shown && cellAt(event);
  if (cell)
    moveTo(cell[0]);
});
addEventListener("resize", () => shown && paintLarge());
addEventListener("theme", refresh);

// --- the address: window, head, token

let address = "";

function remember() {
  address = "#map=" + shown.number + "&head=" + headName(large) + "&token=" + cursor.at;
  history.replaceState(null, "", address);
}

function openAddress() {
  if (location.hash === address && address)
    return;
  const wanted = new URLSearchParams(location.hash.slice(1));
  const h = head.heads.findIndex((_, i) => headName(i) === wanted.get("head")), m = Number(wanted.get("map") || 0);
  if (h >= 0)
    large = h;
  const at = Number(wanted.get("token") ?? maps[0].n - 1);
  setMap(m >= 0 && m < maps.length ? Math.floor(m) : 0);
  moveTo(Number.isFinite(at) ? Math.floor(at) : 0);
}

// --- keyboard

const keys = {
  ArrowLeft: () => moveTo(cursor.at - 1),
  ArrowRight: () => moveTo(cursor.at + 1),
  ArrowUp: () => setHead(large - 1),
  ArrowDown: () => setHead(large + 1),
  h: () => moveTo(cursor.at - 1),
  l: () => moveTo(cursor.at + 1),
  k: () => setHead(large - 1),
  j: () => setHead(large + 1),
  Home: () => moveTo(0),
  End: () => shown && moveTo(shown.n - 1),
  "[": () => stepMap(-1),
  "]": () => stepMap(1),
  f: () => {
    $("first").checked = !$("first").checked;
    refresh();
  },
  t: otherTheme,
  "?": help,
  Escape: () => $("text").focus(),
};
// These scroll, unless the text or a head has the focus.
const scrolling = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"];

listen(keys, scrolling, at => at === $("text") || at.matches(".head"), at => {
  if (at.matches(".head"))
    thumbs[large].focus({preventScroll: true});
});

// --- the beginning

function provenance() {
  $("what").textContent = [head.model, head.source].filter(x => x).join(" – ");
  tell("Model", head.model);
  tell("Model's fingerprint", head.fingerprint);
  tell("Tokenizer's fingerprint", head.tokenizer);
  tell("Heads", grouped(head.heads.length));
  tell("Text", head.source);
  tell("Source", head.text);
  tell("Windows", grouped(maps.length) + (head.ctx ? ", of " + grouped(head.ctx) + " tokens at most" : ""));
  tell("BOS", head.bos ? "before each window" : "none");
  tell("Weights", "softmax of the scores; a row sums to 1");
  tell("Changes to the model", head.interventions);
  tell("Written by", "weir " + head.weir);
}

// A window's document and its first words.
const titleOf = m => m.doc + ": " + wordsOf(columnsOf(m).token.slice(0, 9)) + " (" + grouped(m.n) + ")";

maps.forEach((m, i) => option("document", i, titleOf(m)));
$("documents").hidden = maps.length < 2;
$("document").addEventListener("change", event => setMap(Number(event.target.value)));
$("before").addEventListener("click", () => stepMap(-1));
$("behind").addEventListener("click", () => stepMap(1));
$("first").addEventListener("change", refresh);
$("choices").addEventListener("submit", event => event.preventDefault());
addEventListener("hashchange", () => shown && openAddress());

provenance();
makeHeads();
if (shown)
  openAddress();
else
  $("cell").append(make("p", "plain", "No window was looked at."));
$("text").focus({preventScroll: true});
markPainted("map-painted");
