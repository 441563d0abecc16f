// The moved picture, drawn with what covers it and with the handle or the brush. Places are in CSS pixels of the canvas.

import { enter, fitted, outline, shownWidth } from "./maps.js";
import { REST, clamp } from "./pose.js";

const REACH = 0.36; // from the centre to the handle, in shorter sides
const SALMON = "#f4a582";

export class Stage {
  constructor(canvas) {
    Object.assign(this, { canvas, pose: { ...REST }, image: null, mean: [0, 0, 0], pixel: 1 / 28 });
    Object.assign(this, { corners: "black", cover: null, brush: null, at: null });
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  show(image, pose) {
    const { naturalWidth: cols, naturalHeight: rows } = image;
    Object.assign(this, { image, pose, cols, rows, mean: meanColour(image, rows, cols), pixel: 1 / Math.min(rows, cols) });
    this.draw();
  }

  draw() {
    if (!this.image) return;
    const context = fitted(this.canvas, this.cols / this.rows);
    this.paint(context, this.pose, this.cover);
    if (this.corners === "black") outline(context, this.pose, "#9aa3ad99");
    const ratio = this.canvas.width / this.size().width;
    context.save();
    context.scale(ratio, ratio);
    if (this.brush) this.#drawBrush(context);
    else this.#drawHandle(context);
    context.restore();
  }

  /** T x on any canvas of its shape, with what covers a part of it. */
  paint(context, pose, cover = null) {
    const [width, height] = [this.cols * this.pixel, this.rows * this.pixel];
    context.fillStyle = this.corners === "mean" ? `rgb(${this.mean.join(" ")})` : "#000";
    context.fillRect(0, 0, context.canvas.width, context.canvas.height);
    context.save();
    enter(context, pose);
    context.imageSmoothingEnabled = false;
    for (const layer of [this.image, cover]) if (layer) context.drawImage(layer, -width / 2, -height / 2, width, height);
    context.restore();
  }

  #drawBrush(context) {
    const { x, y } = this.at ?? this.centre(REST);
    context.beginPath();
    context.arc(x, y, this.brush.radius * this.pose.scale * this.size().side, 0, 7);
    Object.assign(context, { strokeStyle: SALMON, lineWidth: 2 });
    context.stroke();
  }

  #drawHandle(context) {
    const [centre, { x, y }] = [this.centre(), this.handle()];
    Object.assign(context, { strokeStyle: "#ffffffaa", lineWidth: 1.5 });
    context.setLineDash([3, 4]);
    context.beginPath();
    context.moveTo(centre.x, centre.y);
    context.lineTo(x, y);
    context.stroke();
    context.setLineDash([]);
    Object.assign(context, { fillStyle: SALMON, strokeStyle: "#101214", lineWidth: 2 });
    context.beginPath();
    context.arc(x, y, 9, 0, 7);
    context.fill();
    context.stroke();
  }

  /** The canvas as it is shown; `side` is the shorter one. */
  size() {
    const width = shownWidth(this.canvas);
    const height = (width * this.canvas.height) / this.canvas.width;
    return { width, height, side: Math.min(width, height) };
  }

  /** The centre of the picture in a pose. */
  centre(pose = this.pose) {
    const { width, height, side } = this.size();
    return { x: width / 2 + pose.right * side, y: height / 2 + pose.down * side };
  }

  /** Where the handle is that turns the picture. */
  handle() {
    const { width, height, side } = this.size();
    const [centre, turn] = [this.centre(), (this.pose.angle * Math.PI) / 180];
    return {
      x: clamp(centre.x - Math.sin(turn) * REACH * side, [12, width - 12]),
      y: clamp(centre.y - Math.cos(turn) * REACH * side, [12, height - 12]),
    };
  }

  /** Paint instead of moving: `brush` has a radius as a share of the shorter side, and `stroke` is called with each line. */
  painting(brush) {
    this.brush = brush;
    this.canvas.classList.toggle("brushing", Boolean(brush));
    this.draw();
  }

  pointAt(place) {
    this.at = place;
    this.draw();
  }

  stroke(from, to) {
    this.at = to;
    this.brush.stroke(this.#onPicture(from), this.#onPicture(to), this.brush.radius / this.pixel);
  }

  /** Move the brush by half its radius, or hide what is under it. */
  brushKey(way) {
    const { width, height, side } = this.size();
    const [step, at] = [(this.brush.radius * side) / 2, this.at ?? this.centre(REST)];
    if (way) this.pointAt({ x: clamp(at.x + way[0] * step, [0, width]), y: clamp(at.y + way[1] * step, [0, height]) });
    else this.stroke(at, at);
  }

  /** A place on the canvas as a place on x, in its pixels. */
  #onPicture({ x, y }) {
    const [centre, { side }] = [this.centre(), this.size()];
    const turn = (this.pose.angle * Math.PI) / 180;
    const [u, v] = [(x - centre.x) / side, (y - centre.y) / side];
    const [right, down] = [Math.cos(turn) * u - Math.sin(turn) * v, Math.sin(turn) * u + Math.cos(turn) * v];
    const unit = this.pose.scale * this.pixel;
    return { x: right / unit + this.cols / 2, y: down / unit + this.rows / 2 };
  }
}

function meanColour(image, rows, cols) {
  const context = new OffscreenCanvas(cols, rows).getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, cols, rows);
  const total = [0, 0, 0];
  data.forEach((value, i) => i % 4 < 3 && (total[i % 4] += value));
  return total.map((value) => Math.round(value / (rows * cols)));
}
