package main

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// retried is an operation, its expected result, and the documents that it must leave (each with its n).
type retried struct {
	name   string
	run    func() any
	result any
	left   string
}

// eachIsDoneOnce lets each kind of retryable operation lose its request, then its reply, and checks that it is executed exactly once.
func eachIsDoneOnce() {
	once := db.Collection("once")
	for _, loss := range []string{"lose-request", "lose-reply"} {
		for _, operation := range operations(once) {
			must(once.DeleteMany(ctx, bson.M{}))
			must(once.InsertMany(ctx, []any{bson.M{"_id": "a", "n": 1}, bson.M{"_id": "b", "n": 1}, bson.M{"_id": "c", "n": 1}}))
			var before, after int
			must(fmt.Sscan(control("lost"), &before))
			control(loss)
			same(operation.run(), operation.result, operation.name, " after ", loss, ":")
			must(fmt.Sscan(control("lost"), &after))
			same(after, before+1, operation.name, ": messages lost ")
			found := []string{}
			for _, doc := range all[struct {
				ID string `bson:"_id"`
				N  *int
			}](once.Find(ctx, bson.M{}, options.Find().SetSort(bson.M{"_id": 1}))) {
				if doc.N != nil {
					doc.ID += fmt.Sprint(*doc.N)
				}
				found = append(found, doc.ID)
			}
			same(strings.Join(found, " "), operation.left, operation.name, " after ", loss, ":")
		}
	}
	check(once.Drop(ctx))
}

func operations(once *mongo.Collection) []retried {
	a, x := bson.M{"_id": "a"}, bson.M{"_id": "x"}
	raise := bson.M{"$inc": bson.M{"n": 1}}
	value := func(result *mongo.SingleResult) any {
		var doc struct{ N int }
		check(result.Decode(&doc))
		return doc.N
	}
	return []retried{
		{"InsertOne", func() any { return must(once.InsertOne(ctx, x)).InsertedID }, "x", "a1 b1 c1 x"},
		{"InsertMany", func() any {
			return len(must(once.InsertMany(ctx, []any{x, bson.M{"_id": "y"}})).InsertedIDs)
		}, 2, "a1 b1 c1 x y"},
		{"UpdateOne", func() any { return must(once.UpdateOne(ctx, a, raise)).ModifiedCount }, int64(1), "a2 b1 c1"},
		{"upsert", func() any {
			return must(once.UpdateOne(ctx, x, raise, options.UpdateOne().SetUpsert(true))).UpsertedID
		}, "x", "a1 b1 c1 x1"},
		{"ReplaceOne", func() any {
			return must(once.ReplaceOne(ctx, bson.M{"_id": "a", "n": 1}, bson.M{"n": 2})).ModifiedCount
		}, int64(1), "a2 b1 c1"},
		{"DeleteOne", func() any { return must(once.DeleteOne(ctx, a)).DeletedCount }, int64(1), "b1 c1"},
		{"before", func() any { return value(once.FindOneAndUpdate(ctx, a, raise)) }, 1, "a2 b1 c1"},
		{"after", func() any {
			return value(once.FindOneAndUpdate(ctx, a, raise, options.FindOneAndUpdate().SetReturnDocument(options.After)))
		}, 2, "a2 b1 c1"},
		{"FindOneAndReplace", func() any { return value(once.FindOneAndReplace(ctx, a, bson.M{"n": 2})) }, 1, "a2 b1 c1"},
		{"FindOneAndDelete", func() any { return value(once.FindOneAndDelete(ctx, a)) }, 1, "b1 c1"},
		{"BulkWrite", func() any {
			return must(once.BulkWrite(ctx, []mongo.WriteModel{
				mongo.NewUpdateOneModel().SetFilter(a).SetUpdate(raise),
				mongo.NewUpdateOneModel().SetFilter(bson.M{"_id": "b"}).SetUpdate(raise),
			})).ModifiedCount
		}, int64(2), "a2 b2 c1"},
		{"client.BulkWrite", func() any {
			return must(client.BulkWrite(ctx, []mongo.ClientBulkWrite{
				{Database: db.Name(), Collection: once.Name(), Model: mongo.NewClientInsertOneModel().SetDocument(x)},
				{Database: db.Name(), Collection: once.Name(), Model: mongo.NewClientUpdateOneModel().SetFilter(a).SetUpdate(raise)},
			})).ModifiedCount
		}, int64(1), "a2 b1 c1 x"},
		{"Find", func() any { return len(all[bson.M](once.Find(ctx, bson.M{"n": 1}))) }, 3, "a1 b1 c1"},
		{"Aggregate", func() any {
			return len(all[bson.M](once.Aggregate(ctx, bson.A{bson.M{"$match": bson.M{"n": 1}}})))
		}, 3, "a1 b1 c1"},
		{"CountDocuments", func() any { return count(once, bson.M{"n": 1}) }, int64(3), "a1 b1 c1"},
		{"Distinct", func() any {
			values := []int{}
			check(once.Distinct(ctx, "n", bson.M{}).Decode(&values))
			return values
		}, []int{1}, "a1 b1 c1"},
	}
}
