// Maps as the server sends them, signed bytes in base64, drawn pixel by pixel.

import { colours } from "./colours.js";

function pixels(map) {
  const bytes = Uint8Array.from(atob(map.data), (letter) => letter.charCodeAt(0));
  return new Int8Array(bytes.buffer);
}

function painted(map) {
  const small = new OffscreenCanvas(map.cols, map.rows);
  const context = small.getContext("2d");
  const image = context.createImageData(map.cols, map.rows);
  const table = colours();
  const target = new Uint32Array(image.data.buffer);
  pixels(map).forEach((value, i) => (target[i] = table[value + 127]));
  context.putImageData(image, 0, 0);
  return small;
}

/** Size a canvas for the screen it is on; true pixels, whatever the zoom. */
export function fitted(canvas, aspect) {
  const width = Math.max(1, Math.round((canvas.clientWidth || 100) * devicePixelRatio));
  const height = Math.max(1, Math.round(width / aspect));
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  return canvas.getContext("2d");
}

/** Draw a map, and the frame of the moved picture around what is valid of it. */
export function drawMap(canvas, map, pose = null) {
  const context = fitted(canvas, map.cols / map.rows);
  context.imageSmoothingEnabled = false;
  context.drawImage(painted(map), 0, 0, canvas.width, canvas.height);
  if (pose && !isIdentity(pose)) outline(context, pose, "#8889");
}

export const isIdentity = (pose) => pose.angle === 0 && pose.right === 0 && pose.down === 0 && pose.scale === 1;

/** The canvas' coordinates become those of the moved picture: centre 0, shorter side 1. */
export function enter(context, pose) {
  const { width, height } = context.canvas;
  const side = Math.min(width, height);
  context.translate(width / 2 + pose.right * side, height / 2 + pose.down * side);
  context.rotate((-pose.angle * Math.PI) / 180);
  context.scale(pose.scale * side, pose.scale * side);
}

export function outline(context, pose, colour) {
  const { width, height } = context.canvas;
  const side = Math.min(width, height);
  context.save();
  enter(context, pose);
  context.strokeStyle = colour;
  context.lineWidth = (1.5 * devicePixelRatio) / (pose.scale * side);
  context.strokeRect(-width / side / 2, -height / side / 2, width / side, height / side);
  context.restore();
}
