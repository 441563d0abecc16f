// The answer to a question from a model's own outputs: what torchsite.web.engine and .rendering do on the server.

import { toBytes } from "./base64.js";
import { Gallery } from "./gallery.js";
import { centred, cosine, mask, masked, moved, sampler, seen } from "./poses.js";

const TOP = 10;
const NO_ROOM = 1e-6;

const sum = (values) => values.reduce((total, value) => total + value, 0);
const gained = (values) => values.reduce((total, value) => total + Math.max(0, value), 0);
const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
const argmax = (values) => values.reduce((best, value, i) => (value > values[best] ? i : best), 0);

export const floats = (base64) => new Float32Array(toBytes(base64).buffer);

/** The cells that each pixel of one axis takes from, and how much: a matrix of (cells, pixels) without its zeros. */
function taps(matrix, cells, pixels) {
  return Array.from({ length: pixels }, (_, pixel) => {
    const found = [];
    for (let cell = 0; cell < cells; cell++) if (matrix[cell * pixels + pixel]) found.push([cell, matrix[cell * pixels + pixel]]);
    return found;
  });
}

/** A model's shapes, and how its evidence is spread over pixels: heatmap = downᵀ · evidence · across. */
export class Shapes {
  constructor(page) {
    [this.channels, this.rows, this.cols] = page.model.image_shape;
    [this.down, this.right] = page.cells;
    this.classes = page.model.classes;
    this.features = page.model.feature_shape.reduce((total, side) => total * side, 1);
    this.gallery = page.gallery && new Gallery(page.gallery, page.model.feature_shape);
    this.same = this.down === this.rows && this.right === this.cols;
    this.taps = { down: taps(floats(page.down), this.down, this.rows), across: taps(floats(page.across), this.right, this.cols) };
  }

  /** Evidence in cells as a heatmap in pixels; the sum stays. */
  enlarged(evidence) {
    if (this.same) return evidence;
    const wide = new Float32Array(this.down * this.cols);
    for (let row = 0; row < this.down; row++)
      this.taps.across.forEach((from, col) => {
        for (const [cell, weight] of from) wide[row * this.cols + col] += weight * evidence[row * this.right + cell];
      });
    const whole = new Float32Array(this.rows * this.cols);
    this.taps.down.forEach((from, row) => {
      for (const [cell, weight] of from)
        for (let col = 0; col < this.cols; col++) whole[row * this.cols + col] += weight * wide[cell * this.cols + col];
    });
    return whole;
  }

  /** The evidence of one class, in cells. */
  evidence(run, index) {
    const n = this.down * this.right;
    return run.evidence.subarray(index * n, (index + 1) * n);
  }

  heatmap(run, index) {
    return this.enlarged(this.evidence(run, index));
  }

  map(values, limit = largest(values)) {
    return { rows: this.rows, cols: this.cols, limit, values };
  }
}

/** T x: each channel moved, and around it black or the mean colour of x. */
export function movedPicture(picture, how, shares, corners, { channels }) {
  const whole = new Float32Array(channels * how.n);
  for (let channel = 0; channel < channels; channel++) {
    const plane = picture.subarray(channel * how.n, (channel + 1) * how.n);
    const around = corners === "mean" ? sum(plane) / how.n : 0;
    whole.set(moved(plane, how), channel * how.n);
    if (around) shares.forEach((share, i) => (whole[channel * how.n + i] += (1 - share) * around));
  }
  return whole;
}

/** T x with a part of x hidden in its mean colour; `hides` is the share of each pixel that is covered. */
export function hiddenPicture(picture, movedOne, hides, { channels }) {
  const n = hides.length;
  const whole = movedOne.slice();
  for (let channel = 0; channel < channels; channel++) {
    const colour = sum(picture.subarray(channel * n, (channel + 1) * n)) / n;
    hides.forEach((share, i) => (whole[channel * n + i] += share * (colour - whole[channel * n + i])));
  }
  return whole;
}

/** The pixels that a brush hides, from one bit each. */
export function bits(base64, n) {
  const bytes = toBytes(base64);
  return Float32Array.from({ length: n }, (_, i) => (bytes[i >> 3] >> (7 - (i & 7))) & 1);
}

function answerOf(logits) {
  const peak = Math.max(...logits);
  const shares = Array.from(logits, (logit) => Math.exp(logit - peak));
  const total = sum(shares);
  return { predicted: argmax(logits), logits: [...logits], probabilities: shares.map((share) => share / total) };
}

/** How alike I(T x) and T(I x) are, and the same for maps of other pictures. */
function figures(renewed, carried, others, how, where) {
  if (!where.some(Boolean)) return { raw: null, floor: null, calibrated: null, centred: null };
  const [a, b] = [masked(carried, where), masked(renewed, where)];
  const raw = cosine(a, b);
  const floors = others.map((other) => cosine(masked(moved(other, how), where), b));
  const floor = floors.length ? sum(floors) / floors.length : 0;
  const room = 1 - floor;
  return { raw, floor, calibrated: Math.abs(room) < NO_ROOM ? 0 : (raw - floor) / room, centred: cosine(centred(a, where), centred(b, where)) };
}

function evidenceOf(shapes, run, asked) {
  const order = [...run.logits.keys()].sort((a, b) => run.logits[b] - run.logits[a]);
  const chosen = order.filter((index, rank) => rank < TOP || asked.includes(index));
  const maps = chosen.map((index) => shapes.heatmap(run, index));
  const limit = Math.max(...maps.map(largest));
  return chosen.map((index, i) => {
    const positive = gained(maps[i]);
    return { index, name: shapes.classes[index], logit: run.logits[index], gained: positive, lost: sum(maps[i]) - positive, heatmap: shapes.map(maps[i], limit) };
  });
}

/** A prototype is a picture where features are pixels; else the exemplar that it fits best, if there are any. */
function pictured(shapes, run, index, picture) {
  if (!run.prototypes) return null;
  const values = run.prototypes.slice(index * shapes.features, (index + 1) * shapes.features);
  return shapes.gallery ? shapes.gallery.nearest(values, index) : picture(values);
}

function detailOf(shapes, run, index) {
  const picture = (values) => ({ channels: shapes.channels, rows: shapes.rows, cols: shapes.cols, values });
  const cells = shapes.evidence(run, index);
  return {
    index,
    name: shapes.classes[index],
    features: run.features ? picture(run.features) : null,
    prototype: pictured(shapes, run, index, picture),
    contributions: { rows: shapes.down, cols: shapes.right, limit: largest(cells), values: cells.slice() },
    logit: sum(cells),
  };
}

function whyOf(shapes, run, index, against) {
  const [a, b] = [index, against].map((one) => shapes.heatmap(run, one));
  const values = a.map((value, i) => value - b[i]);
  const positive = gained(values);
  const difference = sum(values);
  return { index, against, heatmap: shapes.map(values), gained: positive, lost: difference - positive, difference };
}

function numbered(name, classes) {
  if (name === null || name === undefined) return null;
  if (!classes.includes(name)) throw new Error(`There is no class “${name}”.`);
  return classes.indexOf(name);
}

/** `still`: x and the model's outputs for it; `run`: the model; `others`: heatmaps of other pictures. */
export async function answer(shapes, question, still, run, others) {
  const { classes, rows, cols } = shapes;
  const index = (name) => numbered(name, classes);
  const label = index(question.class) ?? argmax(still.run.logits);
  const against = index(question.against);
  const how = sampler(question, rows, cols);
  const shares = seen(how);
  const turned = movedPicture(still.picture, how, shares, question.corners, shapes);
  const found = await run(turned);
  const renewed = shapes.heatmap(found, label);
  const carried = moved(shapes.heatmap(still.run, label), how);
  const limit = Math.max(largest(renewed), largest(carried));
  const hides = question.hidden ? moved(bits(question.hidden, rows * cols), how) : null;
  const without = hides && (await run(hiddenPicture(still.picture, turned, hides, shapes)));
  const brushed = hides && {
    covered: sum(renewed.map((value, i) => value * hides[i])),
    gained: gained(renewed),
    total: sum(renewed),
    before: found.logits[label],
    after: without.logits[label],
  };
  const row = { method: "self_explanation", renewed: shapes.map(renewed, limit), carried: shapes.map(carried, limit), brushed };
  const shown = against === null || against === label ? [label] : [label, against];
  return {
    kind: "site",
    still: answerOf(still.run.logits),
    turned: answerOf(found.logits),
    explained: label,
    hidden: hides ? sum(hides) / Math.max(1e-9, sum(shares)) : 0,
    rows: [{ ...row, ...figures(renewed, carried, others, how, mask(shares)) }],
    evidence: evidenceOf(shapes, found, shown),
    detail: shown.map((one) => detailOf(shapes, found, one)),
    why: against === null ? null : whyOf(shapes, found, label, against),
    skipped: {},
  };
}
