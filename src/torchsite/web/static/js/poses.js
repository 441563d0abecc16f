// Moving pictures as torchsite.transforms does: (T x)(p) = x(T⁻¹ p), bilinear, zero outside the frame.
// Coordinates are centred, the shorter side spans [-1, 1]; angles are degrees counter-clockwise.

const SEEN = 1 - 1e-3; // from here on a pixel shows the picture and not what is around it

/** Where each pixel of the moved picture comes from: four places in the source, and how much each counts. */
export function sampler({ angle = 0, right = 0, down = 0, scale = 1 }, rows, cols) {
  const side = Math.min(rows, cols);
  const turn = (angle * Math.PI) / 180;
  const [cos, sin] = [Math.cos(turn) / scale, Math.sin(turn) / scale];
  const places = new Int32Array(4 * rows * cols);
  const weights = new Float32Array(4 * rows * cols);
  let at = 0;
  for (let row = 0; row < rows; row++) {
    const y = (2 * row + 1 - rows) / side - 2 * down;
    for (let col = 0; col < cols; col++, at += 4) {
      const x = (2 * col + 1 - cols) / side - 2 * right;
      const u = ((cos * x - sin * y) * side + cols - 1) / 2;
      const v = ((sin * x + cos * y) * side + rows - 1) / 2;
      const [left, top] = [Math.floor(u), Math.floor(v)];
      for (let k = 0; k < 4; k++) {
        const [c, r] = [left + (k & 1), top + (k >> 1)];
        if (c < 0 || r < 0 || c >= cols || r >= rows) continue;
        places[at + k] = r * cols + c;
        weights[at + k] = (k & 1 ? u - left : 1 - u + left) * (k >> 1 ? v - top : 1 - v + top);
      }
    }
  }
  return { places, weights, n: rows * cols };
}

/** One plane, moved. */
export function moved(plane, { places, weights, n }) {
  const result = new Float32Array(n);
  for (let i = 0, at = 0; i < n; i++, at += 4)
    result[i] =
      weights[at] * plane[places[at]] +
      weights[at + 1] * plane[places[at + 1]] +
      weights[at + 2] * plane[places[at + 2]] +
      weights[at + 3] * plane[places[at + 3]];
  return result;
}

/** How much of each pixel shows the picture. */
export const seen = (how) => moved(new Float32Array(how.n).fill(1), how);

/** 1 where the moved picture is compared. */
export const mask = (shares) => shares.map((share) => Number(share > SEEN));

const CONSTANT = 8 * 2 ** -23;

/** What a map holds within the mask, scaled to a maximum of 1. */
export function masked(values, where) {
  const chosen = new Float64Array(values.length);
  let peak = 0;
  for (let i = 0; i < chosen.length; i++) {
    chosen[i] = values[i] * where[i];
    peak = Math.max(peak, Math.abs(chosen[i]));
  }
  if (peak > 0) for (let i = 0; i < chosen.length; i++) chosen[i] /= peak;
  return chosen;
}

/** The same less its mean there; what rounding leaves of a constant is taken for zero. */
export function centred(values, where) {
  let [sum, count] = [0, 0];
  for (let i = 0; i < values.length; i++) {
    sum += where[i] * values[i];
    count += where[i];
  }
  const mean = sum / Math.max(1, count);
  const less = values.map((value, i) => (where[i] ? value - mean : 0));
  return less.some((value) => Math.abs(value) > CONSTANT) ? less : less.fill(0);
}

/** The cosine of two maps; 0 if either vanishes. */
export function cosine(a, b) {
  let [product, first, second] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    product += a[i] * b[i];
    first += a[i] * a[i];
    second += b[i] * b[i];
  }
  const norms = Math.sqrt(first) * Math.sqrt(second);
  return norms > 0 ? product / norms : 0;
}
