// The two functions that the driver calls of @mongodb-js/zstd, over WebAssembly: the package of that name fetches a
// native library from outside the registry, which not every machine can reach.
const { init, compress, decompress } = require('@bokuweb/zstd-wasm');

const ready = init();

exports.compress = async (buffer, level) => {
  await ready;
  return Buffer.from(compress(buffer, level));
};

exports.decompress = async (buffer) => {
  await ready;
  return Buffer.from(decompress(buffer));
};
