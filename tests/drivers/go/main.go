// The shop (see ../README.md) through MongoDB's Go driver. This file has the main steps; shop.go has a purchase and
// once.go retries each kind of operation.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/version"
)

const (
	customerCount = 300
	productCount  = 100
	stockOfEach   = 6
	workers       = 4
	purchases     = 60
)

var (
	cities     = []string{"Ghent", "Oslo", "Porto", "Turin", "Zagreb"}
	categories = []string{"books", "garden", "kitchen", "music", "sport", "toys"}
	ctx        = context.Background()

	client                                               *mongo.Client
	db                                                   *mongo.Database
	customers, products, orders, carts, counters, events *mongo.Collection
)

func main() {
	client = must(mongo.Connect(options.Client().ApplyURI(os.Getenv("SHOP_URI"))))
	db = client.Database(os.Getenv("SHOP_DB"))
	customers, products, orders = db.Collection("customers"), db.Collection("products"), db.Collection("orders")
	carts, counters, events = db.Collection("carts"), db.Collection("counters"), db.Collection("events")

	stockTheShop()
	duplicatesAreRefused()
	sales := rush()
	theBooksBalance(sales)
	eachIsDoneOnce()
	updatesWithOperators()
	reports()
	cursorsAndPages()
	sessions()
	check(client.Disconnect(ctx))
	line := must(json.Marshal(map[string]any{"driver": "mongo-driver " + version.Driver, "sales": sales}))
	fmt.Println(string(line))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

// same panics unless both are equal.
func same(found, wanted any, about ...any) {
	if !reflect.DeepEqual(found, wanted) {
		panic(fmt.Sprintf("%v %#v is not %#v", fmt.Sprint(about...), found, wanted))
	}
}

func all[T any](cursor *mongo.Cursor, err error) []T {
	check(err)
	found := []T{}
	check(cursor.All(ctx, &found))
	return found
}

func count(collection *mongo.Collection, filter any) int64 {
	return must(collection.CountDocuments(ctx, filter))
}

// control sends one line to the proxy's control port and reads one back.
func control(word string) string {
	peer := must(net.Dial("tcp", os.Getenv("SHOP_CONTROL")))
	defer peer.Close()
	must(fmt.Fprintln(peer, word))
	var answer string
	must(fmt.Fscanln(peer, &answer))
	return answer
}

func sku(i int) string { return fmt.Sprintf("sku-%03d", i) }

func price(i int) int { return 100 + (i*37)%900 }

func stockTheShop() {
	check(db.Drop(ctx))
	index := func(collection *mongo.Collection, keys bson.D, opts *options.IndexOptionsBuilder) {
		must(collection.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: keys, Options: opts}))
	}
	index(customers, bson.D{{"email", 1}}, options.Index().SetUnique(true))
	index(customers, bson.D{{"city", 1}, {"spent", -1}}, nil)
	index(products, bson.D{{"category", 1}, {"price", 1}}, nil)
	index(products, bson.D{{"tags", 1}}, nil)
	must(orders.Indexes().CreateMany(ctx, []mongo.IndexModel{
		{Keys: bson.D{{"customer", 1}, {"placedAt", -1}}, Options: options.Index().SetName("by_customer")},
		{Keys: bson.D{{"items.sku", 1}}, Options: options.Index().SetName("by_sku").SetSparse(true)},
	}))
	index(carts, bson.D{{"updatedAt", 1}}, options.Index().SetExpireAfterSeconds(3600).SetName("abandoned"))

	people := []any{}
	for i := range customerCount {
		people = append(people, bson.D{
			{"_id", i}, {"email", fmt.Sprintf("c%d@shop.example", i)}, {"name", fmt.Sprintf("Customer %d", i)}, {"city", cities[i%5]},
			{"address", bson.D{{"street", fmt.Sprintf("%d Main Street", i)}, {"zip", fmt.Sprint(10000 + i)}}},
			{"orders", 0}, {"spent", 0}, {"recent", bson.A{}},
		})
	}
	same(len(must(customers.InsertMany(ctx, people)).InsertedIDs), customerCount)
	stock := []mongo.WriteModel{}
	for i := range productCount {
		stock = append(stock, mongo.NewUpdateOneModel().SetFilter(bson.M{"_id": sku(i)}).SetUpsert(true).SetUpdate(bson.M{"$set": bson.D{
			{"category", categories[i%6]}, {"price", price(i)}, {"stock", stockOfEach}, {"sold", 0},
			{"tags", bson.A{fmt.Sprintf("t%d", i%7), fmt.Sprintf("t%d", i%11)}},
			{"variants", bson.A{bson.M{"size": "S", "stock": 1}, bson.M{"size": "M", "stock": 2}, bson.M{"size": "L", "stock": 3}}},
		}}))
	}
	same(must(products.BulkWrite(ctx, stock, options.BulkWrite().SetOrdered(false))).UpsertedCount, int64(productCount))

	names := []string{}
	for _, spec := range must(orders.Indexes().ListSpecifications(ctx)) {
		names = append(names, spec.Name)
	}
	same(names, []string{"_id_", "by_customer", "by_sku"})
	for _, spec := range must(carts.Indexes().ListSpecifications(ctx)) {
		if spec.Name == "abandoned" {
			same(*spec.ExpireAfterSeconds, int32(3600))
		}
	}
}

func duplicatesAreRefused() {
	_, err := customers.InsertOne(ctx, bson.M{"_id": 9000, "email": "c7@shop.example"})
	same(mongo.IsDuplicateKeyError(err), true, "IsDuplicateKeyError")
	raw := err.(mongo.WriteException).WriteErrors[0].Raw
	same(raw.Lookup("keyValue", "email").StringValue(), "c7@shop.example")
	same(raw.Lookup("keyPattern", "email").AsInt64(), int64(1))

	batch := []any{}
	for i := 1; i <= 5; i++ {
		email := fmt.Sprintf("c%d@shop.example", i)
		if i%2 == 1 {
			email = fmt.Sprintf("new%d@shop.example", i)
		}
		batch = append(batch, bson.M{"_id": 9000 + i, "email": email})
	}
	_, err = customers.InsertMany(ctx, batch, options.InsertMany().SetOrdered(false))
	refused := [][2]int{}
	for _, one := range err.(mongo.BulkWriteException).WriteErrors {
		refused = append(refused, [2]int{one.Index, one.Code})
	}
	same(refused, [][2]int{{1, 11000}, {3, 11000}})
	_, err = customers.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"email": "c2@shop.example"}})
	same(mongo.IsDuplicateKeyError(err), true, "IsDuplicateKeyError")
	same(must(customers.DeleteMany(ctx, bson.M{"_id": bson.M{"$gte": 9000}})).DeletedCount, int64(3))
}

func updatesWithOperators() {
	must(products.UpdateOne(ctx, bson.M{"_id": sku(1), "variants.size": "M"}, bson.M{"$inc": bson.M{"variants.$.stock": 5}}))
	var product struct{ Variants []struct{ Stock int } }
	check(products.FindOne(ctx, bson.M{"_id": sku(1)}).Decode(&product))
	same(product.Variants, []struct{ Stock int }{{1}, {7}, {3}})
	raised := must(products.UpdateMany(ctx, bson.M{"category": "books"}, bson.M{"$set": bson.M{"variants.$[low].reorder": true}},
		options.UpdateMany().SetArrayFilters([]any{bson.M{"low.stock": bson.M{"$lt": 2}}})))
	same(raised.ModifiedCount, int64(17))
	same(count(products, bson.M{"variants.reorder": true}), int64(17))
	flagged := must(orders.UpdateMany(ctx, bson.M{}, bson.A{bson.M{"$set": bson.M{"large": bson.M{"$gte": bson.A{"$total", 1000}}}}}))
	same(flagged.ModifiedCount, count(orders, bson.M{}))
	same(count(orders, bson.M{"large": true}), count(orders, bson.M{"total": bson.M{"$gte": 1000}}))
	must(products.UpdateMany(ctx, bson.M{}, bson.M{"$addToSet": bson.M{"tags": "all"}, "$currentDate": bson.M{"touched": true}}))
	must(products.UpdateMany(ctx, bson.M{}, bson.M{"$pull": bson.M{"tags": "t3"}}))
	same(count(products, bson.M{"tags": "all", "touched": bson.M{"$type": "date"}}), int64(productCount))
	same(count(products, bson.M{"tags": "t3"}), int64(0))
	mixed := must(events.BulkWrite(ctx, []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 1, "n": 1}),
		mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 2, "n": 2}),
		mongo.NewUpdateManyModel().SetFilter(bson.M{}).SetUpdate(bson.M{"$mul": bson.M{"n": 10}}),
		mongo.NewReplaceOneModel().SetFilter(bson.M{"_id": 2}).SetReplacement(bson.M{"n": "two"}),
		mongo.NewDeleteOneModel().SetFilter(bson.M{"_id": 1}),
	}))
	same([]int64{mixed.InsertedCount, mixed.ModifiedCount, mixed.DeletedCount}, []int64{2, 3, 1})
	same(all[bson.M](events.Find(ctx, bson.M{})), []bson.M{{"_id": int32(2), "n": "two"}})
}

func reports() {
	sold := all[struct{ Revenue int }](products.Aggregate(ctx, bson.A{
		bson.M{"$group": bson.M{"_id": "$category", "revenue": bson.M{"$sum": bson.M{"$multiply": bson.A{"$sold", "$price"}}}}},
		bson.M{"$sort": bson.D{{"revenue", -1}, {"_id", 1}}},
	}))
	revenue := all[struct{ Total int }](orders.Aggregate(ctx, bson.A{bson.M{"$group": bson.M{"_id": nil, "total": bson.M{"$sum": "$total"}}}}))
	sum := 0
	for _, row := range sold {
		sum += row.Revenue
	}
	same([]int{len(sold), sum}, []int{len(categories), revenue[0].Total})
	best := all[bson.D](customers.Find(ctx, bson.M{}, options.Find().SetProjection(bson.M{"_id": 0, "email": 1, "spent": 1}).
		SetSort(bson.D{{"spent", -1}, {"_id", 1}}).SetLimit(5)))
	same([]string{best[0][0].Key, best[0][1].Key}, []string{"email", "spent"})
	same(slices.IsSortedFunc(best, func(a, b bson.D) int { return int(b[1].Value.(int32) - a[1].Value.(int32)) }), true, "sorted by spent")
	perCity := all[struct{ Count int }](customers.Aggregate(ctx, bson.A{bson.M{"$sortByCount": "$city"}}))
	same(perCity, []struct{ Count int }{{60}, {60}, {60}, {60}, {60}})
	names := []string{}
	check(customers.Distinct(ctx, "city", bson.M{}).Decode(&names))
	slices.Sort(names)
	same(names, cities)
}

func cursorsAndPages() {
	type event struct {
		ID int `bson:"_id"`
	}
	must(events.DeleteMany(ctx, bson.M{}))
	many := []any{}
	for i := range 1000 {
		many = append(many, bson.M{"_id": i, "kind": i % 4, "text": strings.Repeat("x", i%50)})
	}
	must(events.InsertMany(ctx, many))
	seen := map[int]bool{}
	for _, one := range all[event](events.Find(ctx, bson.M{}, options.Find().SetBatchSize(37))) {
		seen[one.ID] = true
	}
	same(len(seen), 1000)
	place := 0
	for page := range 5 {
		opts := options.Find().SetSort(bson.M{"_id": -1}).SetSkip(int64(page * 50)).SetLimit(50)
		for _, one := range all[event](events.Find(ctx, bson.M{"kind": 1}, opts)) {
			same(one.ID, 997-4*place)
			place++
		}
	}
	same(place, 250)
	found, after := 0, -1
	for {
		opts := options.Find().SetSort(bson.M{"_id": 1}).SetLimit(300)
		page := all[event](events.Find(ctx, bson.M{"_id": bson.M{"$gt": after}}, opts))
		if len(page) == 0 {
			break
		}
		found, after = found+len(page), page[len(page)-1].ID
	}
	same(found, 1000)
	left := must(events.Find(ctx, bson.M{}, options.Find().SetBatchSize(10)))
	same(left.Next(ctx), true, "Next")
	check(left.Close(ctx))
	same(must(events.EstimatedDocumentCount(ctx)), int64(1000))
}

func sessions() {
	check(client.UseSessionWithOptions(ctx, options.Session().SetCausalConsistency(true), func(ctx context.Context) error {
		must(events.InsertOne(ctx, bson.M{"_id": "session", "at": time.Now()}))
		same(mongo.SessionFromContext(ctx).OperationTime() != nil, true, "OperationTime")
		majority := events.Clone(options.Collection().SetReadConcern(readconcern.Majority()))
		return majority.FindOne(ctx, bson.M{"_id": "session"}).Err()
	}))
}
