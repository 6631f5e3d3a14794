//! The window functions that no `$group` has, compared with the formulas of the manual over the
//! sorted documents of a partition.

use super::*;
use quire_document::testing::Generator;
use quire_document::{Value, ValueBuf, doc};
use quire_executor::open;
use quire_planner::AggregateRequest;

/// A document: its partition, its position on the axis, a value that may be null, and a number.
#[derive(Clone, Copy, Debug)]
struct Point {
    partition: i32,
    at: i32,
    x: Option<f64>,
    y: f64,
}

/// The result of a function for the document at a position of its sorted partition; `None` for
/// null.
type Formula = fn(&[Point], usize) -> Option<f64>;

/// Returns a window of documents that begins three before its document and ends one after it.
fn around(points: &[Point], at: usize) -> &[Point] {
    &points[at.saturating_sub(3)..(at + 2).min(points.len())]
}

fn slope(points: &[Point], at: usize) -> Option<f64> {
    let window = around(points, at);
    let (first, last) = (window.first()?, window.last()?);
    (window.len() > 1).then(|| (last.y - first.y) / f64::from(last.at - first.at))
}

fn area(points: &[Point], at: usize) -> Option<f64> {
    let trapezoid =
        |pair: &[Point]| f64::from(pair[1].at - pair[0].at) * (pair[0].y + pair[1].y) / 2.0;
    Some(around(points, at).windows(2).map(trapezoid).sum())
}

/// Returns the sum of the products of the deviations, and the number of pairs.
fn deviations(points: &[Point], at: usize) -> (f64, f64) {
    let pairs: Vec<(f64, f64)> =
        around(points, at).iter().filter_map(|point| Some((point.x?, point.y))).collect();
    let count = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    (pairs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum(), count)
}

fn covariance(points: &[Point], at: usize) -> Option<f64> {
    let (sum, count) = deviations(points, at);
    (count > 0.0).then(|| sum / count)
}

fn sample_covariance(points: &[Point], at: usize) -> Option<f64> {
    let (sum, count) = deviations(points, at);
    (count > 1.0).then(|| sum / (count - 1.0))
}

/// Returns the average of all documents up to this one, each weighted by `alpha` of the remaining
/// weight.
fn smoothed(points: &[Point], at: usize, alpha: f64) -> Option<f64> {
    points[..=at].iter().map(|point| point.y).reduce(|mean, y| y * alpha + mean * (1.0 - alpha))
}

fn last_known(points: &[Point], at: usize) -> Option<f64> {
    points[..=at].iter().rev().find_map(|point| point.x)
}

fn interpolated(points: &[Point], at: usize) -> Option<f64> {
    if points[at].x.is_some() {
        return points[at].x;
    }
    let known = |point: &&Point| point.x.is_some();
    let (before, behind) = (points[..at].iter().rfind(known)?, points[at..].iter().find(known)?);
    let (low, high) = (before.x?, behind.x?);
    let share = f64::from(points[at].at - before.at) / f64::from(behind.at - before.at);
    Some(low + (high - low) * share)
}

fn scaled(points: &[Point], at: usize) -> Option<f64> {
    let ys = || around(points, at).iter().map(|point| point.y);
    let (low, high) = (ys().fold(f64::MAX, f64::min), ys().fold(f64::MIN, f64::max));
    Some(if high > low { (points[at].y - low) / (high - low) } else { 0.0 })
}

fn smaller(points: &[Point], at: usize) -> impl Iterator<Item = i32> {
    let own = points[at].at;
    points.iter().map(|point| point.at).filter(move |at| *at < own)
}

fn functions() -> Vec<(DocBuf, Formula)> {
    let window = [ValueBuf::new(-3), ValueBuf::new(1)];
    let [low, high] = &window;
    let over = |name: &str, argument: &ValueBuf| {
        doc! { (name): argument, "window": { "documents": [low, high] } }
    };
    let pair = doc! { "pair": ["$x", "$y"] };
    let pair = ValueBuf::new(pair.get("pair").unwrap());
    let input = ValueBuf::new(&doc! { "input": "$y" });
    let shift = |by: i32| doc! { "$shift": { "output": "$y", "by": by, "default": -1.0 } };
    vec![
        (over("$derivative", &input), slope),
        (over("$integral", &input), area),
        (over("$covariancePop", &pair), covariance),
        (over("$covarianceSamp", &pair), sample_covariance),
        (over("$minMaxScaler", &input), scaled),
        (doc! { "$expMovingAvg": { "input": "$y", "alpha": 0.3 } }, |points, at| {
            smoothed(points, at, 0.3)
        }),
        (doc! { "$expMovingAvg": { "input": "$y", "N": 4 } }, |points, at| {
            smoothed(points, at, 2.0 / 5.0)
        }),
        (doc! { "$locf": "$x" }, last_known),
        (doc! { "$linearFill": "$x" }, interpolated),
        (shift(2), |points, at| Some(points.get(at + 2).map_or(-1.0, |point| point.y))),
        (shift(-1), |points, at| Some(if at == 0 { -1.0 } else { points[at - 1].y })),
        (doc! { "$documentNumber": {} }, |_, at| Some(at as f64 + 1.0)),
        (doc! { "$rank": {} }, |points, at| Some(smaller(points, at).count() as f64 + 1.0)),
        (doc! { "$denseRank": {} }, |points, at| {
            let distinct: std::collections::BTreeSet<i32> = smaller(points, at).collect();
            Some(distinct.len() as f64 + 1.0)
        }),
    ]
}

/// Returns sorted points of three partitions. Without `ties` all positions in a partition differ.
fn points(random: &mut Generator, ties: bool) -> Vec<Point> {
    let mut points = Vec::new();
    for partition in 0..3 {
        let mut at = 0;
        for _ in 0..random.below(12) {
            at += if ties && random.one_in(3) { 0 } else { 1 + random.below(5) as i32 };
            let x = (!random.one_in(3)).then(|| random.below(40) as f64 / 4.0);
            points.push(Point { partition, at, x, y: random.below(80) as f64 / 8.0 });
        }
    }
    points
}

fn evaluated(points: &[Point], function: &DocBuf, params: ExecParams, batch: usize) -> Vec<DocBuf> {
    let store = store();
    let docs: Vec<DocBuf> = points
        .iter()
        .zip(0..)
        .map(|(point, id)| {
            let mut doc = doc! { "_id": id, "p": point.partition, "at": point.at, "y": point.y };
            match point.x {
                Some(x) => doc.append("x", x),
                None => doc.append("x", Value::Null),
            };
            doc
        })
        .collect();
    // Inserted in reverse order: the stage sorts them.
    insert_all(&store, "db.c", docs.iter().rev().map(DocBuf::as_doc));
    let window = doc! { "$setWindowFields": {
        "partitionBy": "$p", "sortBy": { "at": 1 }, "output": { "r": function }
    } };
    let pipeline = vec![window];
    let namespace = "db.c".into();
    let request = AggregateRequest { namespace, pipeline, ..AggregateRequest::default() };
    let mut execution = open(&request, &FreshViews::new(&store).unwrap(), params).unwrap();
    drain(&store, &mut execution, batch)
}

#[test]
fn each_function_agrees_with_its_formula() {
    let random = &mut Generator::new(7);
    for (function, formula) in functions() {
        let ranks = ["$rank", "$denseRank"].iter().any(|name| function.as_doc().contains(name));
        for round in 0..20 {
            let points = points(random, ranks);
            let (params, batch) = match round % 2 {
                0 => (params(), 100),
                _ => (ExecParams { stage_bytes_max: 1024, ..params() }, 1),
            };
            let found = evaluated(&points, &function, params, batch);
            assert_eq!(found.len(), points.len());
            let mut docs = found.iter();
            for partition in points.chunk_by(|a, b| a.partition == b.partition) {
                for at in 0..partition.len() {
                    let doc = docs.next().unwrap();
                    let result = doc.get("r").filter(|value| !matches!(value, Value::Null));
                    let result = result.map(|value| value.as_number().unwrap().to_f64());
                    let wanted = formula(partition, at);
                    let same = match (result, wanted) {
                        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs().max(1.0),
                        (a, b) => a == b,
                    };
                    assert!(same, "{function:?}: {doc:?} should have {wanted:?}, {partition:?}");
                }
            }
        }
    }
}
