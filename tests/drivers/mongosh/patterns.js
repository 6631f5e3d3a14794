// Writes for the patterns of a shop (see ../harness/eject.py), as a script of mongosh. STEP is `declare`: patterns of
// every kind, with their first documents; `copy`: the documents without the patterns to SHOP_TO; or `write`: random writes.
const shop = new Mongo(process.env.SHOP_URI).getDB('shop');
const { cities, customers, products, orders, pages } = shop;
const WRITES = 250, CITIES = 4, CUSTOMERS = 12, PRODUCTS = 8, ORDERS = 60;

// A generator of numbers (Park and Miller), so that a seed gives the same writes again.
let state = Number(process.env.SEED ?? 1);
const below = (n) => (state = (state * 48271) % 2147483647) % n;
const pick = (values) => values[below(values.length)];

const order = () => ({
  customer: below(CUSTOMERS + 2), total: below(100), hidden: below(5) === 0,
  items: Array.from({ length: below(4) }, () => ({ product: `p${below(PRODUCTS)}`, quantity: 1 + below(3) })),
});

function declare() {
  const reference = (name, from, localField, as, fields, more) => ({
    name, type: 'reference', from, localField, as, fields, onMissing: 'null', onDelete: 'setNull', ...more,
  });
  const made = (collection, ...patterns) => shop.runCommand({ create: collection, patterns });
  // A roll-up makes the collection that it reads, if it is not there.
  made('orders', reference('customer', 'customers', 'customer', 'by', { name: 'sync', 'in.name': { mode: 'sync', as: 'city' } }),
    reference('product', 'products', 'items.product', 'items.is', { title: 'sync', price: 'snapshot' }));
  made('customers', reference('city', 'cities', 'city', 'in', { name: 'sync' }),
    { name: 'orders', type: 'rollup', from: 'orders', foreignField: 'customer', match: { hidden: { $ne: true } }, set: {
      'stats.orders': { $count: {} }, 'stats.spent': { $sum: '$total' }, 'stats.largest': { $max: '$total' },
      'stats.average': { $avg: '$total' }, orderIds: { $push: '$_id' }, totals: { $addToSet: '$total' },
      best: { $topN: { n: 2, sortBy: { total: -1, _id: 1 }, output: { id: '$_id', total: '$total' } } },
    } });
  made('carts', reference('owner', 'customers', 'owner', 'of', { name: 'sync' }, { onDelete: 'cascade' }));
  made('pages', { name: 'views', type: 'counter', path: 'stats.views', merge: true });
  cities.insertMany(Array.from({ length: CITIES }, (_, i) => ({ _id: i, name: `city ${i}` })));
  customers.insertMany(Array.from({ length: CUSTOMERS }, (_, i) => ({ _id: i, name: `customer ${i}`, city: i % CITIES })));
  products.insertMany(Array.from({ length: PRODUCTS }, (_, i) => ({ _id: `p${i}`, title: `title ${i}`, price: i })));
  shop.carts.insertMany(Array.from({ length: CUSTOMERS }, (_, i) => ({ _id: i, owner: i })));
  orders.insertMany(Array.from({ length: ORDERS }, (_, i) => ({ _id: i, ...order() })));
  pages.insertMany([{ _id: 'home', stats: { views: 0 } }, { _id: 'news' }]);
}

function copy() {
  const to = new Mongo(process.env.SHOP_TO).getDB('shop');
  for (const name of ['cities', 'customers', 'products', 'carts', 'orders', 'pages']) to[name].insertMany(shop[name].find().toArray());
}

const WAYS = [
  () => orders.updateOne({ _id: below(ORDERS) }, { $set: { customer: below(CUSTOMERS + 2), total: below(100) } }),
  () => orders.updateOne({ _id: below(ORDERS) }, { $unset: { customer: 1 } }),
  () => orders.updateMany({ customer: below(CUSTOMERS) }, { $set: { hidden: below(2) === 0 } }),
  () => orders.updateOne({ _id: below(ORDERS) }, { $push: { items: { product: `p${below(PRODUCTS)}`, quantity: 1 } } }),
  () => orders.replaceOne({ _id: below(ORDERS) }, order(), { upsert: true }),
  () => orders.findOneAndUpdate({ _id: below(ORDERS) }, { $set: { by: 'what a client writes' } }),
  () => orders.deleteOne({ _id: below(ORDERS) }),
  () => customers.updateOne({ _id: below(CUSTOMERS) }, { $set: { name: `name ${below(1000)}` } }),
  () => customers.updateOne({ _id: below(CUSTOMERS) }, { $set: { city: below(CITIES + 1), 'stats.spent': -1 } }),
  () => customers.deleteOne({ _id: below(CUSTOMERS) }),
  () => customers.updateOne({ _id: below(CUSTOMERS) }, { $set: { name: 'back', city: below(CITIES) } }, { upsert: true }),
  () => cities.updateOne({ _id: below(CITIES) }, { $set: { name: `name ${below(1000)}` } }, { upsert: true }),
  () => cities.deleteOne({ _id: below(CITIES) }),
  () => products.updateMany({}, { $set: { title: `title ${below(1000)}` } }),
  () => shop.carts.updateOne({ _id: below(20) }, { $set: { owner: below(CUSTOMERS) } }, { upsert: true }),
  () => pages.updateOne({ _id: pick(['home', 'news']) }, { $inc: { 'stats.views': 1 } }),
];

function write() {
  for (let at = 0; at < WRITES; at++) pick(WAYS)();
}

const steps = { declare, copy, write };
steps[process.env.STEP]();
