// Bytes and numbers out of the page's blocks of base64 (base64.h writes them): little endian; counts take
// seven bits a byte, the lowest first.
"use strict";

const digits = new Uint8Array(128);
Array.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  .forEach((c, i) => digits[c.charCodeAt(0)] = i);

function bytesOf(base64) {
  if (Uint8Array.fromBase64)
    return Uint8Array.fromBase64(base64);
  const n = base64.length, pad = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  const out = new Uint8Array(n / 4 * 3);
  for (let i = 0, o = 0; i < n; i += 4) {
    const x = digits[base64.charCodeAt(i) & 127] << 18 | digits[base64.charCodeAt(i + 1) & 127] << 12 |
              digits[base64.charCodeAt(i + 2) & 127] << 6 | digits[base64.charCodeAt(i + 3) & 127];
    out[o++] = x >> 16;
    out[o++] = x >> 8;
    out[o++] = x;
  }
  return out.subarray(0, out.length - pad);
}

function block(name) {
  return document.getElementById(name).textContent;
}

// Computes on the first call.
function once(make) {
  let made;
  return () => made === undefined ? made = make() : made;
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
  }
  count() {
    let x = 0, scale = 1, byte;
    do {
      byte = this.bytes[this.at++];
      x += (byte & 127) * scale;
      scale *= 128;
    } while (byte > 127);
    return x;
  }
  f32() {
    this.at += 4;
    return this.view.getFloat32(this.at - 4, true);
  }
  f64() {
    this.at += 8;
    return this.view.getFloat64(this.at - 8, true);
  }
  list(read) {
    return Array.from({length: this.count()}, read);
  }
}
