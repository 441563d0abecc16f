// Pictures from the camera: shown while it is on, taken with a button, never kept.

import { byId } from "./dom.js";

export class Camera {
  /** `taken(file)` gets a picture of the camera. */
  constructor(taken) {
    this.taken = taken;
    this.video = byId("video");
    byId("take").addEventListener("click", () => this.#take());
  }

  /** Browsers offer a camera to pages of this machine and of https only. */
  static get possible() {
    return Boolean(navigator.mediaDevices?.getUserMedia);
  }

  async start() {
    byId("take").disabled = true;
    try {
      this.video.srcObject = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
      await this.video.play();
      byId("take").disabled = false;
      byId("camera-note").textContent = "Show something of a class that the model knows.";
    } catch (error) {
      byId("camera-note").textContent = `The camera gives no picture: ${error.message}`;
    }
  }

  stop() {
    this.video.srcObject?.getTracks().forEach((track) => track.stop());
    this.video.srcObject = null;
  }

  async #take() {
    const { videoWidth: width, videoHeight: height } = this.video;
    const canvas = new OffscreenCanvas(width, height);
    canvas.getContext("2d").drawImage(this.video, 0, 0);
    this.taken(await canvas.convertToBlob({ type: "image/png" }));
  }
}
