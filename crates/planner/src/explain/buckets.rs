//! What explain shows of a scan of the buckets of a time-series collection.

use super::{NodeStats, direction, number};
use crate::plan::{BucketScan, PointOrder};
use quire_document::{DocWriter, Value};

/// Prints what a scan of buckets tests once for a bucket, and how many it unpacked.
pub(super) fn bucket_facts(scan: &BucketScan, stats: Option<&NodeStats>, out: &mut DocWriter<'_>) {
    if let Some(condition) = &scan.of_meta {
        out.append("bucketFilter", &condition.to_bson());
    }
    let (first, last) = scan.times;
    let mut times = out.document("bucketTimes");
    times.append_some("first", (first > i64::MIN).then_some(Value::Date(first)));
    times.append_some("last", (last < i64::MAX).then_some(Value::Date(last)));
    times.finish();
    match scan.order {
        PointOrder::Any => {}
        PointOrder::Time { backward } => {
            out.append("direction", direction(backward));
        }
        PointOrder::Sources { backward, newest_first } => {
            out.append("metaDirection", direction(backward));
            out.append("direction", direction(newest_first));
        }
    }
    if let Some(each) = scan.each {
        number("pointsOfEach", each, out);
    }
    if let Some(stats) = stats {
        number("bucketsUnpacked", stats.buckets_read, out);
        number("bucketsSkipped", stats.buckets_skipped, out);
        number("docsExamined", stats.docs_examined, out);
    }
}
