// Drag, handle, wheel, two fingers and keys: each asks for a pose, or moves the brush.

import { REST, clamp } from "./pose.js";

const GRIP = 22; // how near a pointer must come to the handle, in CSS pixels
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const degrees = (radians) => (radians * 180) / Math.PI;
const bearing = (from, to) => Math.atan2(to.y - from.y, to.x - from.x);
const length = (from, to) => Math.max(1, Math.hypot(to.x - from.x, to.y - from.y));

export class Hand {
  /** `wanted(pose)` gets every pose that the hand asks for. */
  constructor(stage, wanted) {
    Object.assign(this, { stage, wanted, pointers: new Map(), turning: false });
    const { canvas } = stage;
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.#up(event));
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("dblclick", () => wanted({ ...REST }));
  }

  /** Where a pointer is on the canvas, which does not move while it is held. */
  #place(event) {
    if (!this.pointers.size) this.box = this.stage.canvas.getBoundingClientRect();
    return { x: event.clientX - this.box.left, y: event.clientY - this.box.top };
  }

  #down(event) {
    const { stage } = this;
    stage.canvas.setPointerCapture(event.pointerId);
    const place = this.#place(event);
    this.pointers.set(event.pointerId, place);
    if (stage.brush) return stage.stroke(place, place);
    const handle = stage.handle();
    this.turning = this.pointers.size === 1 && Math.hypot(place.x - handle.x, place.y - handle.y) < GRIP;
    stage.canvas.classList.toggle("turning", this.turning);
    this.#begin();
  }

  /** A gesture starts from the pointers and the pose of now. */
  #begin() {
    this.start = { pose: { ...this.stage.pose }, points: [...this.pointers.values()] };
  }

  #up(event) {
    this.pointers.delete(event.pointerId);
    this.turning = false;
    this.stage.canvas.classList.remove("turning");
    this.#begin();
  }

  #move(event) {
    const from = this.pointers.get(event.pointerId);
    if (!from) return this.stage.brush && this.stage.pointAt(this.#place(event));
    const place = this.#place(event);
    this.pointers.set(event.pointerId, place);
    if (this.stage.brush) return this.stage.stroke(from, place);
    const [a, b] = this.pointers.values();
    if (b) this.#pinch(a, b);
    else if (this.turning) this.#turn(a);
    else this.#shift(a);
  }

  #shift(point) {
    const { pose, points: [first] } = this.start;
    const { side } = this.stage.size();
    this.wanted({ ...pose, right: pose.right + (point.x - first.x) / side, down: pose.down + (point.y - first.y) / side });
  }

  #turn(point) {
    const { pose, points: [first] } = this.start;
    const centre = this.stage.centre(pose);
    this.wanted({ ...pose, angle: pose.angle - degrees(bearing(centre, point) - bearing(centre, first)) });
  }

  #pinch(a, b) {
    const { pose, points: [c, d] } = this.start;
    if (!d) return;
    const { side } = this.stage.size();
    this.wanted({
      angle: pose.angle - degrees(bearing(a, b) - bearing(c, d)),
      scale: (pose.scale * length(a, b)) / length(c, d),
      right: pose.right + (a.x + b.x - c.x - d.x) / 2 / side,
      down: pose.down + (a.y + b.y - c.y - d.y) / 2 / side,
    });
  }

  #wheel(event) {
    event.preventDefault();
    const { pose } = this.stage;
    const turn = event.deltaY || event.deltaX; // some systems scroll sideways while Shift is held
    if (event.shiftKey || event.ctrlKey) this.wanted({ ...pose, scale: pose.scale * Math.exp(-turn / 1000) });
    else this.wanted({ ...pose, angle: pose.angle - clamp(turn / 20, [-15, 15]) });
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { pose, pixel, brush } = this.stage;
    const way = ARROWS[event.key];
    if (brush && (way || event.key === " ")) {
      event.preventDefault();
      return this.stage.brushKey(way);
    }
    const wanted = way
      ? { right: pose.right + way[0] * pixel, down: pose.down + way[1] * pixel }
      : {
          "[": { angle: pose.angle + 5 },
          "]": { angle: pose.angle - 5 },
          "+": { scale: pose.scale * 1.05 },
          "=": { scale: pose.scale * 1.05 },
          "-": { scale: pose.scale / 1.05 },
          0: REST,
          Home: REST,
        }[event.key];
    if (!wanted) return;
    event.preventDefault();
    this.wanted({ ...pose, ...wanted });
  }
}
