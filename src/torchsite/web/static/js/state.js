// All that the page shows follows from this one value, and a link holds it.

import { REST, tidy } from "./pose.js";

const POSE = Object.keys(REST);
const MAX_LINK = 12_000; // longer ones are cut by programs that pass them on

export const START = Object.freeze({ model: null, sample: 0, image: null, ...REST, of: null, against: null, first: null, second: null, corners: "black", hidden: null, over: 1 });

export const poseOf = (state) => Object.fromEntries(POSE.map((name) => [name, state[name]]));

const toUrl = (text) => text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
const fromUrl = (text) => text.replaceAll("-", "+").replaceAll("_", "/");
const padded = (text) => text + "=".repeat((4 - (text.length % 4)) % 4);

/** The state behind the `#` of an address; what is missing or makes no sense is as at the start. */
export function fromAddress(hash) {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...START };
  for (const name of ["model", "of", "against", "first", "second"]) if (said.get(name)) state[name] = said.get(name);
  for (const name of POSE) {
    const value = Number(said.get(name) ?? NaN);
    if (Number.isFinite(value)) state[name] = value;
  }
  Object.assign(state, tidy(poseOf(state)));
  if (said.get("corners") === "mean") state.corners = "mean";
  const over = Number(said.get("over") ?? NaN);
  if (over >= 0 && over <= 1) state.over = over;
  if (/^[\w-]+$/.test(said.get("hidden") ?? "")) state.hidden = padded(fromUrl(said.get("hidden")));
  if (/^\d+$/.test(said.get("sample") ?? "")) state.sample = Number(said.get("sample"));
  if (/^[\w-]+$/.test(said.get("image") ?? "")) Object.assign(state, { image: padded(fromUrl(said.get("image"))), sample: null });
  return state;
}

/** The address of a state; null for the picture if it is too large for a link. */
export function toAddress(state) {
  const said = new URLSearchParams();
  if (state.model) said.set("model", state.model);
  if (state.image) {
    if (state.image.length < MAX_LINK) said.set("image", toUrl(state.image));
  } else said.set("sample", String(state.sample));
  for (const name of POSE) if (state[name] !== REST[name]) said.set(name, String(Math.round(state[name] * 1000) / 1000));
  for (const name of ["of", "against", "first", "second"]) if (state[name] !== null) said.set(name, state[name]);
  if (state.corners !== START.corners) said.set("corners", state.corners);
  if (state.over !== START.over) said.set("over", String(state.over));
  if (state.hidden && state.hidden.length < MAX_LINK) said.set("hidden", toUrl(state.hidden));
  return `#${said}`;
}

export const fitsALink = (state) => !state.image || state.image.length < MAX_LINK;
