// The picture under the hand: drag, handle, wheel, two fingers, keys. It only says which pose is wanted.

import { enter, fitted, outline, shownWidth } from "./maps.js";

const REACH = 0.36; // where the handle stands, from the centre, in shorter sides
const GRIP = 22; // how near a pointer must come to it, in CSS pixels
const LIMITS = { right: [-0.5, 0.5], down: [-0.5, 0.5], scale: [0.5, 2] };
export const REST = Object.freeze({ angle: 0, right: 0, down: 0, scale: 1 });

const clamp = (value, [low, high]) => Math.min(high, Math.max(low, value));
const degrees = (radians) => (radians * 180) / Math.PI;

/** A pose within its limits; angles go round. */
export function tidy(pose) {
  const angle = ((((pose.angle + 180) % 360) + 360) % 360) - 180;
  return { angle, ...Object.fromEntries(Object.keys(LIMITS).map((name) => [name, clamp(pose[name], LIMITS[name])])) };
}

export class Stage {
  constructor(canvas, wanted) {
    Object.assign(this, { canvas, wanted, pose: { ...REST }, image: null, mean: [0, 0, 0], pixel: 1 / 28, pointers: new Map() });
    Object.assign(this, { corners: "black", cover: null, brush: null, at: null });
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.#up(event));
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("dblclick", () => this.wanted({ ...REST }));
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  show(image, pose) {
    Object.assign(this, { image, pose });
    this.pixel = 1 / Math.min(image.naturalWidth, image.naturalHeight);
    this.mean = meanColour(image);
    this.draw();
  }

  draw() {
    if (!this.image) return;
    const { naturalWidth: cols, naturalHeight: rows } = this.image;
    const context = fitted(this.canvas, cols / rows);
    this.paint(context, this.pose, this.cover);
    if (this.corners === "black") outline(context, this.pose, "#9aa3ad99");
    if (this.brush) this.#drawBrush(context);
    else this.#drawHandle(context);
  }

  /** T x on any canvas of its shape, with what covers a part of it. */
  paint(context, pose, cover = null) {
    const { naturalWidth: cols, naturalHeight: rows } = this.image;
    const side = Math.min(cols, rows);
    context.fillStyle = this.corners === "mean" ? `rgb(${this.mean.join(" ")})` : "#000";
    context.fillRect(0, 0, context.canvas.width, context.canvas.height);
    context.save();
    enter(context, pose);
    context.imageSmoothingEnabled = false;
    for (const layer of [this.image, cover]) if (layer) context.drawImage(layer, -cols / side / 2, -rows / side / 2, cols / side, rows / side);
    context.restore();
  }

  /** Paint instead of moving: `brush` has a radius as a share of the shorter side and is told of every stroke. */
  painting(brush) {
    this.brush = brush;
    this.canvas.classList.toggle("brushing", Boolean(brush));
    this.draw();
  }

  #drawBrush(context) {
    const ratio = this.canvas.width / this.#size().width;
    const { x, y } = this.at ?? this.#centre(REST);
    context.beginPath();
    context.arc(x * ratio, y * ratio, this.brush.radius * this.pose.scale * this.#side() * ratio, 0, 7);
    context.strokeStyle = "#f4a582";
    context.lineWidth = 2 * ratio;
    context.stroke();
  }

  /** A place on the canvas as a place on x, in its pixels. */
  #onPicture({ x, y }) {
    const side = this.#side();
    const { pose, pixel } = this;
    const turn = (pose.angle * Math.PI) / 180;
    const centre = this.#centre();
    const [u, v] = [(x - centre.x) / side, (y - centre.y) / side];
    const [across, along] = [Math.cos(turn) * u - Math.sin(turn) * v, Math.sin(turn) * u + Math.cos(turn) * v];
    const { naturalWidth: cols, naturalHeight: rows } = this.image;
    return { x: across / pose.scale / pixel + cols / 2, y: along / pose.scale / pixel + rows / 2 };
  }

  #stroke(from, to) {
    this.at = to;
    this.brush.stroke(this.#onPicture(from), this.#onPicture(to), this.brush.radius / this.pixel);
  }

  #drawHandle(context) {
    const ratio = this.canvas.width / this.#size().width;
    const { x, y } = this.#handle();
    const centre = this.#centre();
    context.strokeStyle = "#ffffffaa";
    context.lineWidth = 1.5 * ratio;
    context.setLineDash([3 * ratio, 4 * ratio]);
    context.beginPath();
    context.moveTo(centre.x * ratio, centre.y * ratio);
    context.lineTo(x * ratio, y * ratio);
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    context.arc(x * ratio, y * ratio, 9 * ratio, 0, 7);
    context.fillStyle = "#f4a582";
    context.fill();
    context.strokeStyle = "#101214";
    context.lineWidth = 2 * ratio;
    context.stroke();
  }

  /** In CSS pixels. */
  #size() {
    const width = shownWidth(this.canvas);
    return { width, height: (width * this.canvas.height) / this.canvas.width };
  }

  #side() {
    const { width, height } = this.#size();
    return Math.min(width, height);
  }

  #centre(pose = this.pose) {
    const { width, height } = this.#size();
    const side = Math.min(width, height);
    return { x: width / 2 + pose.right * side, y: height / 2 + pose.down * side };
  }

  #handle() {
    const centre = this.#centre();
    const turn = (this.pose.angle * Math.PI) / 180;
    const { width, height } = this.#size();
    const reach = REACH * Math.min(width, height);
    return {
      x: clamp(centre.x - Math.sin(turn) * reach, [12, width - 12]),
      y: clamp(centre.y - Math.cos(turn) * reach, [12, height - 12]),
    };
  }

  /** Where a pointer is on the canvas, which does not move while it is held. */
  #place(event) {
    if (!this.pointers.size) this.box = this.canvas.getBoundingClientRect();
    const { box } = this;
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** What a gesture starts from: pointers, pose, and whether the handle was taken. */
  #down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    const place = this.#place(event);
    this.pointers.set(event.pointerId, place);
    if (this.brush) return this.#stroke(place, place);
    const handle = this.#handle();
    this.turning = this.pointers.size === 1 && Math.hypot(place.x - handle.x, place.y - handle.y) < GRIP;
    this.canvas.classList.toggle("turning", this.turning);
    this.#begin();
  }

  #begin() {
    this.start = { pose: { ...this.pose }, points: [...this.pointers.values()] };
  }

  #move(event) {
    if (this.brush) return this.#follow(event);
    if (!this.pointers.has(event.pointerId)) return;
    this.pointers.set(event.pointerId, this.#place(event));
    const points = [...this.pointers.values()];
    if (points.length === 2) this.#pinch(points);
    else if (this.turning) this.#turn(points[0]);
    else this.#shift(points[0]);
  }

  /** The brush goes where the pointer goes, and hides where it is pressed. */
  #follow(event) {
    const place = this.#place(event);
    const from = this.pointers.get(event.pointerId);
    if (from) {
      this.pointers.set(event.pointerId, place);
      return this.#stroke(from, place);
    }
    this.at = place;
    this.draw();
  }

  #up(event) {
    this.pointers.delete(event.pointerId);
    this.turning = false;
    this.canvas.classList.remove("turning");
    this.#begin();
  }

  #shift(point) {
    const { pose, points } = this.start;
    const side = this.#side();
    this.wanted({ ...pose, right: pose.right + (point.x - points[0].x) / side, down: pose.down + (point.y - points[0].y) / side });
  }

  #turn(point) {
    const { pose, points } = this.start;
    const centre = this.#centre(pose);
    const bearing = (p) => Math.atan2(p.y - centre.y, p.x - centre.x);
    this.wanted({ ...pose, angle: pose.angle - degrees(bearing(point) - bearing(points[0])) });
  }

  #pinch([a, b]) {
    const { pose, points: [c, d] } = this.start;
    if (!d) return;
    const side = this.#side();
    const bearing = (p, q) => Math.atan2(q.y - p.y, q.x - p.x);
    const length = (p, q) => Math.max(1, Math.hypot(q.x - p.x, q.y - p.y));
    this.wanted({
      angle: pose.angle - degrees(bearing(a, b) - bearing(c, d)),
      scale: (pose.scale * length(a, b)) / length(c, d),
      right: pose.right + (a.x + b.x - c.x - d.x) / 2 / side,
      down: pose.down + (a.y + b.y - c.y - d.y) / 2 / side,
    });
  }

  #wheel(event) {
    event.preventDefault();
    const turn = event.deltaY || event.deltaX; // some systems scroll sideways while Shift is held
    if (event.shiftKey || event.ctrlKey) this.wanted({ ...this.pose, scale: this.pose.scale * Math.exp(-turn / 1000) });
    else this.wanted({ ...this.pose, angle: this.pose.angle - clamp(turn / 20, [-15, 15]) });
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (this.brush && this.#brushKey(event)) return event.preventDefault();
    const { pose, pixel } = this;
    const changes = {
      ArrowLeft: { right: pose.right - pixel },
      ArrowRight: { right: pose.right + pixel },
      ArrowUp: { down: pose.down - pixel },
      ArrowDown: { down: pose.down + pixel },
      "[": { angle: pose.angle + 5 },
      "]": { angle: pose.angle - 5 },
      "+": { scale: pose.scale * 1.05 },
      "=": { scale: pose.scale * 1.05 },
      "-": { scale: pose.scale / 1.05 },
      0: REST,
      Home: REST,
    }[event.key];
    if (!changes) return;
    event.preventDefault();
    this.wanted({ ...pose, ...changes });
  }

  /** Arrows move the brush, the space bar hides. */
  #brushKey({ key }) {
    const step = (this.brush.radius * this.#side()) / 2;
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
    const { width, height } = this.#size();
    this.at ??= this.#centre(REST);
    if (way) this.at = { x: clamp(this.at.x + way[0] * step, [0, width]), y: clamp(this.at.y + way[1] * step, [0, height]) };
    if (key === " ") this.#stroke(this.at, this.at);
    this.draw();
    return Boolean(way) || key === " ";
  }
}

function meanColour(image) {
  const { naturalWidth: cols, naturalHeight: rows } = image;
  const context = new OffscreenCanvas(cols, rows).getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, cols, rows);
  const total = [0, 0, 0];
  for (let i = 0; i < data.length; i += 4) for (let k = 0; k < 3; k++) total[k] += data[i + k];
  return total.map((value) => Math.round(value / (rows * cols)));
}
