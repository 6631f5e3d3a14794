// The shop (see ../README.md) as a script of mongosh. Customers buy one after the other, because the shell has one thread.
const assert = require('assert/strict');
const { execFileSync } = require('child_process');
const CUSTOMERS = 300, PRODUCTS = 100, STOCK = 6, PURCHASES = 120;
const CITIES = ['Ghent', 'Oslo', 'Porto', 'Turin', 'Zagreb'];
const CATEGORIES = ['books', 'garden', 'kitchen', 'music', 'sport', 'toys'];
const sku = (i) => `sku-${String(i).padStart(3, '0')}`;
const connection = new Mongo(process.env.SHOP_URI);
const shop = connection.getDB(process.env.SHOP_DB);
const { customers, products, orders, carts, counters, events } = shop;

/** One line to the proxy's control port, one line back; a process of its own, because scripts of the shell cannot wait. */
function control(word) {
  const speak = `const [host, port] = process.env.SHOP_CONTROL.split(':');
    const socket = require('net').connect(port, host, () => socket.write(process.argv[1] + '\\n'));
    socket.pipe(process.stdout);`;
  return execFileSync(process.execPath, ['-e', speak, word]).toString().trim();
}

/** Compares by text: the shell's arrays are of another realm than the script's. */
function same(found, wanted) {
  assert.equal(EJSON.stringify(found), EJSON.stringify(wanted));
}

function refused(code, run) {
  try {
    run();
  } catch (error) {
    assert.equal(error.code, code);
    return error;
  }
  throw new Error('no error');
}

function stockTheShop() {
  shop.dropDatabase();
  customers.createIndex({ email: 1 }, { unique: true });
  products.createIndex({ category: 1, price: 1 });
  orders.createIndexes([{ customer: 1, placedAt: -1 }, { 'items.sku': 1 }]);
  carts.createIndex({ updatedAt: 1 }, { expireAfterSeconds: 3600, name: 'abandoned' });
  customers.insertMany(Array.from({ length: CUSTOMERS }, (_, i) => ({
    _id: i, email: `c${i}@shop.example`, name: `Customer ${i}`, city: CITIES[i % 5], orders: 0, spent: 0, recent: [],
  })));
  const stocked = products.bulkWrite(Array.from({ length: PRODUCTS }, (_, i) => ({
    updateOne: {
      filter: { _id: sku(i) }, upsert: true,
      update: { $set: { category: CATEGORIES[i % 6], price: 100 + ((i * 37) % 900), stock: STOCK, sold: 0, tags: [`t${i % 7}`] } },
    },
  })));
  assert.equal(stocked.upsertedCount, PRODUCTS);
  assert.equal(carts.getIndexes().find((index) => index.name === 'abandoned').expireAfterSeconds, 3600);
  refused(11000, () => customers.insertOne({ _id: 9000, email: 'c7@shop.example' }));
  refused(11000, () => customers.insertMany([{ _id: 9001, email: 'new@shop.example' }, { _id: 1 }], { ordered: false }));
  assert.equal(customers.deleteMany({ _id: { $gte: 9000 } }).deletedCount, 1);
}

/** One customer buys; answers whether there was stock. */
function purchase(turn) {
  const customer = (turn * 7) % CUSTOMERS, wanted = sku((turn * 13) % 40), quantity = 1 + (turn % 3);
  const put = carts.updateOne({ _id: turn }, {
    $push: { items: { sku: wanted, quantity } }, $set: { updatedAt: new Date() }, $setOnInsert: { customer },
  }, { upsert: true });
  assert.equal(put.upsertedCount, 1);
  const product = products.findOneAndUpdate(
    { _id: wanted, stock: { $gte: quantity } }, { $inc: { stock: -quantity, sold: quantity } }, { returnDocument: 'after' });
  if (product) {
    const number = counters.findOneAndUpdate({ _id: 'orders' }, { $inc: { seq: 1 } }, { upsert: true, returnDocument: 'after' }).seq;
    const total = product.price * quantity;
    orders.insertOne({ _id: number, customer, total, placedAt: new Date(), items: [{ sku: wanted, quantity, price: product.price }] });
    const paid = customers.updateOne({ _id: customer }, {
      $inc: { orders: 1, spent: total }, $push: { recent: { $each: [number], $slice: -5 } },
    });
    assert.equal(paid.modifiedCount, 1);
  }
  assert.equal(carts.deleteOne({ _id: turn }).deletedCount, 1);
  return product !== null;
}

function theBooksBalance(sales) {
  assert.equal(orders.countDocuments(), sales);
  assert.equal(counters.findOne({ _id: 'orders' }).seq, sales);
  assert.equal(carts.countDocuments(), 0);
  const [stock] = products.aggregate([{ $group: { _id: null, stock: { $sum: '$stock' }, sold: { $sum: '$sold' } } }]).toArray();
  const [sold] = orders.aggregate([
    { $unwind: '$items' },
    { $group: { _id: null, quantity: { $sum: '$items.quantity' }, total: { $sum: { $multiply: ['$items.quantity', '$items.price'] } } } },
  ]).toArray();
  const [paid] = customers.aggregate([{ $group: { _id: null, orders: { $sum: '$orders' }, spent: { $sum: '$spent' } } }]).toArray();
  assert.equal(stock.stock + stock.sold, PRODUCTS * STOCK);
  assert.equal(stock.sold, sold.quantity);
  assert.equal(paid.orders, sales);
  assert.equal(paid.spent, sold.total);
}

function reportsAndCursors() {
  const raised = products.updateMany({ category: 'books' }, { $set: { 'tags.$[old]': 'book' } }, { arrayFilters: [{ old: /^t/ }] });
  assert.equal(raised.modifiedCount, 17);
  assert.equal(products.countDocuments({ tags: 'book' }), 17);
  assert.equal(orders.updateMany({}, [{ $set: { large: { $gte: ['$total', 1000] } } }]).modifiedCount, orders.countDocuments());
  same(customers.aggregate([{ $sortByCount: '$city' }]).toArray().map((row) => row.count), [60, 60, 60, 60, 60]);
  same(customers.distinct('city').sort(), CITIES);
  events.insertMany(Array.from({ length: 1000 }, (_, i) => ({ _id: i, kind: i % 4 })));
  assert.equal(new Set(events.find().batchSize(37).map((event) => event._id).toArray()).size, 1000);
  const page = events.find({ kind: 1 }, { _id: 1 }).sort({ _id: -1 }).skip(50).limit(3).toArray();
  same(page, [{ _id: 797 }, { _id: 793 }, { _id: 789 }]);
  assert.equal(events.stats().count, 1000);
  assert.ok(events.find({ _id: 7 }).explain().queryPlanner.winningPlan);
}

function sessions() {
  const session = connection.startSession({ causalConsistency: true });
  const own = session.getDatabase(shop.getName()).events;
  own.insertOne({ _id: 'session' });
  same(own.findOne({ _id: 'session' }), { _id: 'session' });
  session.endSession();
}

stockTheShop();
let sales = 0;
for (let turn = 0; turn < PURCHASES; turn++) {
  if (turn % 10 === 5) control(turn % 20 === 5 ? 'lose-reply' : 'lose-request');
  if (turn === 60) {
    control('crash');
    sleep(1000); // lets the driver notice that its connections are closed
  }
  sales += purchase(turn);
}
theBooksBalance(sales);
reportsAndCursors();
sessions();
print(JSON.stringify({ driver: `mongosh ${version()}`, sales }));
