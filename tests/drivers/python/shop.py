"""The shop (see ../README.md) through PyMongo."""

import concurrent.futures
import datetime
import json
import os
import socket

import pymongo
from pymongo import DeleteOne, IndexModel, InsertOne, MongoClient, ReplaceOne, ReturnDocument, UpdateMany, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError
from pymongo.read_concern import ReadConcern

CUSTOMERS, PRODUCTS, STOCK, WORKERS, PURCHASES = 300, 100, 6, 4, 60
CITIES = ["Ghent", "Oslo", "Porto", "Turin", "Zagreb"]
CATEGORIES = ["books", "garden", "kitchen", "music", "sport", "toys"]

client = MongoClient(os.environ["SHOP_URI"])
db = client[os.environ["SHOP_DB"]]
customers, products, orders, carts = db.customers, db.products, db.orders, db.carts
counters, events = db.counters, db.events


def same(found, wanted, what=""):
    if found != wanted:
        raise AssertionError(f"{what} {found!r} is not {wanted!r}")


def raises(kind, run):
    try:
        run()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def sku(i):
    return f"sku-{i:03}"


def price(i):
    return 100 + (i * 37) % 900


def control(word):
    """Sends one line to the proxy's control port and returns its reply."""
    host, port = os.environ["SHOP_CONTROL"].split(":")
    with socket.create_connection((host, int(port))) as peer:
        peer.sendall(f"{word}\n".encode())
        return peer.makefile().readline().strip()


def stock_the_shop():
    client.drop_database(db.name)
    customers.create_index("email", unique=True)
    customers.create_index([("city", 1), ("spent", -1)])
    products.create_index([("category", 1), ("price", 1)])
    products.create_index("tags")
    orders.create_indexes([
        IndexModel([("customer", 1), ("placedAt", -1)], name="by_customer"),
        IndexModel([("items.sku", 1)], name="by_sku", sparse=True),
    ])
    carts.create_index("updatedAt", expireAfterSeconds=3600, name="abandoned")

    people = [
        {
            "_id": i, "email": f"c{i}@shop.example", "name": f"Customer {i}", "city": CITIES[i % 5],
            "address": {"street": f"{i} Main Street", "zip": str(10000 + i)}, "orders": 0, "spent": 0, "recent": [],
        }
        for i in range(CUSTOMERS)
    ]
    same(len(customers.insert_many(people).inserted_ids), CUSTOMERS)
    stocked = products.bulk_write([
        UpdateOne({"_id": sku(i)}, {"$set": {
            "category": CATEGORIES[i % 6], "price": price(i), "stock": STOCK, "sold": 0, "tags": [f"t{i % 7}", f"t{i % 11}"],
            "variants": [{"size": "S", "stock": 1}, {"size": "M", "stock": 2}, {"size": "L", "stock": 3}],
        }}, upsert=True)
        for i in range(PRODUCTS)
    ], ordered=False)
    same(stocked.upserted_count, PRODUCTS)
    same(carts.index_information()["abandoned"]["expireAfterSeconds"], 3600)
    same(set(orders.index_information()), {"_id_", "by_customer", "by_sku"})


def duplicates_are_refused():
    error = raises(DuplicateKeyError, lambda: customers.insert_one({"_id": 9000, "email": "c7@shop.example"}))
    same((error.code, error.details["keyPattern"], error.details["keyValue"]), (11000, {"email": 1}, {"email": "c7@shop.example"}))
    batch = [{"_id": 9000 + i, "email": f"new{i}@shop.example" if i % 2 else f"c{i}@shop.example"} for i in range(1, 6)]
    error = raises(BulkWriteError, lambda: customers.insert_many(batch, ordered=False))
    same(error.details["nInserted"], 3)
    same([(one["index"], one["code"]) for one in error.details["writeErrors"]], [(1, 11000), (3, 11000)])
    raises(DuplicateKeyError, lambda: customers.update_one({"_id": 1}, {"$set": {"email": "c2@shop.example"}}))
    same(customers.delete_many({"_id": {"$gte": 9000}}).deleted_count, 3)


def purchase(worker, turn):
    """One customer buys. Returns true if there was stock."""
    customer = (worker * PURCHASES + turn) * 7 % CUSTOMERS
    wanted, quantity, cart = sku((worker * 31 + turn * 13) % PRODUCTS), 1 + turn % 3, f"cart-{worker}-{turn}"

    put = carts.update_one({"_id": cart}, {
        "$push": {"items": {"sku": wanted, "quantity": quantity}}, "$set": {"updatedAt": now()},
        "$setOnInsert": {"customer": customer},
    }, upsert=True)
    same(put.upserted_id, cart)

    def order(session=None):
        product = products.find_one_and_update(
            {"_id": wanted, "stock": {"$gte": quantity}}, {"$inc": {"stock": -quantity, "sold": quantity}},
            projection={"price": 1, "stock": 1}, return_document=ReturnDocument.AFTER, session=session)
        if product:
            number = counters.find_one_and_update(
                {"_id": "orders"}, {"$inc": {"seq": 1}}, upsert=True, return_document=ReturnDocument.AFTER, session=session)["seq"]
            total = product["price"] * quantity
            orders.insert_one({
                "_id": number, "customer": customer, "worker": worker, "state": "placed", "total": total, "placedAt": now(),
                "items": [{"sku": wanted, "quantity": quantity, "price": product["price"]}],
            }, session=session)
            paid = customers.update_one({"_id": customer}, {
                "$inc": {"orders": 1, "spent": total}, "$push": {"recent": {"$each": [number], "$slice": -5}},
            }, session=session)
            same(paid.modified_count, 1)
        same(carts.delete_one({"_id": cart}, session=session).deleted_count, 1)
        return product is not None

    if turn % 2:
        with client.start_session() as session:
            return session.with_transaction(order)
    return order()


def one_worker(worker):
    sold = 0
    for turn in range(PURCHASES):
        if worker == 0 and turn % 10 == 5:
            control("crash" if turn == 35 else "sever")
        sold += purchase(worker, turn)
    return sold


def rush():
    """All customers buy at once while connections are closed and the server is killed and restarted."""
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        return sum(pool.map(one_worker, range(WORKERS)))


def the_books_balance(sales):
    """Checks that nothing was lost and nothing was executed twice, whatever connections were closed."""
    same(orders.count_documents({}), sales)
    same(counters.find_one({"_id": "orders"})["seq"], sales)
    same(carts.count_documents({}), 0)
    balanced = {"$eq": [{"$add": ["$stock", "$sold"]}, STOCK]}
    stock = products.aggregate([{"$group": {
        "_id": None, "stock": {"$sum": "$stock"}, "sold": {"$sum": "$sold"}, "broken": {"$sum": {"$cond": [balanced, 0, 1]}},
    }}]).next()
    sold = orders.aggregate([{"$unwind": "$items"}, {"$group": {
        "_id": None, "quantity": {"$sum": "$items.quantity"}, "total": {"$sum": {"$multiply": ["$items.quantity", "$items.price"]}},
    }}]).next()
    paid = customers.aggregate([{"$group": {
        "_id": None, "orders": {"$sum": "$orders"}, "spent": {"$sum": "$spent"}, "recent": {"$sum": {"$size": "$recent"}},
    }}]).next()
    same((stock["stock"] + stock["sold"], stock["broken"]), (PRODUCTS * STOCK, 0))
    same(stock["sold"], sold["quantity"])
    same((paid["orders"], paid["spent"], paid["recent"]), (sales, sold["total"], sales))


def each_is_done_once():
    """Each kind of retryable operation loses its request, then its reply, and is still executed exactly once."""
    once = db.once
    raise_n = {"$inc": {"n": 1}}
    writes = {
        "insert_one": (lambda: once.insert_one({"_id": "x"}).inserted_id, "x", "a1 b1 c1 x"),
        "insert_many": (lambda: once.insert_many([{"_id": "x"}, {"_id": "y"}]).inserted_ids, ["x", "y"], "a1 b1 c1 x y"),
        "update_one": (lambda: once.update_one({"_id": "a"}, raise_n).modified_count, 1, "a2 b1 c1"),
        "upsert": (lambda: once.update_one({"_id": "x"}, raise_n, upsert=True).upserted_id, "x", "a1 b1 c1 x1"),
        "replace_one": (lambda: once.replace_one({"_id": "a", "n": 1}, {"n": 2}).modified_count, 1, "a2 b1 c1"),
        "delete_one": (lambda: once.delete_one({"_id": "a"}).deleted_count, 1, "b1 c1"),
        "before": (lambda: once.find_one_and_update({"_id": "a"}, raise_n), {"_id": "a", "n": 1}, "a2 b1 c1"),
        "after": (
            lambda: once.find_one_and_update({"_id": "a"}, raise_n, return_document=ReturnDocument.AFTER),
            {"_id": "a", "n": 2}, "a2 b1 c1"),
        "find_one_and_replace": (lambda: once.find_one_and_replace({"_id": "a"}, {"n": 2}), {"_id": "a", "n": 1}, "a2 b1 c1"),
        "find_one_and_delete": (lambda: once.find_one_and_delete({"_id": "a"}), {"_id": "a", "n": 1}, "b1 c1"),
        "bulk_write": (
            lambda: once.bulk_write([UpdateOne({"_id": "a"}, raise_n), UpdateOne({"_id": "b"}, raise_n)]).modified_count,
            2, "a2 b2 c1"),
        "client_bulk_write": (
            lambda: client.bulk_write([
                InsertOne({"_id": "x"}, namespace=once.full_name), UpdateOne({"_id": "a"}, raise_n, namespace=once.full_name),
            ]).modified_count,
            1, "a2 b1 c1 x"),
    }
    unchanged = "a1 b1 c1"
    reads = {
        "find": (lambda: len(once.find({"n": 1}).to_list()), 3, unchanged),
        "aggregate": (lambda: len(once.aggregate([{"$match": {"n": 1}}]).to_list()), 3, unchanged),
        "count_documents": (lambda: once.count_documents({"n": 1}), 3, unchanged),
        "distinct": (lambda: once.distinct("n"), [1], unchanged),
    }
    for loss in ("lose-request", "lose-reply"):
        for name, (run, result, left) in {**writes, **reads}.items():
            once.delete_many({})
            once.insert_many([{"_id": key, "n": 1} for key in "abc"])
            lost = int(control("lost"))
            control(loss)
            same(run(), result, f"{name} after {loss}:")
            same(int(control("lost")), lost + 1, f"{name}: messages lost")
            found = " ".join(f"{doc['_id']}{doc.get('n', '')}" for doc in once.find().sort("_id", 1))
            same(found, left, f"{name} after {loss}:")
    once.drop()


def updates_with_operators():
    products.update_one({"_id": sku(1), "variants.size": "M"}, {"$inc": {"variants.$.stock": 5}})
    same([variant["stock"] for variant in products.find_one({"_id": sku(1)})["variants"]], [1, 7, 3])
    raised = products.update_many(
        {"category": "books"}, {"$set": {"variants.$[low].reorder": True}}, array_filters=[{"low.stock": {"$lt": 2}}])
    same(raised.modified_count, 17)
    same(products.count_documents({"variants.reorder": True}), 17)
    flagged = orders.update_many({}, [{"$set": {"large": {"$gte": ["$total", 1000]}}}])
    same(flagged.modified_count, orders.count_documents({}))
    same(orders.count_documents({"large": True}), orders.count_documents({"total": {"$gte": 1000}}))
    products.update_many({}, {"$addToSet": {"tags": "all"}, "$currentDate": {"touched": True}})
    products.update_many({}, {"$pull": {"tags": "t3"}})
    same(products.count_documents({"tags": "all", "touched": {"$type": "date"}}), PRODUCTS)
    same(products.count_documents({"tags": "t3"}), 0)
    mixed = events.bulk_write([
        InsertOne({"_id": 1, "n": 1}), InsertOne({"_id": 2, "n": 2}), UpdateMany({}, {"$mul": {"n": 10}}),
        ReplaceOne({"_id": 2}, {"n": "two"}), DeleteOne({"_id": 1}),
    ])
    same((mixed.inserted_count, mixed.modified_count, mixed.deleted_count), (2, 3, 1))
    same(events.find().to_list(), [{"_id": 2, "n": "two"}])


def reports():
    sold = products.aggregate([
        {"$group": {"_id": "$category", "revenue": {"$sum": {"$multiply": ["$sold", "$price"]}}}}, {"$sort": {"revenue": -1, "_id": 1}},
    ]).to_list()
    revenue = orders.aggregate([{"$group": {"_id": None, "total": {"$sum": "$total"}}}]).next()
    same((len(sold), sum(row["revenue"] for row in sold)), (len(CATEGORIES), revenue["total"]))
    best = customers.find({}, {"_id": 0, "email": 1, "spent": 1}).sort([("spent", -1), ("_id", 1)]).limit(5).to_list()
    same(list(best[0]), ["email", "spent"])
    same([one["spent"] for one in best], sorted((one["spent"] for one in best), reverse=True))
    cities = customers.aggregate([{"$sortByCount": "$city"}]).to_list()
    same([row["count"] for row in cities], [60] * 5)
    same(sorted(customers.distinct("city")), CITIES)


def cursors_and_pages():
    events.delete_many({})
    events.insert_many([{"_id": i, "kind": i % 4, "text": "x" * (i % 50)} for i in range(1000)])
    same(len({event["_id"] for event in events.find().batch_size(37)}), 1000)
    pages = []
    for page in range(5):
        pages += events.find({"kind": 1}).sort("_id", -1).skip(page * 50).limit(50)
    same([event["_id"] for event in pages], [997 - 4 * i for i in range(250)])
    after, found = -1, 0
    while page := events.find({"_id": {"$gt": after}}).sort("_id", 1).limit(300).to_list():
        found, after = found + len(page), page[-1]["_id"]
    same(found, 1000)
    with events.find().batch_size(10) as left:
        next(left)
    same(events.estimated_document_count(), 1000)


def sessions():
    with client.start_session(causal_consistency=True) as session:
        events.insert_one({"_id": "session"}, session=session)
        assert session.operation_time
        majority = events.with_options(read_concern=ReadConcern("majority"))
        same(majority.find_one({"_id": "session"}, session=session), {"_id": "session"})


stock_the_shop()
duplicates_are_refused()
total_sales = rush()
the_books_balance(total_sales)
each_is_done_once()
updates_with_operators()
reports()
cursors_and_pages()
sessions()
client.close()
print(json.dumps({"driver": f"pymongo {pymongo.version}", "sales": total_sales}))
