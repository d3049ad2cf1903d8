// What stands round every page: where its data comes from, the help, the keyboard.

// A line of "How this was made", where there is something to say.
function tell(name, value) {
  if (value)
    $("provenance").append(make("dt", "", name), make("dd", "", value));
}

// keys: {key: what it does}. Those in scrolling scroll the page, unless ours(the element that has the focus).
// Afterwards: then(that element).
function listen(keys, scrolling, ours, then) {
  addEventListener("keydown", event => {
    const at = document.activeElement, typing = at.closest("input, select, dialog");
    const act = Object.hasOwn(keys, event.key) && keys[event.key];
    if (!act || event.ctrlKey || event.altKey || event.metaKey || $("help").open || (typing && event.key !== "Escape"))
      return;
    if (scrolling.includes(event.key) && at !== document.body && !ours(at))
      return;
    event.preventDefault();
    act();
    then?.(at);
  });
}

function help() {
  $("help").showModal();
}

// Notes when the first picture is there, under this name.
function markPainted(name) {
  requestAnimationFrame(() => setTimeout(() => performance.mark(name)));
}

$("help-button").addEventListener("click", help);
