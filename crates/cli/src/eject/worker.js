// Each pattern has `compute`, which leaves the documents that differ as they should be, `write`, which
// writes them, `refused`, which leaves the _ids of documents that the pattern would have refused, and
// `release`, which puts null in place of the references in `$$gone`.
// What a plain server cannot do: a write and what follows from it are not one commit, a reference to
// nothing and a delete of what is referred to (`restrict`) are found afterwards, not refused.
const shop = db.getSiblingDB(database);
const STATE = 'quire.eject';
const PAUSE_MS = 100;
// What the server refuses to write: 121 validation, 11000 duplicate key, 10334 and 17419 size.
const REFUSALS = [121, 11000, 10334, 17419];
// The position is not in the oplog any more.
const LOST = [260, 280, 286];
const collection = (name) => shop.getCollection(name);

function prepare() {
  const there = new Set(shop.getCollectionNames());
  for (const p of patterns.filter((p) => p.from)) {
    for (const name of [p.collection, p.from].filter((name) => !there.has(name))) {
      shop.createCollection(name);
      there.add(name);
    }
    if (p.localField !== '_id') collection(p.collection).createIndex({ [p.localField]: 1 });
    if (p.foreignField !== '_id') collection(p.from).createIndex({ [p.foreignField]: 1 });
    shop.runCommand({ collMod: p.from, changeStreamPreAndPostImages: { enabled: true } });
  }
}

// Returns what differs: { pattern, collection, drift: [_id], refused: [_id] } for each pattern.
function check() {
  const ids = (p, stages) => {
    if (!stages.length) return [];
    const found = collection(p.collection).aggregate([...stages, { $project: { _id: 1 } }], { allowDiskUse: true });
    return found.toArray().map((d) => d._id);
  };
  return patterns.map((p) => ({
    pattern: p.name, collection: p.collection, drift: ids(p, p.compute), refused: ids(p, p.refused),
  }));
}

// Prints what the server refuses to write, and goes on.
function attempt(p, write) {
  try {
    write();
  } catch (error) {
    if (!REFUSALS.includes(error.code)) throw error;
    print(`${p.name}: ${error.message}`);
  }
}

// Writes the documents that differ, of those that match a filter.
function repair(filter = {}, only = patterns) {
  for (const p of only.filter((p) => p.compute.length)) {
    const stages = [{ $match: filter }, ...p.compute, ...p.write];
    attempt(p, () => collection(p.collection).aggregate(stages, { allowDiskUse: true }));
  }
}

// Writes all documents that differ. Patterns can read what others write, so each gets its turn.
function repairAll() {
  patterns.forEach(() => repair());
}

function values(document, path) {
  const step = (found, name) =>
    found.flatMap((v) => (Array.isArray(v) ? v : [v])).map((v) => v?.[name]).filter((v) => v !== undefined && v !== null);
  return path.split('.').reduce(step, document ? [document] : []).flatMap((v) => (Array.isArray(v) ? v : [v]));
}

// Does what follows from one event of a change stream.
function follow(event) {
  // A collection was dropped, renamed or replaced.
  if (!event.documentKey) return repairAll();
  for (const p of patterns) {
    if (event.ns.coll === p.collection && event.operationType !== 'delete') complete(p, event);
    if (event.ns.coll === p.from) spread(p, event);
  }
}

// Completes a document that was written.
function complete(p, event) {
  const changed = Object.keys(event.updateDescription?.updatedFields ?? {});
  // A new reference takes its snapshots anew.
  if (p.snapshots?.length && changed.includes(p.localField)) {
    const snapshots = Object.fromEntries(p.snapshots.map((path) => [path, 1]));
    attempt(p, () => collection(p.collection).updateOne(event.documentKey, { $unset: snapshots }));
  }
  repair(event.documentKey, [p]);
}

// Writes the documents that refer to one that was written.
function spread(p, event) {
  const { operationType, documentKey, fullDocumentBeforeChange: before, fullDocument: after } = event;
  const touched = [...values(before, p.foreignField), ...values(after, p.foreignField)];
  if (operationType === 'delete' && p.foreignField === '_id') touched.push(documentKey._id);
  if (p.onDelete) letGo(p, touched.filter((value) => !collection(p.from).findOne({ [p.foreignField]: value }, { _id: 1 })));
  if (touched.length) repair({ [p.localField]: { $in: touched } }, [p]);
}

// Does what the pattern says about the documents that refer to nothing any more.
function letGo(p, gone) {
  const owners = collection(p.collection);
  const lost = { [p.localField]: { $in: gone } };
  if (!gone.length) return;
  if (p.onDelete === 'cascade') owners.deleteMany(lost);
  if (p.onDelete === 'setNull') attempt(p, () => owners.updateMany(lost, p.release, { let: { gone } }));
  if (p.onDelete === 'restrict' && owners.findOne(lost)) print(`${p.name}: documents of ${p.collection} refer to a deleted document of ${p.from}`);
}

// Follows the changes from a position on until the stream ends.
function followFrom(position) {
  const options = { fullDocument: 'updateLookup', fullDocumentBeforeChange: 'whenAvailable' };
  const stream = shop.watch([{ $match: { 'ns.coll': { $ne: STATE } } }], { ...options, ...position });
  repairAll();
  print('watching');
  while (!stream.isClosed()) {
    const event = stream.tryNext();
    if (event && event.operationType !== 'invalidate') {
      follow(event);
      collection(STATE).updateOne({ _id: 'position' }, { $set: { resumeAfter: event._id } }, { upsert: true });
    } else {
      sleep(PAUSE_MS);
    }
  }
}

// Keeps the patterns. The position is stored, so that the worker can be stopped and started again.
function watch() {
  prepare();
  for (;;) {
    const state = collection(STATE).findOne({ _id: 'position' });
    const now = () => ({ startAtOperationTime: shop.runCommand({ ping: 1 }).operationTime });
    try {
      followFrom(state?.resumeAfter ? { resumeAfter: state.resumeAfter } : now());
    } catch (error) {
      if (!LOST.includes(error.code)) throw error;
      print(`the changes since the last one are lost, and everything is compared: ${error.message}`);
    }
    collection(STATE).deleteOne({ _id: 'position' });
  }
}

const mode = process.env.MODE ?? 'check';
if (mode === 'check') {
  const found = check();
  print(EJSON.stringify(found, null, 2));
  if (found.some((p) => p.drift.length + p.refused.length)) quit(1);
} else if (mode === 'repair') repairAll();
else if (mode === 'watch') watch();
else throw new Error(`MODE is check, repair or watch, not ${mode}`);
