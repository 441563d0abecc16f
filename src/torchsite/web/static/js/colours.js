// Diverging colours that colour-blind eyes can tell apart. Zero is white on a light page and black on a dark one.

const LIGHT = ["#053061", "#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f7f7f7", "#fddbc7", "#f4a582", "#d6604d", "#b2182b", "#67001f"];
const DARK = ["#b8ddff", "#8fc8ff", "#5a9fdf", "#2f6fb0", "#1d3d5e", "#16181c", "#5a2f20", "#b5532f", "#ee8a57", "#ffb48a", "#ffd9c2"];

const parsed = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

/** 255 pixels as a canvas keeps them, for the bytes -127 … 127. Over a picture, weak evidence is clearer than strong. */
function table(anchors, opacity) {
  const stops = anchors.map(parsed);
  const bytes = Array.from({ length: 255 }, (_, i) => {
    const place = (i / 254) * (stops.length - 1);
    const below = Math.min(Math.floor(place), stops.length - 2);
    const mixed = stops[below].map((value, k) => Math.round(value + (stops[below + 1][k] - value) * (place - below)));
    const strength = Math.abs(i - 127) / 127;
    return [...mixed, Math.round(255 * opacity ** (2.25 - 2 * strength))];
  });
  return new Uint32Array(new Uint8Array(bytes.flat()).buffer);
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const tables = new Map();

/** The colours of the page as it is now; `opacity` 1 hides what is below, 0 shows nothing else. */
export function colours(opacity) {
  const key = `${dark.matches} ${opacity}`;
  if (!tables.has(key)) tables.set(key, table(dark.matches ? DARK : LIGHT, opacity));
  return tables.get(key);
}

export const onTheme = (redraw) => dark.addEventListener("change", redraw);
