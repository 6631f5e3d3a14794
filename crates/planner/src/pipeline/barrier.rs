//! Protects what a view hides. A condition that can fail shows the value on which it failed, so it
//! must not read a document that the view leaves out. Such conditions stay after the stages before
//! them, those of the view and those of the reader; all other conditions move as they do over a
//! collection. (The same idea: leak-proof functions, "Rules and Privileges" in PostgreSQL's
//! manual.)

use crate::pipeline::pushing::conjunction;
use quire_mql::filter::Node as Condition;
use quire_mql::stage::{Match, Stage};
use std::sync::Arc;

/// Separates the conditions that can fail from the filters that follow a stage that hides
/// documents. `stages` are those of a view and of the pipeline that reads it.
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

/// Splits a filter with such conditions into a part that may move and a part that may not.
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

/// Returns true if the stage can drop documents of its input.
fn hides_documents(stage: &Stage) -> bool {
    !matches!(
        stage,
        Stage::Transform(_)
            | Stage::Sort(_)
            | Stage::Lookup(_)
            | Stage::GraphLookup(_)
            | Stage::WindowFields(_)
            | Stage::HideMetadata(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::rewrite::optimise;
    use quire_document::{DocBuf, Value, doc};
    use quire_mql::ParseContext;
    use quire_mql::stage::{StageBody, parse_pipeline};

    /// Returns the stages in the order in which they run, as explain prints them.
    fn order(pipeline: &[DocBuf]) -> Vec<String> {
        let context = ParseContext::default();
        let stages = pipeline.iter().map(|stage| Value::from(stage.as_doc()));
        let stages = parse_pipeline(stages, &context).unwrap();
        let printed = |stage: &Stage| format!("{:?}", DocBuf::build(|writer| stage.print(writer)));
        optimise(hold_back(stages), &context).unwrap().iter().map(printed).collect()
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
    fn a_condition_that_cannot_fail_moves_past_a_held_one() {
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
