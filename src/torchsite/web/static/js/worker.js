// The model in a thread of its own: questions are answered one after the other.

import * as ort from "../../page/ort.js";
import { toPng } from "./base64.js";
import { Shapes, answer, floats } from "./engine.js";

const home = new URL("../../page/", import.meta.url);
ort.env.wasm.numThreads = 1; // more need headers that a plain server of files does not send
ort.env.wasm.wasmPaths = { wasm: new URL("ort-wasm-simd-threaded.wasm", home).href };
const started = start();
let last = null; // the picture of the last question, and what the model answered for it

async function start() {
  const [page, session] = await Promise.all([
    fetch(new URL("page.json", home)).then((response) => response.json()),
    ort.InferenceSession.create(new URL("model.onnx", home).href, { executionProviders: ["wasm"] }),
  ]);
  const shapes = new Shapes(page);
  const others = page.partners.map((partner) => shapes.enlarged(floats(partner)));
  return { page, session, shapes, others };
}

/** One picture through the model: its outputs as plain numbers. */
async function run({ session, shapes }, picture) {
  const input = new ort.Tensor("float32", picture, [1, shapes.channels, shapes.rows, shapes.cols]);
  const found = await session.run({ images: input });
  return Object.fromEntries(Object.entries(found).map(([name, tensor]) => [name, tensor.data]));
}

/** A PNG file as the model takes it: channel by channel, in [0, 1]. */
async function decoded(base64, { channels, rows, cols }) {
  const bitmap = await createImageBitmap(toPng(base64), { colorSpaceConversion: "none" });
  if (bitmap.width !== cols || bitmap.height !== rows) throw new Error(`The picture has ${bitmap.width}×${bitmap.height} pixels, the model takes ${cols}×${rows}.`);
  const context = new OffscreenCanvas(cols, rows).getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const { data } = context.getImageData(0, 0, cols, rows);
  return Float32Array.from({ length: channels * rows * cols }, (_, i) => data[4 * (i % (rows * cols)) + Math.floor(i / (rows * cols))] / 255);
}

async function still(ready, image) {
  if (last?.image !== image) {
    const picture = await decoded(image, ready.shapes);
    last = { image, picture, run: await run(ready, picture) };
  }
  return last;
}

async function explain(question) {
  const ready = await started;
  const { samples } = ready.page;
  const image = question.image ?? samples[question.sample]?.image;
  if (!image) throw new Error(`There is no sample ${question.sample}.`);
  const others = ready.others.filter((_, i) => samples[i].image !== image);
  const found = await answer(ready.shapes, question, await still(ready, image), (picture) => run(ready, picture), others);
  const name = ready.page.model.name;
  return { ...found, model: name, rows: found.rows.map((row) => ({ ...row, model: name })) };
}

let queue = Promise.resolve();
onmessage = ({ data: { id, question } }) => {
  queue = queue.then(() =>
    explain(question).then(
      (answer) => postMessage({ id, answer }),
      (error) => postMessage({ id, error: error.message }),
    ),
  );
};
