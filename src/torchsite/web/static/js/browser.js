// Answers from this browser alone: a worker runs the model, and pictures are prepared here.

import { toBase64 } from "./base64.js";

const LUMA = [0.299, 0.587, 0.114];

/** A picture file as the model takes it: upright, on white, its size (aspect kept, centre crop), PNG in base64. */
async function prepared({ image_shape: [channels, rows, cols], margin = 1 }, file, invert) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Error("This file is no picture that the browser can read: choose PNG, JPEG, WebP, GIF or BMP.");
  }
  const seen = Math.max(rows, cols);
  const side = seen + 2 * Math.ceil((seen * (margin - 1)) / 2 - 1e-6);
  const square = shrunk(bitmap, side);
  const context = new OffscreenCanvas(cols, rows).getContext("2d");
  context.drawImage(square, -((side - cols) >> 1), -((side - rows) >> 1));
  const picture = context.getImageData(0, 0, cols, rows);
  tone(picture.data, channels === 1, invert);
  context.putImageData(picture, 0, 0);
  const png = await context.canvas.convertToBlob({ type: "image/png" });
  return toBase64(new Uint8Array(await png.arrayBuffer()));
}

/** The middle square of a picture, halved until one smooth step brings it to its size. */
function shrunk(bitmap, side) {
  let length = Math.min(bitmap.width, bitmap.height);
  let source = bitmap;
  let place = [(bitmap.width - length) / 2, (bitmap.height - length) / 2];
  while (length !== side) {
    const next = length > 2 * side ? Math.ceil(length / 2) : side;
    source = drawn(source, place, length, next);
    [length, place] = [next, [0, 0]];
  }
  return source === bitmap ? drawn(bitmap, place, length, side) : source;
}

function drawn(source, [left, top], from, to) {
  const context = new OffscreenCanvas(to, to).getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, to, to);
  context.imageSmoothingQuality = "high";
  context.drawImage(source, left, top, from, from, 0, 0, to, to);
  return context.canvas;
}

function tone(data, grey, invert) {
  for (let i = 0; i < data.length; i += 4) {
    if (grey) data.fill(Math.round(LUMA.reduce((total, weight, k) => total + weight * data[i + k], 0)), i, i + 3);
    if (invert) for (let k = 0; k < 3; k++) data[i + k] = 255 - data[i + k];
  }
}

/** Questions to the worker and its answers, by number. */
class Asked {
  constructor(worker) {
    Object.assign(this, { worker, waiting: new Map(), last: 0 });
    worker.onmessage = ({ data: { id, answer, error } }) => {
      const { done, failed } = this.waiting.get(id);
      this.waiting.delete(id);
      if (error) failed(new Error(error));
      else done(answer);
    };
    worker.onerror = (event) => {
      for (const { failed } of this.waiting.values()) failed(new Error(`The model cannot be run in this browser: ${event.message ?? "its files are missing"}`));
      this.waiting.clear();
    };
  }

  explain(question) {
    const id = ++this.last;
    this.worker.postMessage({ id, question });
    return new Promise((done, failed) => this.waiting.set(id, { done, failed }));
  }
}

export async function open() {
  const worker = new Asked(new Worker(new URL("./worker.js", import.meta.url), { type: "module" }));
  const page = await (await fetch(new URL("../../page/page.json", import.meta.url))).json();
  return {
    models: async () => [page.model],
    samples: async () => page.samples,
    explain: (_, question) => worker.explain(question),
    prepare: (_, file, invert) => prepared(page.model, file, invert),
    posthoc: false,
  };
}
