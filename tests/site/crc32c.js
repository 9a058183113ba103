// The function of the package crc32c, which is on Pyodide's server: CRC-32C of an object with Python's buffer interface.
(() => {
  const step = (bits) => (bits >>> 1) ^ (bits & 1 ? 0x82f63b78 : 0);
  const table = Int32Array.from({ length: 256 }, (_, n) => Array(8).fill(step).reduce((bits, f) => f(bits), n));
  return (bytes) => {
    const view = bytes.getBuffer("u8");
    let crc = -1;
    for (const byte of view.data) crc = table[(crc ^ byte) & 255] ^ (crc >>> 8);
    view.release();
    return ~crc >>> 0;
  };
})()
