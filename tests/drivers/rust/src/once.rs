//! Each kind of retryable operation loses its request, then its reply, and is still executed exactly once.

use crate::{Result, Shop, control};
use futures::TryStreamExt;
use mongodb::bson::{Document, doc};
use mongodb::options::{ReturnDocument, UpdateOneModel, WriteModel};
use mongodb::{Client, Collection};

/// The operations, each with the documents that it must leave (`a1` is the document `a` with `n: 1`).
const OPERATIONS: [(&str, &str); 15] = [
    ("insert_one", "a1 b1 c1 x"),
    ("insert_many", "a1 b1 c1 x y"),
    ("update_one", "a2 b1 c1"),
    ("upsert", "a1 b1 c1 x1"),
    ("replace_one", "a2 b1 c1"),
    ("delete_one", "b1 c1"),
    ("before", "a2 b1 c1"),
    ("after", "a2 b1 c1"),
    ("find_one_and_replace", "a2 b1 c1"),
    ("find_one_and_delete", "b1 c1"),
    ("bulk_write", "a2 b1 c1 x"),
    ("find", "a1 b1 c1"),
    ("aggregate", "a1 b1 c1"),
    ("count_documents", "a1 b1 c1"),
    ("distinct", "a1 b1 c1"),
];

pub async fn each_is_done_once(shop: &Shop) -> Result {
    let once = shop.db.collection::<Document>("once");
    for loss in ["lose-request", "lose-reply"] {
        for (name, left) in OPERATIONS {
            once.delete_many(doc! {}).await?;
            once.insert_many(["a", "b", "c"].map(|id| doc! {"_id": id, "n": 1})).await?;
            let lost: u32 = control("lost").await?.parse()?;
            control(loss).await?;
            run(name, &shop.client, &once)
                .await
                .map_err(|error| format!("{name} after {loss}: {error}"))?;
            assert_eq!(control("lost").await?.parse::<u32>()?, lost + 1, "{name}: messages lost");
            let found: Vec<Document> =
                once.find(doc! {}).sort(doc! {"_id": 1}).await?.try_collect().await?;
            let found: Vec<String> = found.iter().map(written).collect();
            assert_eq!(found.join(" "), left, "{name} after {loss}");
        }
    }
    once.drop().await?;
    Ok(())
}

fn written(doc: &Document) -> String {
    let n = doc.get_i32("n").map(|n| n.to_string()).unwrap_or_default();
    format!("{}{n}", doc.get_str("_id").expect("a string"))
}

async fn run(name: &str, client: &Client, once: &Collection<Document>) -> Result {
    let (a, x) = (doc! {"_id": "a"}, doc! {"_id": "x"});
    let raise = doc! {"$inc": {"n": 1}};
    let (one, two) = (Some(doc! {"_id": "a", "n": 1}), Some(doc! {"_id": "a", "n": 2}));
    match name {
        "insert_one" => assert_eq!(once.insert_one(x).await?.inserted_id.as_str(), Some("x")),
        "insert_many" => {
            assert_eq!(once.insert_many([x, doc! {"_id": "y"}]).await?.inserted_ids.len(), 2)
        }
        "update_one" => assert_eq!(once.update_one(a, raise).await?.modified_count, 1),
        "upsert" => {
            assert_eq!(once.update_one(x, raise).upsert(true).await?.upserted_id, Some("x".into()))
        }
        "replace_one" => assert_eq!(
            once.replace_one(doc! {"_id": "a", "n": 1}, doc! {"n": 2}).await?.modified_count,
            1
        ),
        "delete_one" => assert_eq!(once.delete_one(a).await?.deleted_count, 1),
        "before" => assert_eq!(once.find_one_and_update(a, raise).await?, one),
        "after" => assert_eq!(
            once.find_one_and_update(a, raise).return_document(ReturnDocument::After).await?,
            two
        ),
        "find_one_and_replace" => {
            assert_eq!(once.find_one_and_replace(a, doc! {"n": 2}).await?, one)
        }
        "find_one_and_delete" => assert_eq!(once.find_one_and_delete(a).await?, one),
        "bulk_write" => {
            let update = UpdateOneModel::builder()
                .namespace(once.namespace())
                .filter(a)
                .update(raise)
                .build();
            let models =
                [WriteModel::InsertOne(once.insert_one_model(x)?), WriteModel::UpdateOne(update)];
            assert_eq!(client.bulk_write(models).await?.modified_count, 1);
        }
        "find" => {
            assert_eq!(once.find(doc! {"n": 1}).await?.try_collect::<Vec<_>>().await?.len(), 3)
        }
        "aggregate" => assert_eq!(
            once.aggregate([doc! {"$match": {"n": 1}}]).await?.try_collect::<Vec<_>>().await?.len(),
            3
        ),
        "count_documents" => assert_eq!(once.count_documents(doc! {"n": 1}).await?, 3),
        "distinct" => assert_eq!(once.distinct("n", doc! {}).await?, [1.into()]),
        other => unreachable!("{other}"),
    }
    Ok(())
}
