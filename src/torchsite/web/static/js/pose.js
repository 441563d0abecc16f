// Poses of the picture and their limits.

const LIMITS = { right: [-0.5, 0.5], down: [-0.5, 0.5], scale: [0.5, 2] };
export const REST = Object.freeze({ angle: 0, right: 0, down: 0, scale: 1 });
export const isAtRest = (pose) => Object.keys(REST).every((name) => pose[name] === REST[name]);
export const clamp = (value, [low, high]) => Math.min(high, Math.max(low, value));

/** A pose within its limits; angles go round. */
export function tidy(pose) {
  const angle = ((((pose.angle + 180) % 360) + 360) % 360) - 180;
  return { angle, ...Object.fromEntries(Object.keys(LIMITS).map((name) => [name, clamp(pose[name], LIMITS[name])])) };
}
