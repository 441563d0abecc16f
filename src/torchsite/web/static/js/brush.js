// The part that the brush hides, and what hiding it does to the logit: patch deletion of one part.

import { toBase64, toBytes } from "./base64.js";
import { byId, make, number } from "./dom.js";
import { titled } from "./rows.js";

/** One bit for each pixel of x: whether it is hidden. */
export class Mask {
  constructor(rows, cols) {
    Object.assign(this, { rows, cols, hidden: new Uint8Array(rows * cols) });
  }

  /** Hide a disc; the place and the radius are in pixels of x. */
  dab(x, y, radius) {
    for (let row = Math.max(0, Math.floor(y - radius)); row <= Math.min(this.rows - 1, y + radius); row++)
      for (let col = Math.max(0, Math.floor(x - radius)); col <= Math.min(this.cols - 1, x + radius); col++)
        if (Math.hypot(col + 0.5 - x, row + 0.5 - y) <= radius) this.hidden[row * this.cols + col] = 1;
  }

  /** A line of discs. */
  stroke(from, to, radius) {
    const n = Math.max(1, Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) / Math.max(0.5, radius / 2)));
    for (let k = 0; k <= n; k++) this.dab(from.x + ((to.x - from.x) * k) / n, from.y + ((to.y - from.y) * k) / n, radius);
  }

  toBase64() {
    if (!this.hidden.some(Boolean)) return null;
    const bytes = new Uint8Array(Math.ceil(this.hidden.length / 8));
    this.hidden.forEach((bit, i) => (bytes[i >> 3] |= bit << (7 - (i & 7))));
    return toBase64(bytes);
  }

  /** The mask of a link; null if it belongs to pictures of another size. */
  static from(base64, rows, cols) {
    const mask = new Mask(rows, cols);
    try {
      const bytes = toBytes(base64);
      if (bytes.length !== Math.ceil(mask.hidden.length / 8)) return null;
      mask.hidden.forEach((_, i) => (mask.hidden[i] = (bytes[i >> 3] >> (7 - (i & 7))) & 1));
      return mask;
    } catch {
      return null;
    }
  }

  /** The hidden pixels in one colour, the others transparent. */
  painted([red, green, blue]) {
    const context = new OffscreenCanvas(this.cols, this.rows).getContext("2d");
    const image = context.createImageData(this.cols, this.rows);
    this.hidden.forEach((bit, i) => bit && image.data.set([red, green, blue, 255], 4 * i));
    context.putImageData(image, 0, 0);
    return context.canvas;
  }
}

const bar = (kind, value, most) => {
  const shown = make("span", { class: value < 0 ? "lost" : kind === "fell" ? "done" : kind });
  shown.style.width = `${(100 * Math.abs(value)) / (most || 1)}%`;
  return make("div", { class: "said", "aria-hidden": "true" }, shown);
};

function line(row, asked, name) {
  const { covered, gained, before, after } = row.brushed;
  const fell = before - after;
  const own = row.method === "self_explanation";
  const share = gained > 0 ? covered / gained : 0;
  const most = own ? Math.max(Math.abs(covered), Math.abs(fell)) : Math.abs(fell);
  return make(
    "div",
    { class: "brushed", "data-method": row.method },
    make("h3", { textContent: titled(row.method, row.model, asked) }),
    make(
      "p",
      {},
      own ? "Evidence under the brush: " : "Its map under the brush: ",
      make("b", { class: "covered", textContent: own ? number(covered) : `${number(100 * share, 0)} %` }),
      own ? ` (${number(100 * share, 0)} % of all evidence for the class)` : " of its sum for the class; the map has no unit",
    ),
    ...(own ? [bar("gained", covered, most)] : []),
    make("p", {}, `The logit of ${name} fell by `, make("b", { class: "fell", textContent: number(fell) }), `: ${number(before)} → ${number(after)}`),
    bar("fell", fell, most),
  );
}

/** For each explainer its map of the hidden part, and what hiding it did. */
export function showBrushed(answer, names) {
  const shown = answer.rows.filter((row) => row.brushed);
  byId("brushed").hidden = !shown.length;
  byId("brushed-share").textContent = `${number(100 * answer.hidden, 1)} %`;
  byId("brushed-rows").replaceChildren(...shown.map((row) => line(row, answer.model, names[answer.explained])));
}
