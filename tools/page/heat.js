// Colours of values: stops from the page's background to as strong as text on it can still be read (4.5 : 1)

const stops = {
  light: {up: [[255, 255, 255], [255, 228, 166], [247, 170, 86], [233, 116, 66]],
          down: [[255, 255, 255], [205, 226, 252], [135, 185, 243], [86, 154, 236]]},
  dark: {up: [[24, 28, 34], [74, 46, 30], [122, 60, 26], [170, 70, 28]],
         down: [[24, 28, 34], [30, 54, 88], [34, 78, 138], [38, 96, 176]]},
};

function colourOf(strength) {
  if (Number.isNaN(strength))
    return "transparent";
  const s = stops[document.documentElement.dataset.theme][strength < 0 ? "down" : "up"];
  const at = Math.abs(strength) * (s.length - 1), i = Math.min(s.length - 2, Math.floor(at));
  return "rgb(" + s[i].map((c, j) => Math.round(c + (at - i) * (s[i + 1][j] - c))).join(" ") + ")";
}
