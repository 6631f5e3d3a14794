//! Rewrites `$group`: moves a filter on the group key to before the stage, where an index can serve
//! it and fewer documents are grouped.

use crate::pipeline::pushing::{of_equals, push_parts};
use quire_mql::expression::{Expression, ExpressionNode};
use quire_mql::stage::{Group, GroupKey, Match, Stage};
use std::sync::Arc;

/// Moves the parts of a filter that have one result for each group and depend only on its key to
/// before the stage.
pub(crate) fn push_match(group: Arc<Group>, filter: Arc<Match>) -> (Vec<Stage>, bool) {
    let copied = Arc::clone(&group);
    push_parts(Stage::Group(group), filter, |part| {
        of_equals(part, &|path| field_before(copied.key(), path).map(str::to_owned))
    })
}

/// Returns the field of the grouped documents whose value a path after the `$group` has.
fn field_before<'g>(key: &'g GroupKey, path: &str) -> Option<&'g str> {
    match (key, path.strip_prefix("_id")?) {
        (GroupKey::Expression(expression), "") => field(expression),
        (GroupKey::Fields(fields), below) => {
            let name = below.strip_prefix('.')?;
            fields.iter().find(|(own, _)| **own == *name).and_then(|(_, own)| field(own))
        }
        (GroupKey::Expression(_), _) => None,
    }
}

/// Returns the field that an expression names. A path of several components does not count, because
/// a filter descends into arrays on its way differently from an expression.
fn field(expression: &Expression) -> Option<&str> {
    match expression.node() {
        ExpressionNode::Path(path) if path.components().len() == 1 => Some(path.first()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::pipeline::rewrite::optimise;
    use quire_document::{DocBuf, Value, doc};
    use quire_mql::ParseContext;
    use quire_mql::stage::{Stage, StageBody, parse_pipeline};

    /// Returns the stages in the order in which they run, as explain prints them.
    fn order(key: &DocBuf, filter: &DocBuf) -> Vec<String> {
        let mut group = key.clone();
        group.append("n", &doc! { "$sum": 1 });
        let pipeline = [doc! { "$group": &group }, doc! { "$match": filter }];
        let stages = pipeline.iter().map(|stage| Value::from(stage.as_doc()));
        let context = ParseContext::default();
        let stages = parse_pipeline(stages, &context).unwrap();
        let printed = |stage: &Stage| format!("{:?}", DocBuf::build(|writer| stage.print(writer)));
        optimise(stages, &context).unwrap().iter().map(printed).collect()
    }

    #[test]
    fn filters_on_the_key_move_first_under_the_name_of_its_field() {
        let (plain, fields) =
            (doc! { "_id": "$a" }, doc! { "_id": { "x": "$a", "y": "$b", "z": "$c.d" } });
        for (key, filter, before) in [
            (&plain, doc! { "_id": 5 }, doc! { "a": { "$eq": 5 } }),
            (&plain, doc! { "_id": { "$ne": 5 } }, doc! { "a": { "$not": { "$eq": 5 } } }),
            (&plain, doc! { "_id": { "$in": [1, "x"] } }, doc! { "a": { "$in": [1, "x"] } }),
            (&fields, doc! { "_id.y": { "$gt": 1 } }, doc! { "b": { "$gt": 1 } }),
            (
                &fields,
                doc! { "$or": [{ "_id.x": 1 }, { "_id.y": 2 }] },
                doc! { "$or": [{ "a": { "$eq": 1 } }, { "b": { "$eq": 2 } }] },
            ),
        ] {
            let stages = order(key, &filter);
            assert_eq!(stages.len(), 2, "{stages:?}");
            assert_eq!(stages[0], format!("{:?}", doc! { "$match": &before }));
        }
        let both = order(&plain, &doc! { "_id": 5, "n": { "$gt": 1 } });
        assert_eq!(both.len(), 3, "{both:?}");
    }

    #[test]
    fn other_filters_stay_behind() {
        let (plain, fields) =
            (doc! { "_id": "$a" }, doc! { "_id": { "x": "$a", "y": "$b", "z": "$c.d" } });
        for (key, filter) in [
            (&plain, doc! { "n": 5 }),
            (&plain, doc! { "_id": Value::Null }),
            (&plain, doc! { "_id": { "$in": [1, Value::Null] } }),
            (&plain, doc! { "_id": { "$exists": true } }),
            (&plain, doc! { "_id": { "$type": "int" } }),
            (&plain, doc! { "_id.b": 5 }),
            (&plain, doc! { "$or": [{ "_id": 1 }, { "n": 1 }] }),
            (&fields, doc! { "_id": { "x": 1, "y": 2 } }),
            (&fields, doc! { "_id.x.y": 1 }),
            (&fields, doc! { "_id.z": 1 }),
            (&fields, doc! { "_identity": 1 }),
            (&doc! { "_id": "$a.b" }, doc! { "_id": 5 }),
            (&doc! { "_id": { "$add": ["$a", 1] } }, doc! { "_id": 5 }),
            (&doc! { "_id": Value::Null }, doc! { "_id": 5 }),
        ] {
            let stages = order(key, &filter);
            assert!(stages[0].contains("$group"), "{filter:?}: {stages:?}");
        }
    }
}
