// The page: one state, one place that changes it, and everything else follows.

import { answers } from "./answers.js";
import { Mask, showBrushed } from "./brush.js";
import { Chart } from "./chart.js";
import { onTheme } from "./colours.js";
import { offer, showControls } from "./controls.js";
import { byId, fill, settled } from "./dom.js";
import { Hand } from "./hand.js";
import { Latest } from "./latest.js";
import { look } from "./maps.js";
import { ClassBars, showDetails, showWhy, tellDetails } from "./panels.js";
import { Row, titled } from "./rows.js";
import { REST, tidy } from "./pose.js";
import { copyLink, remember } from "./sharing.js";
import { Sources } from "./sources.js";
import { Stage } from "./stage.js";
import { START, fromAddress, poseOf } from "./state.js";
import { complain, count, showSeen, speak } from "./status.js";

const SWEEP_STEP = 6;
const REST_MILLISECONDS = 350;

const page = { state: { ...START }, source: null, models: [], samples: [], answer: null, pose: null, mask: null, runnerUp: null, sweeping: false };
const stage = new Stage(byId("stage"));
const rows = { first: new Row("first", (value) => change({ first: value })), second: new Row("second", (value) => change({ second: value })) };
const bars = new ClassBars((index) => change({ of: page.state.of === names()[index] ? null : names()[index] }));
const chart = new Chart();
const sources = new Sources(choosePicture, sendFile);
const explained = (asked) => page.source.explain(asked.model, asked.question);
const live = new Latest(explained, showAnswer, complain);
const late = new Latest(explained, showLate, complain);

const model = (name = page.state.model) => page.models.find((one) => one.name === name);
const names = () => model().classes;
const isLive = (choice) => {
  const [method, owner] = choice.split("@");
  return model(owner)?.methods.find((one) => one.name === method)?.live ?? true;
};

/** The only way to change what is shown. */
function change(changes) {
  Object.assign(page.state, changes);
  showState();
  ask();
  remember(page.state);
}

/** Controls and stage as the state says. */
function showState() {
  const { state } = page;
  showControls(state);
  look.opacity = state.over;
  sources.mark(state.image ? null : state.sample);
  Object.assign(stage, { pose: poseOf(state), corners: state.corners, cover: state.hidden ? page.mask.painted(stage.mean) : null });
  stage.draw();
}

function choosePicture({ sample = null, image = null, of = null, hidden = null }) {
  page.runnerUp = null;
  Object.assign(page.state, { hidden });
  takeMask();
  change({ sample, image, of, against: null });
  showPicture();
}

async function sendFile(file, invert) {
  try {
    const image = await page.source.prepare(page.state.model, file, invert);
    complain(null);
    choosePicture({ image });
  } catch (error) {
    complain(error);
  }
}

function question(methods) {
  const { sample, image, of, against, corners, hidden } = page.state;
  const asked = { ...poseOf(page.state), methods, class: of, against: against ?? page.runnerUp, corners, hidden, pictures: false };
  return image ? { ...asked, image } : { ...asked, sample };
}

const places = () => ["first", "second"].filter((place) => page.state[place]);
const choices = () => places().map((place) => page.state[place]);

function ask() {
  const methods = choices().filter(isLive);
  if (!methods.length) methods.push(`${model().kind === "site" ? "self_explanation" : "grad_cam"}@${model().name}`);
  const asked = { model: page.state.model, question: question(methods), pose: poseOf(page.state) };
  for (const place of places())
    if (!isLive(page.state[place])) rows[place].stale("This method takes many passes: it is computed when the picture rests.");
  askLate();
  return live.want(asked);
}

/** What takes many passes is asked when the picture rests: slow methods and, with a server, hiding patches. */
const lateQuestion = (methods) => (page.source.posthoc ? { ...question(methods), hiding: true } : question(methods));
const askLate = settled(() => {
  const methods = page.source.posthoc ? [...new Set(choices())] : choices().filter((choice) => !isLive(choice));
  if (methods.length && !page.sweeping) late.want({ model: page.state.model, question: lateQuestion(methods), pose: poseOf(page.state) });
}, REST_MILLISECONDS);

function showRows(answer, pose) {
  for (const place of places()) {
    const [method, owner] = page.state[place].split("@");
    const found = answer.rows.find((row) => row.method === method && row.model === owner);
    const reason = answer.skipped[page.state[place]];
    if (found) rows[place].show(found, pose, answer.model);
    else if (reason) rows[place].stale(`It does not apply here: ${reason}`);
  }
}

function showAnswer(answer, asked) {
  if (asked.model !== page.state.model) return;
  complain(null);
  Object.assign(page, { answer, pose: asked.pose });
  showRows(answer, asked.pose);
  showPanels();
  showBrushed(answer, names());
  showSeen(answer, names());
  if (page.sweeping) chart.add(asked.pose.angle, answer.rows, answer.rows.map((row) => titled(row.method, row.model, answer.model)));
  followRunnerUp(answer);
  count();
  speak(answer, names());
}

function showLate(answer, asked) {
  const current = JSON.stringify(asked.question) === JSON.stringify(lateQuestion(asked.question.methods));
  if (asked.model === page.state.model && current) showRows(answer, asked.pose);
}

/** Unless the user chose one, the explained class is compared with the next best one. */
function followRunnerUp(answer) {
  const order = answer.still.logits.map((logit, i) => [logit, i]).sort(([a], [b]) => b - a).map(([, i]) => i);
  const next = names()[order.find((index) => index !== answer.explained)];
  byId("why-for").value = names()[answer.explained];
  byId("why-against").value = page.state.against ?? next;
  if (page.state.against === null && page.runnerUp !== next) {
    page.runnerUp = next;
    ask();
  }
}

async function showPicture() {
  const data = page.state.image ?? page.samples[page.state.sample]?.image;
  if (!data) return;
  const picture = new Image();
  picture.src = `data:image/png;base64,${data}`;
  try {
    await picture.decode();
  } catch {
    return complain(new Error("The picture in this link is damaged."));
  }
  stage.show(picture, poseOf(page.state));
  showState();
}

/** The mask of the state, or none if it does not belong to the model's pictures. */
function takeMask() {
  const [, height, width] = model().image_shape;
  page.mask = page.state.hidden && Mask.from(page.state.hidden, height, width);
  page.state.hidden = page.mask?.toBase64() ?? null;
}

function paint(from, to, radius) {
  const [, height, width] = model().image_shape;
  page.mask ??= new Mask(height, width);
  page.mask.stroke(from, to, radius);
  change({ hidden: page.mask.toBase64() });
}

function brush(on) {
  byId("brush").setAttribute("aria-pressed", String(on));
  byId("brush-line").hidden = !on;
  stage.painting(on ? { radius: Number(byId("radius").value), stroke: paint } : null);
}

/** Turn to a model: its samples, its explainers, its classes. */
async function open(name) {
  const chosen = model(name) ?? model("mnist") ?? page.models[0];
  const changed = page.state.model !== null && page.state.model !== chosen.name;
  page.samples = await page.source.samples(chosen.name);
  Object.assign(page.state, { model: chosen.name }, changed ? { first: null, second: null } : {});
  if (page.state.sample !== null && page.state.sample >= page.samples.length) page.state.sample = 0;
  byId("model").value = chosen.name;
  takeMask();
  Object.assign(page.state, offer(chosen, page.models, page.state, rows, page.source.posthoc));
  sources.show(chosen, page.samples);
  bars.begin(chosen.classes);
  for (const id of ["why-for", "why-against"]) fill(byId(id), chosen.classes.map((name) => [name, name]));
  tellDetails(chosen);
  chart.begin(chosen.max_rotation);
  const explains = chosen.kind === "site";
  for (const id of ["class", "why"]) byId(id).hidden = !explains;
  byId("evidence-title").textContent = explains ? "The logits are the sums of their heatmaps" : "The logits";
  byId("evidence-hint").textContent = explains
    ? "Each bar adds up the pixels of the map beside it. Choose a class to look at it."
    : "A black box has no maps that add up to its logits. Choose a class to explain it.";
  await showPicture();
  change({});
}

async function sweep() {
  if (page.sweeping) return (page.sweeping = false);
  page.sweeping = true;
  byId("sweep").setAttribute("aria-pressed", "true");
  byId("sweep").textContent = "Stop";
  chart.begin(model().max_rotation);
  const { angle } = page.state;
  for (let turned = -180; turned <= 180 && page.sweeping; turned += SWEEP_STEP) {
    Object.assign(page.state, { angle: turned });
    showState();
    await ask();
  }
  page.sweeping = false;
  byId("sweep").setAttribute("aria-pressed", "false");
  byId("sweep").textContent = "Sweep";
  change({ angle });
}

/** Everything that follows from the answer alone. */
function showPanels() {
  bars.show(page.answer);
  showDetails(page.answer, page.pose);
  showWhy(page.answer, names(), page.pose);
}

function redraw() {
  if (!page.answer) return;
  for (const row of Object.values(rows)) row.redraw();
  showPanels();
}

function wire() {
  const on = (id, name, work) => byId(id).addEventListener(name, work);
  new Hand(stage, (pose) => change(tidy(pose)));
  for (const place of ["first", "second"]) byId("rows").append(rows[place].element);
  for (const name of Object.keys(REST)) on(name, "input", (event) => change({ [name]: Number(event.target.value) }));
  on("reset", "click", () => change({ ...REST }));
  on("sweep", "click", sweep);
  on("share", "click", () => copyLink(page.state).catch(complain));
  on("why-for", "change", (event) => change({ of: event.target.value }));
  on("why-against", "change", (event) => change({ against: event.target.value }));
  on("model", "change", (event) => {
    page.runnerUp = null;
    Object.assign(page.state, { of: null, against: null, image: null, hidden: null, sample: page.state.sample ?? 0 });
    open(event.target.value).catch(complain);
  });
  on("frame", "change", (event) => change({ corners: event.target.checked ? "mean" : "black" }));
  on("brush", "click", (event) => brush(event.currentTarget.getAttribute("aria-pressed") !== "true"));
  on("radius", "input", () => brush(true));
  on("unhide", "click", () => {
    page.mask = null;
    change({ hidden: null });
  });
  on("over", "input", (event) => {
    page.state.over = Number(event.target.value);
    showState();
    redraw();
    remember(page.state);
  });
  look.paint = (context, pose) => stage.image && stage.paint(context, pose);
  onTheme(redraw);
  addEventListener("resize", settled(redraw, 150));
  addEventListener("hashchange", () => {
    Object.assign(page, { state: fromAddress(location.hash), runnerUp: null });
    open(page.state.model).catch(complain);
  });
}

async function start() {
  wire();
  page.source = await answers();
  byId("docs").hidden = !page.source.posthoc;
  byId("where").textContent = page.source.posthoc ? "Everything is computed on this server; no picture is kept." : "Everything is computed in this browser; nothing is sent anywhere.";
  page.models = await page.source.models();
  fill(byId("model"), page.models.map((one) => [one.name, `${one.name.replaceAll("_", " ")}${one.kind === "site" ? " (SITE)" : ""}`]));
  page.state = fromAddress(location.hash);
  await open(page.state.model);
}

start().catch(complain);
