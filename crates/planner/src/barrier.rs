//! What a view hides from its readers stays hidden: a condition that can fail shows the value that it
//! failed on, so it must not see a document that the view leaves out. Such conditions stay behind
//! the stages before them, those of the view and those of the reader; all others move as they do over a collection. (The
//! same idea: "Rules and Privileges" in PostgreSQL's manual, leak-proof functions.)

use crate::pushing::conjunction;
use quire_mql::filter::Node as Condition;
use quire_mql::stage::{Match, Stage};
use std::sync::Arc;

/// Takes the conditions that can fail out of the filters that stand behind a stage that hides
/// documents. `stages` are those of a view and of what reads it.
pub(crate) fn hold_back(stages: Vec<Stage>) -> Vec<Stage> {
    let (mut out, mut is_behind) = (Vec::with_capacity(stages.len()), false);
    for stage in stages {
        let hides = hides_documents(&stage);
        match stage {
            Stage::Match(filter) if is_behind => out.extend(divided(filter)),
            other => out.push(other),
        }
        is_behind |= hides;
    }
    out
}

/// The filter as one that may move and one that may not, as far as it has such conditions.
fn divided(filter: Arc<Match>) -> Vec<Stage> {
    if !filter.filter().root().can_fail() {
        return vec![Stage::Match(filter)];
    }
    let conditions = filter.filter().root().conjuncts().iter().cloned();
    let (held, free): (Vec<_>, Vec<_>) = conditions.partition(Condition::can_fail);
    let free = (!free.is_empty()).then(|| conjunction(free));
    let held = Stage::Match(Arc::new(Match::all_of(held).held()));
    free.into_iter().chain([held]).collect()
}

/// True if a document that comes in may be missing from what comes out.
fn hides_documents(stage: &Stage) -> bool {
    !matches!(
        stage,
        Stage::Transform(_)
            | Stage::Sort(_)
            | Stage::Lookup(_)
            | Stage::GraphLookup(_)
            | Stage::WindowFields(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rewrite::optimise;
    use quire_document::{DocBuf, Value, doc};
    use quire_mql::ParseContext;
    use quire_mql::stage::{StageBody, parse_pipeline};

    /// Returns the stages in the order in which they run, as explain prints them.
    fn order(pipeline: &[DocBuf]) -> Vec<String> {
        let context = ParseContext::default();
        let stages = pipeline.iter().map(|stage| Value::from(stage.as_doc()));
        let stages = parse_pipeline(stages, &context).unwrap();
        let printed = |stage: &Stage| format!("{:?}", DocBuf::build(|writer| stage.print(writer)));
        optimise(hold_back(stages), &context).iter().map(printed).collect()
    }

    fn visible() -> DocBuf {
        doc! { "$match": { "visible": true } }
    }

    fn failing() -> DocBuf {
        doc! { "$expr": { "$gt": [{ "$toInt": "$secret" }, 1] } }
    }

    #[test]
    fn conditions_that_can_fail_stay_behind_the_view() {
        let either = doc! { "$or": [&failing(), { "b": 1 }], "a": 5 };
        let stages = order(&[visible(), doc! { "$match": &either }]);
        assert_eq!(stages.len(), 2, "{stages:?}");
        assert!(stages[0].contains("visible") && stages[0].contains('5'), "{stages:?}");
        assert!(stages[1].contains("$toInt"), "{stages:?}");
        let union = doc! { "$unionWith": "other" };
        for between in [doc! { "$unwind": "$a" }, doc! { "$limit": 3 }, union] {
            let stages = order(&[visible(), between, doc! { "$match": &failing() }]);
            assert!(stages.last().unwrap().contains("$toInt"), "{stages:?}");
            assert!(!stages[0].contains("$toInt"), "{stages:?}");
        }
    }

    #[test]
    fn others_move_past_what_is_held() {
        let simple = doc! { "$expr": { "$and": [{ "$eq": ["$a", 1] }, { "$not": "$b" }] } };
        let stages = order(&[visible(), doc! { "$match": &simple }]);
        assert_eq!(stages.len(), 1, "{stages:?}");
        let stages =
            order(&[visible(), doc! { "$match": &failing() }, doc! { "$match": { "c": 7 } }]);
        assert_eq!(stages.len(), 2, "{stages:?}");
        assert!(stages[0].contains('7') && stages[1].contains("$toInt"), "{stages:?}");
    }

    #[test]
    fn nothing_is_held_behind_stages_that_hide_no_document() {
        let shown = doc! { "$project": { "other": 0 } };
        let stages = order(&[shown, doc! { "$sort": { "a": 1 } }, doc! { "$match": &failing() }]);
        assert!(stages[0].contains("$toInt") || stages[1].contains("$toInt"), "{stages:?}");
    }
}
