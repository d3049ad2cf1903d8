// Opening and closing, hover, keyboard, theme, and how it all begins.

const hint = $("hint");
const narrow = matchMedia("(max-width: 900px)");

// how: "push" a new entry of the history, "replace" the last, or "" (the address has it already).
function open(n, how) {
  opened = n;
  shown = record(n);
  expanded.clear();
  const i = order.indexOf(n);
  if (i >= 0)
    moveTo(i);
  else
    draw();
  redraw();
  $("detail").setAttribute("aria-label", "Neuron " + nameOf(n));
  $("detail").scrollTop = 0;
  document.title = nameOf(n) + " – neuron-top";
  if (how)
    history[how + "State"](null, "", "#" + hashOf(n));
  if (narrow.matches)
    $("detail").scrollIntoView();
}

function close() {
  opened = -1;
  shown = null;
  $("detail").replaceChildren(hint);
  $("detail").setAttribute("aria-label", "Neuron");
  document.title = "neuron-top";
  history.replaceState(null, "", location.pathname + location.search);
  hideTip();
  draw();
  $("grid").focus();
}

// To a neighbour in the list; where a neuron is open, that is opened.
function step(by) {
  if (!order.length)
    return;
  const to = Math.max(0, Math.min(order.length - 1, cursor + by));
  if (opened >= 0)
    open(order[to], "replace");
  else
    moveTo(to);
}

function openHash() {
  const n = byName().get(location.hash.slice(1));
  if (n !== undefined && n !== opened)
    open(n, "");
  else if (n === undefined && opened >= 0 && location.hash.length < 2)
    close();
}

function toggleAll() {
  allExpanded = !allExpanded;
  expanded.clear();
  redraw();
}

// --- hover

function hideTip() {
  $("tip").hidden = true;
}

function showTip(target) {
  const tip = $("tip"), box = target.getBoundingClientRect();
  tip.textContent = target.dataset.tip;
  tip.hidden = false;
  const x = Math.max(6, Math.min(innerWidth - tip.offsetWidth - 6, box.left));
  const below = box.bottom + 8, fits = below + tip.offsetHeight < innerHeight;
  const y = fits ? below : Math.max(6, box.top - tip.offsetHeight - 8);
  tip.style.left = x + "px";
  tip.style.top = y + "px";
  target.setAttribute("aria-describedby", "tip");
}

for (const [begin, end] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
  $("detail").addEventListener(begin, event => {
    const target = event.target.closest("[data-tip]");
    if (target)
      showTip(target);
  });
  $("detail").addEventListener(end, event => {
    const target = event.target.closest("[data-tip]");
    if (target)
      target.removeAttribute("aria-describedby");
    hideTip();
  });
}
$("detail").addEventListener("scroll", hideTip, {passive: true});

// --- colours

function setScale(all) {
  scaleOfAll = all;
  $("scale").value = all ? "all" : "own";
  redraw();
}

// --- keyboard

const keys = {
  j: () => step(1),
  k: () => step(-1),
  ArrowDown: () => step(1),
  ArrowUp: () => step(-1),
  ArrowRight: () => opened >= 0 && step(1),
  ArrowLeft: () => opened >= 0 && step(-1),
  PageDown: () => step(Math.floor($("grid").clientHeight / ROW) - 2),
  PageUp: () => step(2 - Math.floor($("grid").clientHeight / ROW)),
  Home: () => step(-total),
  End: () => step(total),
  Enter: () => order.length && open(order[cursor], "push"),
  "/": () => $("search").select(),
  e: () => opened >= 0 && toggleAll(),
  c: () => setScale(!scaleOfAll),
  t: otherTheme,
  "?": help,
  Escape: escape,
};
// These scroll, unless the list has the focus.
const listKeys = ["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End", "Enter"];

function escape() {
  if (document.activeElement === $("search") && $("search").value) {
    $("search").value = "";
    filterSoon();
  } else if (document.activeElement.closest("form"))
    $("grid").focus();
  else if (opened >= 0)
    close();
}

listen(keys, listKeys, at => at === $("grid"));

// --- the beginning

function provenance() {
  const rank = head.rank === "max" ? "each token by its activation" : "documents by the mean of their activations";
  const same = {none: "no", window: "in a window", doc: "in a document",
                text: "the same last " + head.dedup_n + " tokens"};
  $("what").textContent = [head.model, head.input].filter(x => x).join(" – ");
  tell("Model", [head.model, head.family].filter(x => x).join(", "));
  tell("Model's fingerprint", head.fingerprint);
  tell("Tokenizer's fingerprint", head.tokenizer);
  tell("Hook points", head.tables.map(t => t.hook + (t.site !== t.hook ? " (" + t.site + ")" : "") +
                                          (t.skipped ? ", " + grouped(t.skipped) + " rows left out" : "")).join("; "));
  tell("Text", head.input);
  tell("Source", head.source);
  tell("Seen", grouped(head.docs) + " documents, " + grouped(head.tokens) + " tokens, of which " +
              grouped(head.counted) + " counted");
  tell("Masked", grouped(head.masked_bos) + " BOS, " + grouped(head.masked_special) + " special, " +
                grouped(head.masked_id) + " by id");
  tell("Ranked", rank + "; k = " + head.k);
  tell("Listed once", same[head.dedup]);
  tell("Changes to the model", head.interventions === "[]" ? "" : head.interventions);
  tell("Samples' seed", head.sections.some(s => s.startsWith("band") || s === "random") ? head.seed : "");
  tell("Shard", head.shards ? head.shard + " of " + head.shards : "");
  tell("Unfinished", head.complete ? "" : "the search had not seen all of the text");
  tell("Written by", "weir " + head.weir);
}

$("room").addEventListener("click", event => {
  const row = event.target.closest("[role=row]");
  if (row)
    open(rows.find(r => r.row === row).neuron, "push");
});
$("scale").addEventListener("change", event => setScale(event.target.value === "all"));
addEventListener("hashchange", openHash);
addEventListener("popstate", openHash);

provenance();
filter();
openHash();
$("grid").focus({preventScroll: true});
markPainted("list-painted");
