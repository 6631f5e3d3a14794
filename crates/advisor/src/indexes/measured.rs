//! What a request examined, as the reply of `explain` says it. The reply may come from any server of
//! MongoDB's protocol.

use crate::scaled::{SampleSize, Scaled};
use quire_document::{Doc, Value};

/// What a request examined, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// The documents that it returned, or that a write would change.
    pub returned: u64,
    /// The index keys that it examined in its own collection.
    pub keys: u64,
    /// The documents that it examined in its own collection.
    pub documents: u64,
    /// The index keys and the documents that its stages examined in other collections.
    pub joined: u64,
    /// The milliseconds that it took.
    pub millis: u64,
    /// The indexes that it read, in the order of the plan.
    pub indexes: Vec<String>,
    /// True if it read a whole collection.
    pub scans_collection: bool,
    /// The number of stages that sort in memory.
    pub sorts: u64,
    /// The bytes that were sorted in memory.
    pub sorted_bytes: u64,
    /// The ranges of keys that were sought.
    pub seeks: u64,
    /// The number of stages that read documents of the collection, so that each may read a document
    /// once.
    pub readers: u64,
    /// The number of stages that read keys of an index.
    pub scans: u64,
    /// True if it may end before it has read everything that matches.
    pub is_limited: bool,
    /// True if the documents that it returns are not those that it found.
    pub is_reshaped: bool,
    /// The error that ended it.
    pub error: Option<String>,
}

/// The numbers of a request on a whole collection, from those on a sample of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaledCounts {
    /// The index keys examined.
    pub keys: Scaled,
    /// The documents examined.
    pub documents: Scaled,
    /// The documents returned; `None` if they are not documents of the collection.
    pub returned: Option<Scaled>,
}

impl Measured {
    /// Reads the counters of an explanation with execution statistics; `None` if it has none.
    pub fn of_explanation(explained: Doc<'_>) -> Option<Measured> {
        let mut measured = Measured::default();
        if let Some(statistics) = document(explained, "executionStats") {
            measured.add_statistics(statistics, true);
            return Some(measured);
        }
        let stages = explained.get("stages")?.as_array()?;
        let mut is_known = false;
        for (at, stage) in stages.iter().filter_map(|stage| stage.as_document()).enumerate() {
            is_known |= measured.add_stage(stage, at == 0);
        }
        is_known.then_some(measured)
    }

    /// Adds a stage of a pipeline. Returns true if it has counters.
    fn add_stage(&mut self, stage: Doc<'_>, is_first: bool) -> bool {
        let Some(first) = stage.first() else { return false };
        let cursor = first.value().as_document().filter(|_| first.key() == "$cursor");
        if let Some(statistics) = cursor.and_then(|cursor| document(cursor, "executionStats")) {
            self.add_statistics(statistics, is_first);
        }
        self.joined += number(stage, "totalDocsExamined") + number(stage, "totalKeysExamined");
        let used = stage.get("indexesUsed").and_then(|used| used.as_array());
        for name in used.into_iter().flat_map(|used| used.iter()) {
            self.add_index(name.as_str());
        }
        match first.key() {
            "$cursor" => {}
            "$limit" => self.is_limited = true,
            "$sort" => {
                self.sorts += 1;
                self.sorted_bytes += number(stage, "totalDataSizeSortedBytesEstimate");
                let limits = document(stage, "$sort").is_some_and(|sort| sort.contains("limit"));
                self.is_reshaped |= limits;
            }
            "$match" | "$addFields" | "$set" | "$project" | "$unset" | "$lookup" => {}
            "$unionWith" => {
                self.add_union(first.value());
                self.is_reshaped = true;
            }
            _ => self.is_reshaped = true,
        }
        if let Some(returned) = stage.get("nReturned").and_then(whole) {
            self.returned = returned;
            return true;
        }
        cursor.is_some()
    }

    /// Adds what the pipelines of a `$unionWith` examined.
    fn add_union(&mut self, operand: Value<'_>) {
        let several = operand.as_array();
        let one = operand.as_document();
        let of_array = several.into_iter().flat_map(|several| several.iter());
        let of_array = of_array.filter_map(|one| one.as_document());
        for union in one.into_iter().chain(of_array) {
            let Some(stages) = union.get("pipeline").and_then(|stages| stages.as_array()) else {
                continue;
            };
            let mut other = Measured::default();
            for stage in stages.iter().filter_map(|stage| stage.as_document()) {
                other.add_stage(stage, false);
            }
            self.joined += other.joined;
        }
    }

    fn add_statistics(&mut self, statistics: Doc<'_>, is_own: bool) {
        let (keys, documents) =
            (number(statistics, "totalKeysExamined"), number(statistics, "totalDocsExamined"));
        if !is_own {
            self.joined += keys + documents;
            return;
        }
        self.keys += keys;
        self.documents += documents;
        self.returned = number(statistics, "nReturned");
        self.millis += number(statistics, "executionTimeMillis");
        let message = statistics.get("errorMessage").and_then(|message| message.as_str());
        self.error = message.map(str::to_owned);
        if let Some(root) = document(statistics, "executionStages") {
            self.add_node(root);
        }
    }

    /// Adds a node of the plan, and those below it.
    fn add_node(&mut self, node: Doc<'_>) {
        let stage = node.get("stage").and_then(|stage| stage.as_str()).unwrap_or_default();
        let (mut reads_documents, mut reads_keys) = (false, false);
        match stage {
            "COLLSCAN" | "CLUSTERED_IXSCAN" => {
                reads_documents = true;
                self.scans_collection |= stage == "COLLSCAN";
            }
            "FETCH" => reads_documents = true,
            "IXSCAN" | "DISTINCT_SCAN" | "COUNT_SCAN" => reads_keys = true,
            "IDHACK" | "EXPRESS_IXSCAN" | "EXPRESS_UPDATE" | "EXPRESS_CLUSTERED_IXSCAN" => {
                (reads_documents, reads_keys) = (true, true);
            }
            "SORT" => {
                self.sorts += 1;
                self.sorted_bytes += number(node, "totalDataSizeSorted");
                self.is_reshaped |= node.contains("limitAmount");
            }
            "LIMIT" => self.is_limited = true,
            "SKIP" | "GROUP" => self.is_reshaped = true,
            _ => {}
        }
        let is_leaf = !node.contains("inputStage") && !node.contains("inputStages");
        if is_leaf && (reads_documents || reads_keys) {
            self.is_limited |= node.get("isEOF").and_then(whole) == Some(0);
        }
        for counted in ["nCounted", "nWouldModify", "nWouldDelete"] {
            if let Some(counted) = node.get(counted).and_then(whole) {
                self.returned = counted;
            }
        }
        // Each key of a scan for distinct values ends a search.
        let sought = if stage == "DISTINCT_SCAN" { "keysExamined" } else { "seeks" };
        self.seeks += number(node, sought);
        self.readers += u64::from(reads_documents);
        self.scans += u64::from(reads_keys);
        self.add_index(node.get("indexName").and_then(|name| name.as_str()));
        for name in ["inputStage", "outerStage", "innerStage"] {
            if let Some(below) = document(node, name) {
                self.add_node(below);
            }
        }
        let below = node.get("inputStages").and_then(|below| below.as_array());
        for below in below.into_iter().flat_map(|below| below.iter()) {
            if let Value::Document(below) = below {
                self.add_node(below);
            }
        }
    }

    fn add_index(&mut self, name: Option<&str>) {
        if let Some(name) = name
            && !self.indexes.iter().any(|known| known == name)
        {
            self.indexes.push(name.to_owned());
        }
    }

    /// Returns the numbers on the whole collection. `most_keys` is the greatest number of keys that a
    /// document has in one index; `is_limited` says that the request asks for a part of what matches.
    pub fn scaled(&self, sample: SampleSize, most_keys: u64, is_limited: bool) -> ScaledCounts {
        let is_limited = is_limited || self.is_limited;
        if sample.is_whole() {
            return ScaledCounts {
                keys: Scaled::exact(self.keys),
                documents: Scaled::exact(self.documents),
                returned: Some(Scaled::exact(self.returned)),
            };
        }
        // A request that ends early reads no more of the collection than of the sample: the last row
        // that it needs is there too. It may find rows sooner.
        let soonest = |scaled: Scaled| match is_limited {
            true => {
                let low = scaled.low.min(self.returned);
                Scaled { low, estimate: self.limited_estimate(scaled, sample), ..scaled }
            }
            false => scaled,
        };
        let documents = match self.readers {
            0 => Scaled::exact(self.documents),
            readers => soonest(sample.sum(self.documents, readers)),
        };
        let returned = (!self.is_reshaped && !is_limited && self.joined == 0)
            .then(|| sample.sum(self.returned, self.readers.max(most_keys).max(1)));
        ScaledCounts { keys: soonest(self.scaled_keys(sample, most_keys)), documents, returned }
    }

    /// Returns the keys that are read in the whole collection. The number of searches need not grow
    /// with the number of documents.
    fn scaled_keys(&self, sample: SampleSize, most_keys: u64) -> Scaled {
        if self.scans == 0 {
            return Scaled::exact(self.keys);
        }
        let most = most_keys.max(1) * self.scans;
        let searches = self.seeks.max(self.scans);
        let growing = sample.sum(self.keys.saturating_sub(searches), most);
        let all = sample.sum(self.keys, most);
        Scaled { low: growing.low, estimate: all.estimate, high: all.high + searches }
    }

    /// Returns the plausible number for a request that ends early: as many as in the sample if it
    /// ended there.
    fn limited_estimate(&self, scaled: Scaled, sample: SampleSize) -> u64 {
        let at_most = (self.keys.max(self.documents)).min(sample.sampled);
        if self.is_limited { scaled.estimate.min(at_most) } else { scaled.estimate }
    }
}

fn document<'a>(doc: Doc<'a>, name: &str) -> Option<Doc<'a>> {
    doc.get(name)?.as_document()
}

fn number(doc: Doc<'_>, name: &str) -> u64 {
    doc.get(name).and_then(whole).unwrap_or(0)
}

fn whole(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Int32(number) => u64::try_from(number).ok(),
        Value::Int64(number) => u64::try_from(number).ok(),
        Value::Double(number) if number >= 0.0 => Some(number as u64),
        Value::Bool(is) => Some(u64::from(is)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::{DocBuf, doc};

    fn find(limit: bool, eof: i32) -> DocBuf {
        let scan = doc! {
            "stage": "IXSCAN", "nReturned": 12, "isEOF": eof, "indexName": "a_1",
            "keysExamined": 13, "seeks": 1,
        };
        let fetch =
            doc! { "stage": "FETCH", "docsExamined": 12, "isEOF": eof, "inputStage": &scan };
        let stage = if limit { "LIMIT" } else { "PROJECTION_SIMPLE" };
        let root = doc! { "stage": stage, "isEOF": 1, "inputStage": &fetch };
        let statistics = doc! {
            "nReturned": 12, "executionTimeMillis": 3, "totalKeysExamined": 13,
            "totalDocsExamined": 12, "executionStages": &root,
        };
        doc! { "queryPlanner": {}, "executionStats": &statistics }
    }

    #[test]
    fn a_plan_is_read_from_its_explanation() {
        let measured = Measured::of_explanation(find(false, 1).as_doc()).unwrap();
        let expected = Measured {
            returned: 12,
            keys: 13,
            documents: 12,
            millis: 3,
            indexes: vec!["a_1".to_owned()],
            seeks: 1,
            readers: 1,
            scans: 1,
            ..Measured::default()
        };
        assert_eq!(measured, expected);
        assert!(Measured::of_explanation(find(true, 1).as_doc()).unwrap().is_limited);
        assert!(Measured::of_explanation(find(false, 0).as_doc()).unwrap().is_limited);
        assert_eq!(Measured::of_explanation(doc! { "queryPlanner": {} }.as_doc()), None);
    }

    #[test]
    fn a_pipeline_is_read_stage_by_stage() {
        let cursor = find(false, 1);
        let first = doc! { "$cursor": &cursor, "nReturned": 12_i64 };
        let join = doc! {
            "$lookup": { "from": "b" }, "totalDocsExamined": 40_i64, "totalKeysExamined": 41_i64,
            "nReturned": 12_i64,
        };
        let group = doc! { "$group": { "_id": "$a" }, "nReturned": 2_i64 };
        let explained = doc! { "explainVersion": "1", "stages": [&first, &join, &group] };
        let measured = Measured::of_explanation(explained.as_doc()).unwrap();
        assert_eq!((measured.keys, measured.documents, measured.joined), (13, 12, 81));
        assert_eq!((measured.returned, measured.is_reshaped), (2, true));
    }

    #[test]
    fn a_limit_lowers_only_the_lower_end() {
        let sample = SampleSize { sampled: 100, total: 10_000 };
        let all = Measured::of_explanation(find(false, 1).as_doc()).unwrap();
        let some = Measured::of_explanation(find(true, 0).as_doc()).unwrap();
        let (all, some) = (all.scaled(sample, 1, false), some.scaled(sample, 1, false));
        assert_eq!(all.documents.estimate, 1200);
        assert!(all.documents.low > 300, "{all:?}");
        assert_eq!((some.documents.low, some.documents.estimate), (12, 13));
        assert_eq!(some.documents.high, all.documents.high);
        assert_eq!(some.returned, None);
        assert!(all.returned.is_some_and(|returned| returned.contains(1200)));
    }
}
