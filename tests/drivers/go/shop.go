package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// purchase lets one customer buy. It returns true if there was stock.
func purchase(worker, turn int) bool {
	customer := (worker*purchases + turn) * 7 % customerCount
	wanted, quantity, cart := sku((worker*31+turn*13)%productCount), 1+turn%3, fmt.Sprintf("cart-%d-%d", worker, turn)

	put := must(carts.UpdateOne(ctx, bson.M{"_id": cart}, bson.M{
		"$push": bson.M{"items": bson.M{"sku": wanted, "quantity": quantity}}, "$set": bson.M{"updatedAt": time.Now()},
		"$setOnInsert": bson.M{"customer": customer},
	}, options.UpdateOne().SetUpsert(true)))
	same(put.UpsertedCount, int64(1))

	if turn%2 == 0 {
		return must(order(ctx, customer, worker, quantity, wanted, cart))
	}
	session := must(client.StartSession())
	defer session.EndSession(ctx)
	bought := must(session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		return order(ctx, customer, worker, quantity, wanted, cart)
	}))
	return bought.(bool)
}

// order takes the stock, numbers the order, bills the customer and empties the cart. It returns true if there was stock.
func order(ctx context.Context, customer, worker, quantity int, wanted, cart string) (bool, error) {
	var product struct{ Price int }
	err := products.FindOneAndUpdate(ctx, bson.M{"_id": wanted, "stock": bson.M{"$gte": quantity}},
		bson.M{"$inc": bson.M{"stock": -quantity, "sold": quantity}},
		options.FindOneAndUpdate().SetReturnDocument(options.After).SetProjection(bson.M{"price": 1, "stock": 1})).Decode(&product)
	bought := !errors.Is(err, mongo.ErrNoDocuments)
	if bought {
		if err != nil {
			return false, err
		}
		var counter struct{ Seq int }
		if err := counters.FindOneAndUpdate(ctx, bson.M{"_id": "orders"}, bson.M{"$inc": bson.M{"seq": 1}},
			options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Decode(&counter); err != nil {
			return false, err
		}
		total := product.Price * quantity
		if _, err := orders.InsertOne(ctx, bson.D{
			{"_id", counter.Seq}, {"customer", customer}, {"worker", worker}, {"state", "placed"}, {"total", total}, {"placedAt", time.Now()},
			{"items", bson.A{bson.M{"sku": wanted, "quantity": quantity, "price": product.Price}}},
		}); err != nil {
			return false, err
		}
		paid, err := customers.UpdateOne(ctx, bson.M{"_id": customer}, bson.M{
			"$inc": bson.M{"orders": 1, "spent": total}, "$push": bson.M{"recent": bson.M{"$each": bson.A{counter.Seq}, "$slice": -5}},
		})
		if err != nil {
			return false, err
		}
		same(paid.ModifiedCount, int64(1))
	}
	emptied, err := carts.DeleteOne(ctx, bson.M{"_id": cart})
	if err != nil {
		return false, err
	}
	same(emptied.DeletedCount, int64(1), "carts deleted: ")
	return bought, nil
}

// rush lets all customers buy at once while connections are closed and the server is killed and restarted.
func rush() int {
	sold := make([]int, workers)
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for turn := range purchases {
				if worker == 0 && turn == 35 {
					control("crash")
				} else if worker == 0 && turn%10 == 5 {
					control("sever")
				}
				if purchase(worker, turn) {
					sold[worker]++
				}
			}
		})
	}
	group.Wait()
	sales := 0
	for _, one := range sold {
		sales += one
	}
	return sales
}

// theBooksBalance checks that nothing was lost and nothing was executed twice, whatever connections were closed.
func theBooksBalance(sales int) {
	same(count(orders, bson.M{}), int64(sales))
	var counter struct{ Seq int }
	check(counters.FindOne(ctx, bson.M{"_id": "orders"}).Decode(&counter))
	same(counter.Seq, sales)
	same(count(carts, bson.M{}), int64(0))
	balanced := bson.M{"$eq": bson.A{bson.M{"$add": bson.A{"$stock", "$sold"}}, stockOfEach}}
	stock := all[struct{ Stock, Sold, Broken int }](products.Aggregate(ctx, bson.A{bson.M{"$group": bson.M{
		"_id": nil, "stock": bson.M{"$sum": "$stock"}, "sold": bson.M{"$sum": "$sold"},
		"broken": bson.M{"$sum": bson.M{"$cond": bson.A{balanced, 0, 1}}},
	}}}))[0]
	sold := all[struct{ Quantity, Total int }](orders.Aggregate(ctx, bson.A{bson.M{"$unwind": "$items"}, bson.M{"$group": bson.M{
		"_id": nil, "quantity": bson.M{"$sum": "$items.quantity"},
		"total": bson.M{"$sum": bson.M{"$multiply": bson.A{"$items.quantity", "$items.price"}}},
	}}}))[0]
	paid := all[struct{ Orders, Spent, Recent int }](customers.Aggregate(ctx, bson.A{bson.M{"$group": bson.M{
		"_id": nil, "orders": bson.M{"$sum": "$orders"}, "spent": bson.M{"$sum": "$spent"}, "recent": bson.M{"$sum": bson.M{"$size": "$recent"}},
	}}}))[0]
	same([]int{stock.Stock + stock.Sold, stock.Broken}, []int{productCount * stockOfEach, 0})
	same(stock.Sold, sold.Quantity)
	same([]int{paid.Orders, paid.Spent, paid.Recent}, []int{sales, sold.Total, sales})
}
