import static com.mongodb.client.model.Accumulators.sum;
import static com.mongodb.client.model.Aggregates.group;
import static com.mongodb.client.model.Aggregates.unwind;
import static com.mongodb.client.model.Filters.and;
import static com.mongodb.client.model.Filters.eq;
import static com.mongodb.client.model.Filters.gte;
import static com.mongodb.client.model.Projections.include;
import static com.mongodb.client.model.Updates.combine;
import static com.mongodb.client.model.Updates.inc;
import static com.mongodb.client.model.Updates.push;
import static com.mongodb.client.model.Updates.pushEach;
import static com.mongodb.client.model.Updates.set;
import static com.mongodb.client.model.Updates.setOnInsert;

import com.mongodb.client.ClientSession;
import com.mongodb.client.model.FindOneAndUpdateOptions;
import com.mongodb.client.model.PushOptions;
import com.mongodb.client.model.ReturnDocument;
import com.mongodb.client.model.UpdateOptions;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.bson.Document;

/** Many customers buy at once while connections are cut and the server is killed and started again. */
final class Purchase {
  private static final int WORKERS = 4, PURCHASES = 60;
  private final Shop shop;

  Purchase(Shop shop) {
    this.shop = shop;
  }

  /** Lets every worker buy; answers how many sales there were. */
  int rush() throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(WORKERS);
    List<Callable<Integer>> workers = new ArrayList<>();
    for (int worker = 0; worker < WORKERS; worker++) {
      int number = worker;
      workers.add(() -> oneWorker(number));
    }
    try {
      int sales = 0;
      for (Future<Integer> sold : pool.invokeAll(workers)) {
        sales += sold.get();
      }
      return sales;
    } finally {
      pool.shutdown();
    }
  }

  private int oneWorker(int worker) throws Exception {
    int sold = 0;
    for (int turn = 0; turn < PURCHASES; turn++) {
      if (worker == 0 && turn % 10 == 5) {
        Shop.control(turn == 35 ? "crash" : "sever");
      }
      sold += purchase(worker, turn) ? 1 : 0;
    }
    return sold;
  }

  /** One customer buys; answers whether there was stock. */
  private boolean purchase(int worker, int turn) {
    int customer = (worker * PURCHASES + turn) * 7 % Shop.CUSTOMERS, quantity = 1 + turn % 3;
    String wanted = Shop.sku((worker * 31 + turn * 13) % Shop.PRODUCTS), cart = "cart-" + worker + "-" + turn;

    Document line = new Document("sku", wanted).append("quantity", quantity);
    var put = shop.carts.updateOne(eq(cart),
        combine(push("items", line), set("updatedAt", new Date()), setOnInsert("customer", customer)), new UpdateOptions().upsert(true));
    Shop.same(put.getUpsertedId() != null, true, "upserted");

    try (ClientSession session = shop.client.startSession()) {
      return turn % 2 == 1
          ? session.withTransaction(() -> order(session, customer, worker, line, cart))
          : order(session, customer, worker, line, cart);
    }
  }

  /** Takes the stock, numbers the order, bills the customer and empties the cart; answers whether there was stock. */
  private boolean order(ClientSession session, int customer, int worker, Document line, String cart) {
    int quantity = line.getInteger("quantity");
    FindOneAndUpdateOptions after = new FindOneAndUpdateOptions().returnDocument(ReturnDocument.AFTER);
    Document product = shop.products.findOneAndUpdate(session, and(eq(line.getString("sku")), gte("stock", quantity)),
        combine(inc("stock", -quantity), inc("sold", quantity)),
        new FindOneAndUpdateOptions().returnDocument(ReturnDocument.AFTER).projection(include("price", "stock")));
    if (product != null) {
      int number = shop.counters.findOneAndUpdate(session, eq("orders"), inc("seq", 1), after.upsert(true)).getInteger("seq");
      int price = product.getInteger("price"), total = price * quantity;
      shop.orders.insertOne(session, new Document("_id", number).append("customer", customer).append("worker", worker)
          .append("state", "placed").append("total", total).append("placedAt", new Date())
          .append("items", List.of(new Document(line).append("price", price))));
      var paid = shop.customers.updateOne(session, eq(customer), combine(
          inc("orders", 1), inc("spent", total), pushEach("recent", List.of(number), new PushOptions().slice(-5))));
      Shop.same(paid.getModifiedCount(), 1L);
    }
    Shop.same(shop.carts.deleteOne(session, eq(cart)).getDeletedCount(), 1L, "carts deleted:");
    return product != null;
  }

  /** What must hold whatever was cut: nothing lost, nothing done twice. */
  void theBooksBalance(int sales) {
    Shop.same(shop.orders.countDocuments(), (long) sales);
    Shop.same(shop.counters.find(eq("orders")).first().getInteger("seq"), sales);
    Shop.same(shop.carts.countDocuments(), 0L);
    Document balanced = new Document("$eq", List.of(new Document("$add", List.of("$stock", "$sold")), Shop.STOCK));
    Document stock = shop.products.aggregate(List.of(group(null, sum("stock", "$stock"), sum("sold", "$sold"),
        sum("broken", new Document("$cond", List.of(balanced, 0, 1)))))).first();
    Document amount = new Document("$multiply", List.of("$items.quantity", "$items.price"));
    Document sold = shop.orders.aggregate(List.of(
        unwind("$items"), group(null, sum("quantity", "$items.quantity"), sum("total", amount)))).first();
    Document paid = shop.customers.aggregate(List.of(group(null, sum("orders", "$orders"), sum("spent", "$spent"),
        sum("recent", new Document("$size", "$recent"))))).first();
    Shop.same(stock.getInteger("stock") + stock.getInteger("sold"), Shop.PRODUCTS * Shop.STOCK);
    Shop.same(stock.getInteger("broken"), 0);
    Shop.same(stock.getInteger("sold"), sold.getInteger("quantity"));
    Shop.same(List.of(paid.getInteger("orders"), paid.getInteger("spent"), paid.getInteger("recent")),
        List.of(sales, sold.getInteger("total"), sales));
  }
}
