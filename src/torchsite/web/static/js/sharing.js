// What leaves the page: the link to its state.

import { byId, settled } from "./dom.js";
import { fitsALink, toAddress } from "./state.js";

/** Put the state into the address, once it has been steady for a while. */
export const remember = settled((state) => history.replaceState(null, "", toAddress(state)), 250);

/** Copy the link to a state; fails if its picture is too large for a link. */
export async function copyLink(state) {
  history.replaceState(null, "", toAddress(state));
  if (!fitsALink(state)) throw new Error("This picture is too large for a link: the link holds everything else.");
  try {
    await navigator.clipboard.writeText(location.href); // only on https and on this machine
    byId("share").textContent = "Copied";
  } catch {
    byId("share").textContent = "It is in the address bar";
  }
  setTimeout(() => (byId("share").textContent = "Copy link"), 2500);
}
