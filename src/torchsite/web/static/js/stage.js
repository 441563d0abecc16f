// The picture under the hand: drag, handle, wheel, two fingers, keys. It only says which pose is wanted.

import { enter, fitted, outline } from "./maps.js";

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
    Object.assign(this, { canvas, wanted, pose: { ...REST }, image: null, pixel: 1 / 28, pointers: new Map() });
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
    this.draw();
  }

  draw() {
    if (!this.image) return;
    const { naturalWidth: cols, naturalHeight: rows } = this.image;
    const context = fitted(this.canvas, cols / rows);
    const side = Math.min(cols, rows);
    context.fillStyle = "#000";
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    context.save();
    enter(context, this.pose);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.image, -cols / side / 2, -rows / side / 2, cols / side, rows / side);
    context.restore();
    outline(context, this.pose, "#9aa3ad99");
    this.#drawHandle(context);
  }

  #drawHandle(context) {
    const ratio = this.canvas.width / this.canvas.clientWidth;
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

  #side() {
    return Math.min(this.canvas.clientWidth, this.canvas.clientHeight);
  }

  #centre(pose = this.pose) {
    const side = this.#side();
    return { x: this.canvas.clientWidth / 2 + pose.right * side, y: this.canvas.clientHeight / 2 + pose.down * side };
  }

  #handle() {
    const centre = this.#centre();
    const turn = (this.pose.angle * Math.PI) / 180;
    const reach = REACH * this.#side();
    return {
      x: clamp(centre.x - Math.sin(turn) * reach, [12, this.canvas.clientWidth - 12]),
      y: clamp(centre.y - Math.cos(turn) * reach, [12, this.canvas.clientHeight - 12]),
    };
  }

  #place(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** What a gesture starts from: pointers, pose, and whether the handle was taken. */
  #down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    const place = this.#place(event);
    this.pointers.set(event.pointerId, place);
    const handle = this.#handle();
    this.turning = this.pointers.size === 1 && Math.hypot(place.x - handle.x, place.y - handle.y) < GRIP;
    this.canvas.classList.toggle("turning", this.turning);
    this.#begin();
  }

  #begin() {
    this.start = { pose: { ...this.pose }, points: [...this.pointers.values()] };
  }

  #move(event) {
    if (!this.pointers.has(event.pointerId)) return;
    this.pointers.set(event.pointerId, this.#place(event));
    const points = [...this.pointers.values()];
    if (points.length === 2) this.#pinch(points);
    else if (this.turning) this.#turn(points[0]);
    else this.#shift(points[0]);
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
}
