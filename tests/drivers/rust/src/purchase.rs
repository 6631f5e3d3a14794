//! Many customers buy at once while connections are closed and the server is killed and restarted.

use crate::{CUSTOMERS, PRODUCTS, Result, STOCK, Shop, control, rows, sku};
use futures::FutureExt;
use mongodb::ClientSession;
use mongodb::bson::{DateTime, doc};
use mongodb::options::ReturnDocument;
use serde::Deserialize;

const WORKERS: i32 = 4;
const PURCHASES: i32 = 60;

/// Lets every worker buy. Returns the number of sales.
pub async fn rush(shop: &Shop) -> Result<u64> {
    let workers: Vec<_> =
        (0..WORKERS).map(|worker| tokio::spawn(one_worker(shop.clone(), worker))).collect();
    let mut sales = 0;
    for worker in workers {
        sales += worker.await??;
    }
    Ok(sales)
}

async fn one_worker(shop: Shop, worker: i32) -> Result<u64> {
    let mut sold = 0;
    for turn in 0..PURCHASES {
        if worker == 0 && turn % 10 == 5 {
            control(if turn == 35 { "crash" } else { "sever" }).await?;
        }
        sold += u64::from(purchase(&shop, worker, turn).await?);
    }
    Ok(sold)
}

/// One customer buys. Returns true if there was stock.
async fn purchase(shop: &Shop, worker: i32, turn: i32) -> Result<bool> {
    let customer = (worker * PURCHASES + turn) * 7 % CUSTOMERS;
    let (wanted, quantity, cart) =
        (sku((worker * 31 + turn * 13) % PRODUCTS), 1 + turn % 3, format!("cart-{worker}-{turn}"));

    let filled = doc! {
        "$push": {"items": {"sku": &wanted, "quantity": quantity}}, "$set": {"updatedAt": DateTime::now()},
        "$setOnInsert": {"customer": customer},
    };
    let put = shop.carts.update_one(doc! {"_id": &cart}, filled).upsert(true).await?;
    assert!(put.upserted_id.is_some());

    let mut session = shop.client.start_session().await?;
    let order = Order { shop: shop.clone(), customer, worker, quantity, wanted, cart };
    if turn % 2 == 0 {
        return Ok(order.place(&mut session).await?);
    }
    let placed = session.start_transaction();
    Ok(placed.and_run(order, |session, order| order.place(session).boxed()).await?)
}

/// The product and the quantity of a purchase.
struct Order {
    shop: Shop,
    customer: i32,
    worker: i32,
    quantity: i32,
    wanted: String,
    cart: String,
}

impl Order {
    /// Takes the stock, numbers the order, bills the customer and empties the cart. Returns true if
    /// there was stock.
    async fn place(&self, session: &mut ClientSession) -> mongodb::error::Result<bool> {
        let Order { shop, customer, worker, quantity, wanted, cart } = self;
        let product = shop
            .products
            .find_one_and_update(
                doc! {"_id": wanted, "stock": {"$gte": quantity}},
                doc! {"$inc": {"stock": -quantity, "sold": quantity}},
            )
            .projection(doc! {"price": 1, "stock": 1})
            .return_document(ReturnDocument::After)
            .session(&mut *session)
            .await?;
        if let Some(product) = &product {
            let counter = shop
                .counters
                .find_one_and_update(doc! {"_id": "orders"}, doc! {"$inc": {"seq": 1}})
                .upsert(true)
                .return_document(ReturnDocument::After)
                .session(&mut *session)
                .await?
                .expect("the counter");
            let number = counter.get_i32("seq").expect("a number");
            let price = product.get_i32("price").expect("a price");
            let order = doc! {
                "_id": number, "customer": customer, "worker": worker, "state": "placed", "total": price * quantity, "placedAt": DateTime::now(),
                "items": [{"sku": wanted, "quantity": quantity, "price": price}],
            };
            shop.orders.insert_one(order).session(&mut *session).await?;
            let bought = doc! {"$inc": {"orders": 1, "spent": price * quantity}, "$push": {"recent": {"$each": [number], "$slice": -5}}};
            let paid = shop.customers.update_one(doc! {"_id": customer}, bought);
            assert_eq!(paid.session(&mut *session).await?.modified_count, 1);
        }
        let emptied = shop.carts.delete_one(doc! {"_id": cart}).session(&mut *session).await?;
        assert_eq!(emptied.deleted_count, 1);
        Ok(product.is_some())
    }
}

#[derive(Deserialize)]
struct Stock {
    stock: i32,
    sold: i32,
    broken: i32,
}

#[derive(Deserialize)]
struct Sold {
    quantity: i32,
    total: i32,
}

#[derive(Deserialize)]
struct Paid {
    orders: u64,
    spent: i32,
    recent: u64,
}

/// Checks that nothing was lost and nothing was executed twice, whatever connections were closed.
pub async fn the_books_balance(shop: &Shop, sales: u64) -> Result {
    assert_eq!(shop.orders.count_documents(doc! {}).await?, sales);
    let counter = shop.counters.find_one(doc! {"_id": "orders"}).await?.expect("the counter");
    assert_eq!(counter.get_i32("seq")? as u64, sales);
    assert_eq!(shop.carts.count_documents(doc! {}).await?, 0);
    let balanced = doc! {"$eq": [{"$add": ["$stock", "$sold"]}, STOCK]};
    let stock = vec![doc! {"$group": {
        "_id": null, "stock": {"$sum": "$stock"}, "sold": {"$sum": "$sold"}, "broken": {"$sum": {"$cond": [balanced, 0, 1]}},
    }}];
    let stock = rows::<Stock>(&shop.products, stock).await?.remove(0);
    let sold = doc! {"$group": {
        "_id": null, "quantity": {"$sum": "$items.quantity"}, "total": {"$sum": {"$multiply": ["$items.quantity", "$items.price"]}},
    }};
    let sold = rows::<Sold>(&shop.orders, vec![doc! {"$unwind": "$items"}, sold]).await?.remove(0);
    let paid = vec![doc! {"$group": {
        "_id": null, "orders": {"$sum": "$orders"}, "spent": {"$sum": "$spent"}, "recent": {"$sum": {"$size": "$recent"}},
    }}];
    let paid = rows::<Paid>(&shop.customers, paid).await?.remove(0);
    assert_eq!((stock.stock + stock.sold, stock.broken), (PRODUCTS * STOCK, 0));
    assert_eq!(stock.sold, sold.quantity);
    assert_eq!((paid.orders, paid.spent, paid.recent), (sales, sold.total, sales));
    Ok(())
}
