// The shop (see ../README.md) through MongoDB's Node driver.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import net from 'node:net';
import { MongoClient } from 'mongodb';

const { version } = createRequire(import.meta.url)('mongodb/package.json');
const CUSTOMERS = 300, PRODUCTS = 100, STOCK = 6, WORKERS = 4, PURCHASES = 60;
const CITIES = ['Ghent', 'Oslo', 'Porto', 'Turin', 'Zagreb'];
const CATEGORIES = ['books', 'garden', 'kitchen', 'music', 'sport', 'toys'];
const sku = (i) => `sku-${String(i).padStart(3, '0')}`;
const price = (i) => 100 + ((i * 37) % 900);

/** The shop's collections through a client of their own. */
function open() {
  const client = new MongoClient(process.env.SHOP_URI);
  const db = client.db(process.env.SHOP_DB);
  const [customers, products, orders, carts, counters, events] =
    ['customers', 'products', 'orders', 'carts', 'counters', 'events'].map((name) => db.collection(name));
  return { client, db, customers, products, orders, carts, counters, events };
}

const { client, db, customers, products, orders, carts, counters, events } = open();

/** One line to the proxy's control port, one line back. */
function control(word) {
  const [host, port] = process.env.SHOP_CONTROL.split(':');
  return new Promise((resolve, reject) => {
    const socket = net.connect(Number(port), host, () => socket.write(`${word}\n`));
    let answer = '';
    socket.on('data', (part) => (answer += part)).on('end', () => resolve(answer.trim())).on('error', reject);
  });
}

async function stockTheShop() {
  await db.dropDatabase();
  await customers.createIndex({ email: 1 }, { unique: true });
  await customers.createIndex({ city: 1, spent: -1 });
  await products.createIndex({ category: 1, price: 1 });
  await products.createIndex({ tags: 1 });
  await orders.createIndexes([
    { key: { customer: 1, placedAt: -1 }, name: 'by_customer' },
    { key: { 'items.sku': 1 }, name: 'by_sku', sparse: true },
  ]);
  await carts.createIndex({ updatedAt: 1 }, { expireAfterSeconds: 3600, name: 'abandoned' });

  const people = Array.from({ length: CUSTOMERS }, (_, i) => ({
    _id: i, email: `c${i}@shop.example`, name: `Customer ${i}`, city: CITIES[i % 5],
    address: { street: `${i} Main Street`, zip: String(10000 + i) }, orders: 0, spent: 0, recent: [],
  }));
  assert.equal((await customers.insertMany(people)).insertedCount, CUSTOMERS);
  const stocked = await products.bulkWrite(Array.from({ length: PRODUCTS }, (_, i) => ({
    updateOne: {
      filter: { _id: sku(i) },
      update: {
        $set: {
          category: CATEGORIES[i % 6], price: price(i), stock: STOCK, sold: 0, tags: [`t${i % 7}`, `t${i % 11}`],
          variants: [{ size: 'S', stock: 1 }, { size: 'M', stock: 2 }, { size: 'L', stock: 3 }],
        },
      },
      upsert: true,
    },
  })), { ordered: false });
  assert.equal(stocked.upsertedCount, PRODUCTS);

  const ttl = (await carts.listIndexes().toArray()).find((index) => index.name === 'abandoned');
  assert.equal(ttl.expireAfterSeconds, 3600);
  assert.equal((await orders.indexes()).length, 3);
}

async function duplicatesAreRefused() {
  await assert.rejects(customers.insertOne({ _id: 9000, email: 'c7@shop.example' }), (error) => {
    assert.equal(error.code, 11000);
    assert.deepEqual(error.keyPattern, { email: 1 });
    assert.deepEqual(error.keyValue, { email: 'c7@shop.example' });
    return true;
  });
  const batch = [1, 2, 3, 4, 5].map((i) => ({ _id: 9000 + i, email: i % 2 ? `new${i}@shop.example` : `c${i}@shop.example` }));
  await assert.rejects(customers.insertMany(batch, { ordered: false }), (error) => {
    assert.equal(error.insertedCount, 3);
    assert.deepEqual(error.writeErrors.map((one) => [one.index, one.code]), [[1, 11000], [3, 11000]]);
    return true;
  });
  await assert.rejects(customers.updateOne({ _id: 1 }, { $set: { email: 'c2@shop.example' } }), { code: 11000 });
  assert.equal((await customers.deleteMany({ _id: { $gte: 9000 } })).deletedCount, 3);
}

/** One customer buys; answers whether there was stock. */
async function purchase({ client, customers, products, orders, carts, counters }, worker, turn) {
  const customer = ((worker * PURCHASES + turn) * 7) % CUSTOMERS;
  const wanted = sku((worker * 31 + turn * 13) % PRODUCTS), quantity = 1 + (turn % 3), cart = `cart-${worker}-${turn}`;

  const put = await carts.updateOne({ _id: cart }, {
    $push: { items: { sku: wanted, quantity } }, $set: { updatedAt: new Date() }, $setOnInsert: { customer },
  }, { upsert: true });
  assert.equal(put.upsertedCount, 1);

  const order = async (session) => {
    const product = await products.findOneAndUpdate(
      { _id: wanted, stock: { $gte: quantity } }, { $inc: { stock: -quantity, sold: quantity } },
      { returnDocument: 'after', projection: { price: 1, stock: 1 }, session });
    if (product) {
      const counter = await counters.findOneAndUpdate(
        { _id: 'orders' }, { $inc: { seq: 1 } }, { upsert: true, returnDocument: 'after', session });
      const total = product.price * quantity;
      await orders.insertOne({
        _id: counter.seq, customer, worker, state: 'placed', total, placedAt: new Date(),
        items: [{ sku: wanted, quantity, price: product.price }],
      }, { session });
      const paid = await customers.updateOne({ _id: customer }, {
        $inc: { orders: 1, spent: total }, $push: { recent: { $each: [counter.seq], $slice: -5 } },
      }, { session });
      assert.equal(paid.modifiedCount, 1);
    }
    assert.equal((await carts.deleteOne({ _id: cart }, { session })).deletedCount, 1);
    return product !== null;
  };
  return turn % 2 ? client.withSession((session) => session.withTransaction(order)) : order();
}

/**
 * Everybody buys at once while connections are cut; half-way the server is killed and started again. Each worker has a
 * client of its own, only connections that wait for a reply are cut, and the kill comes at a quiet moment: this driver
 * does not retry an operation whose pool another error has cleared already, and waits for ever when its connection ends
 * while it compresses a request.
 */
async function rush() {
  const shops = Array.from({ length: WORKERS }, open);
  let sales = 0;
  for (const half of [0, 1]) {
    const sold = await Promise.all(shops.map((shop, worker) => buyFor(shop, worker, (half * PURCHASES) / 2)));
    sales += sold.reduce((a, b) => a + b);
    if (half === 0) await control('crash');
  }
  await Promise.all(shops.map((shop) => shop.client.close()));
  return sales;
}

async function buyFor(shop, worker, first) {
  let sold = 0;
  for (let turn = first; turn < first + PURCHASES / 2; turn++) {
    if (worker === 0 && turn % 10 === 5) await control('cut');
    sold += await purchase(shop, worker, turn);
  }
  return sold;
}

/** What must hold whatever was cut: nothing lost, nothing done twice. */
async function theBooksBalance(sales) {
  assert.equal(await orders.countDocuments(), sales);
  assert.equal((await counters.findOne({ _id: 'orders' })).seq, sales);
  assert.equal(await carts.countDocuments(), 0);
  const [stock] = await products.aggregate([
    { $group: { _id: null, stock: { $sum: '$stock' }, sold: { $sum: '$sold' }, broken: { $sum: { $cond: [{ $eq: [{ $add: ['$stock', '$sold'] }, STOCK] }, 0, 1] } } } },
  ]).toArray();
  const [sold] = await orders.aggregate([
    { $unwind: '$items' }, { $group: { _id: null, quantity: { $sum: '$items.quantity' }, total: { $sum: { $multiply: ['$items.quantity', '$items.price'] } } } },
  ]).toArray();
  const [paid] = await customers.aggregate([
    { $group: { _id: null, orders: { $sum: '$orders' }, spent: { $sum: '$spent' }, recent: { $sum: { $size: '$recent' } } } },
  ]).toArray();
  assert.deepEqual([stock.stock + stock.sold, stock.broken], [PRODUCTS * STOCK, 0]);
  assert.equal(stock.sold, sold.quantity);
  assert.deepEqual([paid.orders, paid.spent, paid.recent], [sales, sold.total, sales]);
}

/** Each kind of retried operation loses its request, then its reply, and is still done exactly once. */
async function eachIsDoneOnce() {
  const once = db.collection('once');
  const seed = () => once.insertMany([{ _id: 'a', n: 1 }, { _id: 'b', n: 1 }, { _id: 'c', n: 1 }]);
  const writes = {
    insertOne: async () => assert.equal((await once.insertOne({ _id: 'x' })).insertedId, 'x'),
    insertMany: async () => assert.equal((await once.insertMany([{ _id: 'x' }, { _id: 'y' }])).insertedCount, 2),
    updateOne: async () => assert.equal((await once.updateOne({ _id: 'a' }, { $inc: { n: 1 } })).modifiedCount, 1),
    upsert: async () => assert.equal((await once.updateOne({ _id: 'x' }, { $inc: { n: 1 } }, { upsert: true })).upsertedId, 'x'),
    replaceOne: async () => assert.equal((await once.replaceOne({ _id: 'a', n: 1 }, { n: 2 })).modifiedCount, 1),
    deleteOne: async () => assert.equal((await once.deleteOne({ _id: 'a' })).deletedCount, 1),
    before: async () => assert.deepEqual(await once.findOneAndUpdate({ _id: 'a' }, { $inc: { n: 1 } }), { _id: 'a', n: 1 }),
    after: async () => assert.deepEqual(
      await once.findOneAndUpdate({ _id: 'a' }, { $inc: { n: 1 } }, { returnDocument: 'after' }), { _id: 'a', n: 2 }),
    findOneAndReplace: async () => assert.deepEqual(await once.findOneAndReplace({ _id: 'a' }, { n: 2 }), { _id: 'a', n: 1 }),
    findOneAndDelete: async () => assert.deepEqual(await once.findOneAndDelete({ _id: 'a' }), { _id: 'a', n: 1 }),
    bulkWrite: async () => {
      const done = await once.bulkWrite([
        { updateOne: { filter: { _id: 'a' }, update: { $inc: { n: 1 } } } }, { updateOne: { filter: { _id: 'b' }, update: { $inc: { n: 1 } } } },
      ]);
      assert.equal(done.modifiedCount, 2);
    },
  };
  const left = {
    insertOne: 'a1 b1 c1 x', insertMany: 'a1 b1 c1 x y', updateOne: 'a2 b1 c1', upsert: 'a1 b1 c1 x1', replaceOne: 'a2 b1 c1', deleteOne: 'b1 c1',
    before: 'a2 b1 c1', after: 'a2 b1 c1', findOneAndReplace: 'a2 b1 c1', findOneAndDelete: 'b1 c1', bulkWrite: 'a2 b2 c1',
  };
  const reads = {
    find: async () => assert.equal((await once.find({ n: 1 }).toArray()).length, 3),
    aggregate: async () => assert.equal((await once.aggregate([{ $match: { n: 1 } }]).toArray()).length, 3),
    countDocuments: async () => assert.equal(await once.countDocuments({ n: 1 }), 3),
    distinct: async () => assert.deepEqual(await once.distinct('n'), [1]),
  };
  for (const loss of ['lose-request', 'lose-reply']) {
    for (const [name, run] of Object.entries({ ...writes, ...reads })) {
      await once.deleteMany({});
      await seed();
      const lost = Number(await control('lost'));
      await control(loss);
      await run().catch((error) => assert.fail(`${name} after ${loss}: ${error}`));
      assert.equal(Number(await control('lost')), lost + 1, `${name}: nothing was lost`);
      const found = (await once.find().sort({ _id: 1 }).toArray()).map((doc) => doc._id + (doc.n ?? '')).join(' ');
      assert.equal(found, left[name] ?? 'a1 b1 c1', `${name} after ${loss}`);
    }
  }
  await once.drop();
}

async function updatesWithOperators() {
  await products.updateOne({ _id: sku(1), 'variants.size': 'M' }, { $inc: { 'variants.$.stock': 5 } });
  assert.deepEqual((await products.findOne({ _id: sku(1) })).variants.map((v) => v.stock), [1, 7, 3]);
  const raised = await products.updateMany({ category: 'books' },
    { $set: { 'variants.$[low].reorder': true } }, { arrayFilters: [{ 'low.stock': { $lt: 2 } }] });
  assert.equal(raised.modifiedCount, 17);
  assert.equal(await products.countDocuments({ 'variants.reorder': true }), 17);
  const flagged = await orders.updateMany({}, [{ $set: { large: { $gte: ['$total', 1000] } } }]);
  assert.equal(flagged.modifiedCount, await orders.countDocuments());
  assert.equal(await orders.countDocuments({ large: true }), await orders.countDocuments({ total: { $gte: 1000 } }));
  await products.updateMany({}, { $addToSet: { tags: 'all' }, $currentDate: { touched: true } });
  await products.updateMany({}, { $pull: { tags: 't3' } });
  assert.equal(await products.countDocuments({ tags: 'all', touched: { $type: 'date' } }), PRODUCTS);
  assert.equal(await products.countDocuments({ tags: 't3' }), 0);
  const mixed = await events.bulkWrite([
    { insertOne: { document: { _id: 1, n: 1 } } }, { insertOne: { document: { _id: 2, n: 2 } } },
    { updateMany: { filter: {}, update: { $mul: { n: 10 } } } }, { replaceOne: { filter: { _id: 2 }, replacement: { n: 'two' } } },
    { deleteOne: { filter: { _id: 1 } } },
  ]);
  assert.deepEqual([mixed.insertedCount, mixed.modifiedCount, mixed.deletedCount], [2, 3, 1]);
  assert.deepEqual(await events.find().toArray(), [{ _id: 2, n: 'two' }]);
}

async function reports() {
  const sold = await products.aggregate([
    { $group: { _id: '$category', sold: { $sum: '$sold' }, revenue: { $sum: { $multiply: ['$sold', '$price'] } } } }, { $sort: { revenue: -1, _id: 1 } },
  ]).toArray();
  const revenue = await orders.aggregate([{ $group: { _id: null, total: { $sum: '$total' } } }]).toArray();
  assert.equal(sold.length, CATEGORIES.length);
  assert.equal(sold.reduce((sum, row) => sum + row.revenue, 0), revenue[0].total);
  const best = await customers.find({}, { projection: { _id: 0, email: 1, spent: 1 } }).sort({ spent: -1, _id: 1 }).limit(5).toArray();
  assert.deepEqual(Object.keys(best[0]), ['email', 'spent']);
  assert.ok(best.every((one, i) => i === 0 || best[i - 1].spent >= one.spent));
  const cities = await customers.aggregate([{ $sortByCount: '$city' }]).toArray();
  assert.deepEqual(cities.map((row) => row.count), [60, 60, 60, 60, 60]);
  assert.deepEqual((await customers.distinct('city')).sort(), CITIES);
}

async function cursorsAndPages() {
  await events.deleteMany({});
  await events.insertMany(Array.from({ length: 1000 }, (_, i) => ({ _id: i, kind: i % 4, text: 'x'.repeat(i % 50) })));
  const seen = new Set();
  for await (const event of events.find().batchSize(37)) seen.add(event._id);
  assert.equal(seen.size, 1000);
  const pages = [];
  for (let page = 0; page < 5; page++) pages.push(...await events.find({ kind: 1 }).sort({ _id: -1 }).skip(page * 50).limit(50).toArray());
  assert.deepEqual(pages.map((event) => event._id), Array.from({ length: 250 }, (_, i) => 997 - 4 * i));
  let after = -1, found = 0;
  for (;;) {
    const page = await events.find({ _id: { $gt: after } }).sort({ _id: 1 }).limit(300).toArray();
    if (page.length === 0) break;
    found += page.length;
    after = page.at(-1)._id;
  }
  assert.equal(found, 1000);
  const left = events.find().batchSize(10);
  await left.next();
  await left.close();
  assert.equal(await events.estimatedDocumentCount(), 1000);
}

async function sessions() {
  await client.withSession({ causalConsistency: true }, async (session) => {
    await events.insertOne({ _id: 'session' }, { session });
    assert.ok(session.operationTime);
    assert.equal((await events.findOne({ _id: 'session' }, { session, readConcern: { level: 'majority' } }))._id, 'session');
  });
}

await client.connect();
await stockTheShop();
await duplicatesAreRefused();
const sales = await rush();
await theBooksBalance(sales);
await eachIsDoneOnce();
await updatesWithOperators();
await reports();
await cursorsAndPages();
await sessions();
await client.close();
console.log(JSON.stringify({ driver: `mongodb ${version}`, sales }));
