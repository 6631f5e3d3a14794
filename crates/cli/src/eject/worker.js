// Each pattern has `compute`, which leaves the documents that differ as they should be, `write`, which
// writes them, and `refused`, which leaves the _ids of documents that the pattern would have refused.
// What a plain server cannot do: a write and what follows from it are not one commit, a reference to
// nothing and a delete of what is referred to (`restrict`) are found afterwards, not refused.
const shop = db.getSiblingDB(database);
const STATE = 'quire.eject';

function ensureIndexes() {
  for (const p of patterns) {
    if (!p.from) continue;
    if (p.localField !== '_id') shop[p.collection].createIndex({ [p.localField]: 1 });
    if (p.foreignField !== '_id') shop[p.from].createIndex({ [p.foreignField]: 1 });
  }
}

// Returns what differs: { pattern, collection, drift: [_id], refused: [_id] } for each pattern.
function check() {
  const ids = (p, stages) =>
    shop[p.collection].aggregate([...stages, { $project: { _id: 1 } }], { allowDiskUse: true }).map((d) => d._id);
  return patterns.map((p) => ({
    pattern: p.name,
    collection: p.collection,
    drift: p.compute.length ? ids(p, p.compute) : [],
    refused: p.refused.length ? ids(p, p.refused) : [],
  }));
}

// Writes the documents that differ, of those that match a filter. Patterns can read what others write, so
// it runs until nothing differs, at most once for each pattern.
function repair(filter = {}, only = patterns) {
  for (const p of only.filter((p) => p.compute.length)) {
    shop[p.collection].aggregate([{ $match: filter }, ...p.compute, ...p.write], { allowDiskUse: true });
  }
}

function values(document, path) {
  const step = (found, name) =>
    found.flatMap((v) => (Array.isArray(v) ? v : [v])).map((v) => v?.[name]).filter((v) => v !== undefined && v !== null);
  return path.split('.').reduce(step, document ? [document] : []).flatMap((v) => (Array.isArray(v) ? v : [v]));
}

// Does what follows from one event of a change stream.
function follow(event) {
  const name = event.ns?.coll;
  const [before, after] = [event.fullDocumentBeforeChange, event.fullDocument];
  for (const p of patterns) {
    if (name === p.collection && event.documentKey && event.operationType !== 'delete') {
      const changed = Object.keys(event.updateDescription?.updatedFields ?? {});
      // A new reference takes its snapshots anew.
      if (p.snapshots?.length && changed.includes(p.localField)) {
        shop[p.collection].updateOne(event.documentKey, { $unset: Object.fromEntries(p.snapshots.map((s) => [s, 1])) });
      }
      repair(event.documentKey, [p]);
    }
    if (p.from && name === p.from) {
      const touched = [...values(before, p.foreignField), ...values(after, p.foreignField)];
      if (event.operationType === 'delete' && p.foreignField === '_id') touched.push(event.documentKey._id);
      if (event.operationType === 'delete' && p.onDelete) onDelete(p, touched);
      if (touched.length) repair({ [p.localField]: { $in: touched } }, [p]);
    }
  }
}

function onDelete(p, touched) {
  const owners = shop[p.collection];
  const lost = { [p.localField]: { $in: touched } };
  if (p.onDelete === 'cascade') owners.deleteMany(lost);
  if (p.onDelete === 'setNull') owners.updateMany(lost, { $set: { [p.localField]: null } });
  if (p.onDelete === 'restrict' && owners.findOne(lost)) print(`${p.name}: documents of ${p.collection} refer to a deleted document of ${p.from}`);
}

// Keeps the patterns. The position is stored, so that the worker can be stopped and started again.
function watch() {
  ensureIndexes();
  for (const from of new Set(patterns.map((p) => p.from).filter(Boolean))) {
    shop.runCommand({ collMod: from, changeStreamPreAndPostImages: { enabled: true } });
  }
  const state = shop[STATE].findOne({ _id: 'position' });
  const options = { fullDocument: 'updateLookup', fullDocumentBeforeChange: 'whenAvailable' };
  const stream = shop.watch([], state ? { ...options, resumeAfter: state.token } : options);
  repair();
  for (;;) {
    const event = stream.tryNext();
    if (!event) {
      sleep(100);
      continue;
    }
    if (event.ns?.coll !== STATE) {
      follow(event);
      shop[STATE].updateOne({ _id: 'position' }, { $set: { token: event._id } }, { upsert: true });
    }
  }
}

const mode = process.env.MODE ?? 'check';
if (mode === 'check') print(EJSON.stringify(check(), null, 2));
else if (mode === 'repair') patterns.forEach(() => repair());
else if (mode === 'watch') watch();
else throw new Error(`MODE is check, repair or watch, not ${mode}`);
