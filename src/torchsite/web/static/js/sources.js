// Where pictures come from: samples, files (chosen, dropped or pasted), the camera, and the pad.

import { Camera } from "./camera.js";
import { byId, make } from "./dom.js";
import { Groups } from "./groups.js";
import { Pad } from "./pad.js";

const TABS = ["samples", "upload", "camera", "draw", "groups"];

export class Sources {
  /** `chosen({sample})`, `chosen({image, …})`, or `sent(file, invert)` for a file that must be prepared. */
  constructor(chosen, sent) {
    Object.assign(this, { chosen, sent, file: null, drawable: false });
    TABS.forEach((name) => byId(`tab-${name}`).addEventListener("click", () => this.#open(name)));
    document.querySelector(".tabs").addEventListener("keydown", (event) => this.#step(event));
    byId("file").addEventListener("change", (event) => this.#take(event.target.files[0]));
    byId("invert").addEventListener("change", () => this.file && this.#send());
    document.addEventListener("paste", (event) => this.#take([...event.clipboardData.files][0]));
    document.addEventListener("dragover", (event) => {
      event.preventDefault();
      document.body.classList.add("dragging");
    });
    document.addEventListener("dragleave", () => document.body.classList.remove("dragging"));
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      document.body.classList.remove("dragging");
      this.#take(event.dataTransfer.files[0]);
    });
    this.pad = new Pad(byId("pad"), (image) => chosen({ image }));
    this.camera = new Camera((picture) => this.#take(picture, "camera"));
    this.groups = new Groups(chosen);
    byId("tab-camera").hidden = !Camera.possible;
    byId("clear").addEventListener("click", () => this.pad.clear());
  }

  /** The samples of a model, and whether one can draw for it. */
  show(model, samples) {
    this.file = null;
    this.drawable = model.draw;
    byId("tab-draw").hidden = !model.draw;
    byId("invert-line").hidden = model.image_shape[0] !== 1;
    this.groups.begin(model.groups);
    for (const name of ["draw", "groups"]) if (byId(`tab-${name}`).hidden && !byId(name).hidden) this.#open("samples");
    byId("samples").replaceChildren(
      ...samples.map((sample) =>
        make(
          "button",
          { type: "button", title: sample.name, "aria-pressed": "false", "data-sample": sample.index, onclick: () => this.chosen({ sample: sample.index }) },
          make("img", { src: `data:image/png;base64,${sample.image}`, alt: `Sample ${sample.index}: ${sample.name}` }),
        ),
      ),
    );
  }

  mark(sample) {
    for (const button of byId("samples").children) button.setAttribute("aria-pressed", String(button.dataset.sample === String(sample)));
  }

  #open(name) {
    if (name === "camera" && byId("camera").hidden) this.camera.start();
    if (name !== "camera") this.camera.stop();
    for (const other of TABS) {
      const tab = byId(`tab-${other}`);
      tab.setAttribute("aria-selected", String(other === name));
      tab.tabIndex = other === name ? 0 : -1;
      byId(other).hidden = other !== name;
    }
  }

  #step(event) {
    const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!way) return;
    const open = TABS.filter((name) => !byId(`tab-${name}`).hidden);
    const at = open.findIndex((name) => byId(`tab-${name}`).getAttribute("aria-selected") === "true");
    const next = open[(at + way + open.length) % open.length];
    this.#open(next);
    byId(`tab-${next}`).focus();
  }

  async #take(file, tab = "upload") {
    if (!file) return;
    this.file = file;
    if (this.drawable) byId("invert").checked = await lightPaper(file);
    this.#open(tab);
    this.#send();
  }

  #send() {
    this.sent(this.file, !byId("invert-line").hidden && byId("invert").checked);
  }
}

/** Whether the margin of a picture is light: ink on paper, where the model knows light on dark. */
async function lightPaper(file) {
  try {
    const picture = await createImageBitmap(file, { resizeWidth: 16, resizeHeight: 16 });
    const canvas = new OffscreenCanvas(16, 16);
    const context = canvas.getContext("2d");
    context.fillStyle = "#fff";
    context.fillRect(0, 0, 16, 16);
    context.drawImage(picture, 0, 0);
    const { data } = context.getImageData(0, 0, 16, 16);
    const margin = [...Array(256).keys()].filter((i) => i % 16 === 0 || i % 16 === 15 || i < 16 || i >= 240);
    return margin.reduce((sum, i) => sum + data[4 * i], 0) / margin.length > 127;
  } catch {
    return false; // no picture: preparing it will say so
  }
}
