import static com.mongodb.client.model.Accumulators.sum;
import static com.mongodb.client.model.Aggregates.group;
import static com.mongodb.client.model.Filters.eq;
import static com.mongodb.client.model.Filters.exists;
import static com.mongodb.client.model.Filters.gt;
import static com.mongodb.client.model.Filters.gte;
import static com.mongodb.client.model.Filters.lt;
import static com.mongodb.client.model.Indexes.ascending;
import static com.mongodb.client.model.Indexes.compoundIndex;
import static com.mongodb.client.model.Indexes.descending;
import static com.mongodb.client.model.Projections.excludeId;
import static com.mongodb.client.model.Projections.fields;
import static com.mongodb.client.model.Projections.include;
import static com.mongodb.client.model.Sorts.orderBy;
import static com.mongodb.client.model.Updates.combine;
import static com.mongodb.client.model.Updates.inc;
import static com.mongodb.client.model.Updates.set;

import com.mongodb.ClientSessionOptions;
import com.mongodb.MongoBulkWriteException;
import com.mongodb.MongoWriteException;
import com.mongodb.ReadConcern;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoCursor;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.Aggregates;
import com.mongodb.client.model.BulkWriteOptions;
import com.mongodb.client.model.DeleteOneModel;
import com.mongodb.client.model.IndexModel;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.InsertManyOptions;
import com.mongodb.client.model.InsertOneModel;
import com.mongodb.client.model.ReplaceOneModel;
import com.mongodb.client.model.UpdateManyModel;
import com.mongodb.client.model.UpdateOneModel;
import com.mongodb.client.model.UpdateOptions;
import com.mongodb.client.model.Updates;
import com.mongodb.internal.build.MongoDriverVersion;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.bson.Document;
import org.bson.conversions.Bson;

/** The shop (see ../README.md) through MongoDB's Java driver: the story. Purchase says how one buys, Once retries operations. */
final class Shop {
  static final int CUSTOMERS = 300, PRODUCTS = 100, STOCK = 6;
  static final List<String> CITIES = List.of("Ghent", "Oslo", "Porto", "Turin", "Zagreb");
  static final List<String> CATEGORIES = List.of("books", "garden", "kitchen", "music", "sport", "toys");

  final MongoClient client = MongoClients.create(System.getenv("SHOP_URI"));
  final MongoDatabase db = client.getDatabase(System.getenv("SHOP_DB"));
  final MongoCollection<Document> customers = db.getCollection("customers");
  final MongoCollection<Document> products = db.getCollection("products");
  final MongoCollection<Document> orders = db.getCollection("orders");
  final MongoCollection<Document> carts = db.getCollection("carts");
  final MongoCollection<Document> counters = db.getCollection("counters");
  final MongoCollection<Document> events = db.getCollection("events");

  public static void main(String[] arguments) throws Exception {
    Shop shop = new Shop();
    shop.stockTheShop();
    shop.duplicatesAreRefused();
    Purchase purchase = new Purchase(shop);
    int sales = purchase.rush();
    purchase.theBooksBalance(sales);
    new Once(shop).eachIsDoneOnce();
    shop.updatesWithOperators();
    shop.reports();
    shop.cursorsAndPages();
    shop.sessions();
    shop.client.close();
    System.out.printf("{\"driver\": \"mongodb-driver-sync %s\", \"sales\": %d}%n", MongoDriverVersion.VERSION, sales);
  }

  /** Throws unless both are equal. */
  static void same(Object found, Object wanted, String about) {
    if (!Objects.equals(found, wanted)) {
      throw new AssertionError(about + " " + found + " is not " + wanted);
    }
  }

  static void same(Object found, Object wanted) {
    same(found, wanted, "");
  }

  /** Sends one line to the proxy's control port and reads one back. */
  static String control(String word) throws IOException {
    String[] place = System.getenv("SHOP_CONTROL").split(":");
    try (Socket peer = new Socket(place[0], Integer.parseInt(place[1]))) {
      peer.getOutputStream().write((word + "\n").getBytes(StandardCharsets.UTF_8));
      return new BufferedReader(new InputStreamReader(peer.getInputStream(), StandardCharsets.UTF_8)).readLine();
    }
  }

  static String sku(int i) {
    return String.format("sku-%03d", i);
  }

  private void stockTheShop() {
    db.drop();
    customers.createIndex(ascending("email"), new IndexOptions().unique(true));
    customers.createIndex(compoundIndex(ascending("city"), descending("spent")));
    products.createIndex(ascending("category", "price"));
    products.createIndex(ascending("tags"));
    orders.createIndexes(List.of(
        new IndexModel(compoundIndex(ascending("customer"), descending("placedAt")), new IndexOptions().name("by_customer")),
        new IndexModel(ascending("items.sku"), new IndexOptions().name("by_sku").sparse(true))));
    carts.createIndex(ascending("updatedAt"), new IndexOptions().name("abandoned").expireAfter(3600L, TimeUnit.SECONDS));

    List<Document> people = new ArrayList<>();
    for (int i = 0; i < CUSTOMERS; i++) {
      people.add(new Document("_id", i).append("email", "c" + i + "@shop.example").append("name", "Customer " + i)
          .append("city", CITIES.get(i % 5)).append("orders", 0).append("spent", 0).append("recent", List.of())
          .append("address", new Document("street", i + " Main Street").append("zip", String.valueOf(10000 + i))));
    }
    same(customers.insertMany(people).getInsertedIds().size(), CUSTOMERS);
    List<UpdateOneModel<Document>> stock = new ArrayList<>();
    for (int i = 0; i < PRODUCTS; i++) {
      List<Document> variants = List.of(variant("S", 1), variant("M", 2), variant("L", 3));
      stock.add(new UpdateOneModel<>(eq(sku(i)), combine(
          set("category", CATEGORIES.get(i % 6)), set("price", 100 + i * 37 % 900), set("stock", STOCK), set("sold", 0),
          set("tags", List.of("t" + i % 7, "t" + i % 11)), set("variants", variants)), new UpdateOptions().upsert(true)));
    }
    same(products.bulkWrite(stock, new BulkWriteOptions().ordered(false)).getUpserts().size(), PRODUCTS);

    List<String> names = orders.listIndexes().map(index -> index.getString("name")).into(new ArrayList<>());
    same(names, List.of("_id_", "by_customer", "by_sku"));
    for (Document index : carts.listIndexes()) {
      if (index.getString("name").equals("abandoned")) {
        same(((Number) index.get("expireAfterSeconds")).intValue(), 3600);
      }
    }
  }

  private static Document variant(String size, int stock) {
    return new Document("size", size).append("stock", stock);
  }

  private void duplicatesAreRefused() {
    try {
      customers.insertOne(new Document("_id", 9000).append("email", "c7@shop.example"));
      throw new AssertionError("no error");
    } catch (MongoWriteException error) {
      same(error.getError().getCode(), 11000);
    }
    List<Document> batch = new ArrayList<>();
    for (int i = 1; i <= 5; i++) {
      batch.add(new Document("_id", 9000 + i).append("email", (i % 2 == 1 ? "new" : "c") + i + "@shop.example"));
    }
    try {
      customers.insertMany(batch, new InsertManyOptions().ordered(false));
      throw new AssertionError("no error");
    } catch (MongoBulkWriteException error) {
      same(error.getWriteResult().getInsertedCount(), 3);
      same(error.getWriteErrors().stream().map(one -> List.of(one.getIndex(), one.getCode())).toList(),
          List.of(List.of(1, 11000), List.of(3, 11000)));
    }
    try {
      customers.updateOne(eq(1), set("email", "c2@shop.example"));
      throw new AssertionError("no error");
    } catch (MongoWriteException error) {
      same(error.getError().getCode(), 11000);
    }
    same(customers.deleteMany(gte("_id", 9000)).getDeletedCount(), 3L);
  }

  private void updatesWithOperators() {
    products.updateOne(new Document("_id", sku(1)).append("variants.size", "M"), inc("variants.$.stock", 5));
    List<Document> variants = products.find(eq(sku(1))).first().getList("variants", Document.class);
    same(variants.stream().map(variant -> variant.getInteger("stock")).toList(), List.of(1, 7, 3));
    UpdateOptions low = new UpdateOptions().arrayFilters(List.of(lt("low.stock", 2)));
    same(products.updateMany(eq("category", "books"), set("variants.$[low].reorder", true), low).getModifiedCount(), 17L);
    same(products.countDocuments(eq("variants.reorder", true)), 17L);
    Bson large = new Document("$set", new Document("large", new Document("$gte", List.of("$total", 1000))));
    same(orders.updateMany(new Document(), List.of(large)).getModifiedCount(), orders.countDocuments());
    same(orders.countDocuments(eq("large", true)), orders.countDocuments(gte("total", 1000)));
    products.updateMany(new Document(), combine(Updates.addToSet("tags", "all"), Updates.currentDate("touched")));
    products.updateMany(new Document(), Updates.pull("tags", "t3"));
    same(products.countDocuments(combineFilters(eq("tags", "all"), exists("touched"))), (long) PRODUCTS);
    same(products.countDocuments(eq("tags", "t3")), 0L);
    var mixed = events.bulkWrite(List.of(
        new InsertOneModel<>(new Document("_id", 1).append("n", 1)),
        new InsertOneModel<>(new Document("_id", 2).append("n", 2)),
        new UpdateManyModel<>(new Document(), Updates.mul("n", 10)),
        new ReplaceOneModel<>(eq(2), new Document("n", "two")),
        new DeleteOneModel<>(eq(1))));
    same(List.of(mixed.getInsertedCount(), mixed.getModifiedCount(), mixed.getDeletedCount()), List.of(2, 3, 1));
    same(events.find().into(new ArrayList<>()), List.of(new Document("_id", 2).append("n", "two")));
  }

  private static Bson combineFilters(Bson one, Bson other) {
    return com.mongodb.client.model.Filters.and(one, other);
  }

  private void reports() {
    Document revenueOfOne = new Document("$multiply", List.of("$sold", "$price"));
    List<Document> rows = products.aggregate(List.of(
        group("$category", sum("revenue", revenueOfOne)), Aggregates.sort(orderBy(com.mongodb.client.model.Sorts.descending("revenue")))))
        .into(new ArrayList<>());
    Document revenue = orders.aggregate(List.of(group(null, sum("total", "$total")))).first();
    same(rows.size(), CATEGORIES.size());
    same(rows.stream().mapToInt(row -> row.getInteger("revenue")).sum(), revenue.getInteger("total"));
    List<Document> best = customers.find().projection(fields(excludeId(), include("email", "spent")))
        .sort(new Document("spent", -1).append("_id", 1)).limit(5).into(new ArrayList<>());
    same(new ArrayList<>(best.get(0).keySet()), List.of("email", "spent"));
    List<Integer> spent = best.stream().map(one -> one.getInteger("spent")).toList();
    same(spent, spent.stream().sorted((a, b) -> b - a).toList());
    List<Document> perCity = customers.aggregate(List.of(Aggregates.sortByCount("$city"))).into(new ArrayList<>());
    same(perCity.stream().map(row -> row.getInteger("count")).toList(), List.of(60, 60, 60, 60, 60));
    same(customers.distinct("city", String.class).into(new ArrayList<>()).stream().sorted().toList(), CITIES);
  }

  private void cursorsAndPages() {
    events.deleteMany(new Document());
    events.insertMany(IntStream.range(0, 1000)
        .mapToObj(i -> new Document("_id", i).append("kind", i % 4).append("text", "x".repeat(i % 50))).toList());
    Set<Integer> seen = new HashSet<>();
    events.find().batchSize(37).forEach(event -> seen.add(event.getInteger("_id")));
    same(seen.size(), 1000);
    List<Integer> pages = new ArrayList<>();
    for (int page = 0; page < 5; page++) {
      events.find(eq("kind", 1)).sort(new Document("_id", -1)).skip(page * 50).limit(50).forEach(event -> pages.add(event.getInteger("_id")));
    }
    same(pages, IntStream.range(0, 250).mapToObj(i -> 997 - 4 * i).toList());
    int found = 0, after = -1;
    for (;;) {
      List<Document> page = events.find(gt("_id", after)).sort(new Document("_id", 1)).limit(300).into(new ArrayList<>());
      if (page.isEmpty()) {
        break;
      }
      found += page.size();
      after = page.get(page.size() - 1).getInteger("_id");
    }
    same(found, 1000);
    try (MongoCursor<Document> left = events.find().batchSize(10).iterator()) {
      left.next();
    }
    same(events.estimatedDocumentCount(), 1000L);
  }

  private void sessions() {
    try (ClientSession session = client.startSession(ClientSessionOptions.builder().causallyConsistent(true).build())) {
      events.insertOne(session, new Document("_id", "session"));
      same(session.getOperationTime() != null, true, "operationTime");
      Document found = events.withReadConcern(ReadConcern.MAJORITY).find(session, eq("session")).first();
      same(found, new Document("_id", "session"));
    }
  }
}
