// Light and dark: the system's choice, until the reader makes one. setTheme tells the page with the event "theme".

const dark = matchMedia("(prefers-color-scheme: dark)");

function setTheme(theme) {
  $("theme").value = theme;
  document.documentElement.dataset.theme = theme === "auto" ? (dark.matches ? "dark" : "light") : theme;
  dispatchEvent(new Event("theme"));
}

function otherTheme() {
  setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
}

$("theme").addEventListener("change", event => setTheme(event.target.value));
dark.addEventListener("change", () => $("theme").value === "auto" && setTheme("auto"));
setTheme("auto");
