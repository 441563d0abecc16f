// Which exemplar a prototype of learned features fits best, and where: what torchsite.model.gallery does.

import { toBytes } from "./base64.js";

/** One axis of cells averaged to fewer, as torch's adaptive pooling does: for each new cell the old ones it covers. */
const covered = (from, to) => Array.from({ length: to }, (_, i) => [Math.floor((i * from) / to), Math.ceil(((i + 1) * from) / to)]);

export class Gallery {
  constructor({ labels, pictures, size, cells, reach, limits, keys }, shape) {
    const bytes = new Int8Array(toBytes(keys).buffer);
    Object.assign(this, { labels, pictures, size, cells, reach, shape });
    this.n = bytes.length / labels.length; // numbers in a key
    this.keys = Float32Array.from(bytes, (byte, i) => byte * limits[Math.floor(i / this.n)]);
    this.rows = covered(shape[1], cells[0]);
    this.cols = covered(shape[2], cells[1]);
  }

  /** Features averaged to the cells of the keys; their length is one. */
  pooled(features) {
    const [depth, height, width] = this.shape;
    const [down, across] = this.cells;
    const whole = new Float32Array(depth * down * across);
    let square = 0;
    for (let d = 0, k = 0; d < depth; d++)
      for (const [top, bottom] of this.rows)
        for (const [left, right] of this.cols) {
          let total = 0;
          for (let row = top; row < bottom; row++) for (let col = left; col < right; col++) total += features[(d * height + row) * width + col];
          whole[k] = total / ((bottom - top) * (right - left));
          square += whole[k] * whole[k++];
        }
    const size = Math.max(Math.sqrt(square), 1e-12);
    return whole.map((value) => value / size);
  }

  /** The likeness of a prototype with one key that is moved by whole cells. */
  likeness(query, key, byRow, byCol) {
    const [down, across] = this.cells;
    let total = 0;
    for (let d = 0; d < this.shape[0]; d++)
      for (let row = Math.max(0, -byRow); row < Math.min(down, down - byRow); row++) {
        const [here, there] = [(d * down + row) * across, (d * down + row + byRow) * across + byCol];
        for (let col = Math.max(0, -byCol); col < Math.min(across, across - byCol); col++) total += key[here + col] * query[there + col];
      }
    return total;
  }

  /** The exemplar of a class that its prototype fits best; `shift` is in pixels of the exemplar, down and right. */
  nearest(prototype, label) {
    const query = this.pooled(prototype);
    const [down, across] = this.reach;
    let best = { likeness: -Infinity };
    this.labels.forEach((own, row) => {
      if (own !== label) return;
      const key = this.keys.subarray(row * this.n, (row + 1) * this.n);
      for (let byRow = -down; byRow <= down; byRow++)
        for (let byCol = -across; byCol <= across; byCol++) {
          const likeness = this.likeness(query, key, byRow, byCol);
          if (likeness > best.likeness) best = { row, likeness, cells: [byRow, byCol] };
        }
    });
    const shift = best.cells.map((by, axis) => Math.round((by * this.size[axis]) / this.cells[axis]));
    return { picture: this.pictures[best.row], exemplar: best.row, size: this.size, shift, likeness: best.likeness };
  }
}
