// A pad to draw a digit on. The drawing is brought into the form of the training pictures: its longer side takes
// 20 of 28 pixels, and its centre of mass goes to the middle.

const SIDE = 28;
const BODY = 20;

export class Pad {
  constructor(canvas, drawn) {
    Object.assign(this, { canvas, drawn, last: null });
    this.context = canvas.getContext("2d", { willReadFrequently: true });
    this.clear();
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.last = this.#place(event);
      this.#line(this.last, this.last);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.last) return;
      const place = this.#place(event);
      this.#line(this.last, place);
      this.last = place;
    });
    for (const name of ["pointerup", "pointercancel"])
      canvas.addEventListener(name, () => {
        if (this.last) this.#finish();
        this.last = null;
      });
  }

  clear() {
    this.context.fillStyle = "#000";
    this.context.fillRect(0, 0, this.canvas.width, this.canvas.height);
  }

  #place(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: ((event.clientX - box.left) * this.canvas.width) / box.width, y: ((event.clientY - box.top) * this.canvas.height) / box.height };
  }

  #line(from, to) {
    Object.assign(this.context, { strokeStyle: "#fff", lineWidth: 22, lineCap: "round", lineJoin: "round" });
    this.context.beginPath();
    this.context.moveTo(from.x, from.y);
    this.context.lineTo(to.x, to.y + 0.01);
    this.context.stroke();
  }

  #finish() {
    const ink = measured(this.context);
    if (ink) this.drawn(brought(this.canvas, ink).toDataURL("image/png").split(",")[1]);
  }
}

/** The box around the ink and its centre of mass. */
function measured(context) {
  const { width, height } = context.canvas;
  const { data } = context.getImageData(0, 0, width, height);
  const ink = { left: width, right: -1, top: height, bottom: -1, mass: 0, x: 0, y: 0 };
  for (let i = 0; i < width * height; i++) {
    const value = data[4 * i];
    if (!value) continue;
    const x = i % width;
    const y = Math.floor(i / width);
    ink.left = Math.min(ink.left, x);
    ink.right = Math.max(ink.right, x);
    ink.top = Math.min(ink.top, y);
    ink.bottom = Math.max(ink.bottom, y);
    ink.mass += value;
    ink.x += value * x;
    ink.y += value * y;
  }
  return ink.mass ? { ...ink, x: ink.x / ink.mass, y: ink.y / ink.mass } : null;
}

function brought(source, ink) {
  const factor = BODY / Math.max(ink.right - ink.left + 1, ink.bottom - ink.top + 1);
  let shown = source;
  let scale = factor;
  while (scale < 0.5) { // halving keeps thin lines: a canvas does not average over more than its neighbours
    shown = halved(shown);
    scale *= 2;
  }
  const small = Object.assign(document.createElement("canvas"), { width: SIDE, height: SIDE });
  const context = small.getContext("2d");
  context.fillRect(0, 0, SIDE, SIDE);
  context.imageSmoothingQuality = "high";
  context.drawImage(shown, SIDE / 2 - ink.x * factor, SIDE / 2 - ink.y * factor, source.width * factor, source.height * factor);
  return small;
}

function halved(source) {
  const half = Object.assign(document.createElement("canvas"), { width: source.width / 2, height: source.height / 2 });
  half.getContext("2d").drawImage(source, 0, 0, half.width, half.height);
  return half;
}
