import static com.mongodb.client.model.Filters.eq;
import static com.mongodb.client.model.Updates.inc;

import com.mongodb.MongoNamespace;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.model.Aggregates;
import com.mongodb.client.model.FindOneAndUpdateOptions;
import com.mongodb.client.model.ReturnDocument;
import com.mongodb.client.model.UpdateOneModel;
import com.mongodb.client.model.UpdateOptions;
import com.mongodb.client.model.bulk.ClientNamespacedWriteModel;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.bson.BsonString;
import org.bson.Document;
import org.bson.conversions.Bson;

/** Each kind of retried operation loses its request, then its reply, and is still done exactly once. */
final class Once {
  /** An operation, what it must answer, and the documents that it must leave (each with its n). */
  private record Retried(String name, Supplier<Object> run, Object result, String left) {}

  private final Shop shop;
  private final MongoCollection<Document> once;

  Once(Shop shop) {
    this.shop = shop;
    this.once = shop.db.getCollection("once");
  }

  void eachIsDoneOnce() throws IOException {
    for (String loss : List.of("lose-request", "lose-reply")) {
      for (Retried operation : operations()) {
        once.deleteMany(new Document());
        once.insertMany(Stream.of("a", "b", "c").map(id -> doc(id, 1)).toList());
        int lost = Integer.parseInt(Shop.control("lost"));
        Shop.control(loss);
        Shop.same(operation.run().get(), operation.result(), operation.name() + " after " + loss + ":");
        Shop.same(Integer.parseInt(Shop.control("lost")), lost + 1, operation.name() + ": messages lost");
        String found = once.find().sort(new Document("_id", 1)).into(new ArrayList<>()).stream()
            .map(one -> one.getString("_id") + one.getOrDefault("n", "")).collect(Collectors.joining(" "));
        Shop.same(found, operation.left(), operation.name() + " after " + loss + ":");
      }
    }
    once.drop();
  }

  private static Document doc(String id, int n) {
    return new Document("_id", id).append("n", n);
  }

  private List<Retried> operations() {
    Bson a = eq("a"), x = eq("x"), raise = inc("n", 1);
    FindOneAndUpdateOptions after = new FindOneAndUpdateOptions().returnDocument(ReturnDocument.AFTER);
    MongoNamespace namespace = once.getNamespace();
    return List.of(
        new Retried("insertOne", () -> once.insertOne(new Document("_id", "x")).getInsertedId(), new BsonString("x"), "a1 b1 c1 x"),
        new Retried("insertMany",
            () -> once.insertMany(List.of(new Document("_id", "x"), new Document("_id", "y"))).getInsertedIds().size(), 2, "a1 b1 c1 x y"),
        new Retried("updateOne", () -> once.updateOne(a, raise).getModifiedCount(), 1L, "a2 b1 c1"),
        new Retried("upsert", () -> once.updateOne(x, raise, new UpdateOptions().upsert(true)).getUpsertedId(),
            new BsonString("x"), "a1 b1 c1 x1"),
        new Retried("replaceOne", () -> once.replaceOne(doc("a", 1), new Document("n", 2)).getModifiedCount(), 1L, "a2 b1 c1"),
        new Retried("deleteOne", () -> once.deleteOne(a).getDeletedCount(), 1L, "b1 c1"),
        new Retried("before", () -> once.findOneAndUpdate(a, raise), doc("a", 1), "a2 b1 c1"),
        new Retried("after", () -> once.findOneAndUpdate(a, raise, after), doc("a", 2), "a2 b1 c1"),
        new Retried("findOneAndReplace", () -> once.findOneAndReplace(a, new Document("n", 2)), doc("a", 1), "a2 b1 c1"),
        new Retried("findOneAndDelete", () -> once.findOneAndDelete(a), doc("a", 1), "b1 c1"),
        new Retried("bulkWrite",
            () -> once.bulkWrite(List.of(new UpdateOneModel<Document>(a, raise), new UpdateOneModel<Document>(eq("b"), raise)))
                .getModifiedCount(), 2, "a2 b2 c1"),
        new Retried("client.bulkWrite",
            () -> shop.client.bulkWrite(List.of(
                ClientNamespacedWriteModel.insertOne(namespace, new Document("_id", "x")),
                ClientNamespacedWriteModel.updateOne(namespace, a, raise))).getModifiedCount(), 1L, "a2 b1 c1 x"),
        new Retried("find", () -> once.find(eq("n", 1)).into(new ArrayList<>()).size(), 3, "a1 b1 c1"),
        new Retried("aggregate", () -> once.aggregate(List.of(Aggregates.match(eq("n", 1)))).into(new ArrayList<>()).size(), 3, "a1 b1 c1"),
        new Retried("countDocuments", () -> once.countDocuments(eq("n", 1)), 3L, "a1 b1 c1"),
        new Retried("distinct", () -> once.distinct("n", Integer.class).into(new ArrayList<>()), List.of(1), "a1 b1 c1"));
  }
}
