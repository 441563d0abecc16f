// Bytes as text and back.

export const toBytes = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
export const toBase64 = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));

/** A PNG in base64 as a file. */
export const toPng = (base64) => new Blob([toBytes(base64)], { type: "image/png" });
