// Diverging colours that colour-blind eyes keep apart. Zero is white on a light page and black on a dark one.

const LIGHT = ["#053061", "#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f7f7f7", "#fddbc7", "#f4a582", "#d6604d", "#b2182b", "#67001f"];
const DARK = ["#b8ddff", "#8fc8ff", "#5a9fdf", "#2f6fb0", "#1d3d5e", "#16181c", "#5a2f20", "#b5532f", "#ee8a57", "#ffb48a", "#ffd9c2"];

const parsed = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

/** 255 opaque pixels as a canvas keeps them, for the bytes -127 … 127. */
function table(anchors) {
  const stops = anchors.map(parsed);
  const bytes = Array.from({ length: 255 }, (_, i) => {
    const place = (i / 254) * (stops.length - 1);
    const below = Math.min(Math.floor(place), stops.length - 2);
    const mixed = stops[below].map((value, k) => Math.round(value + (stops[below + 1][k] - value) * (place - below)));
    return [...mixed, 255];
  });
  return new Uint32Array(new Uint8Array(bytes.flat()).buffer);
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const TABLES = { light: table(LIGHT), dark: table(DARK) };

export const colours = () => (dark.matches ? TABLES.dark : TABLES.light);
export const onTheme = (redraw) => dark.addEventListener("change", redraw);
