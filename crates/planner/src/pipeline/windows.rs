//! Rewrites `$setWindowFields`: a filter that keeps or drops whole partitions moves to before the
//! stage and its sort, where an index can serve it.

use crate::pipeline::pushing::{is_untouched, of_equals, push_parts};
use quire_mql::stage::{Match, Stage, StageBody, WindowFields};
use std::sync::Arc;

/// Moves the parts of a filter that have one result for each partition to before the stage.
pub(crate) fn push_match(fields: Arc<WindowFields>, filter: Arc<Match>) -> (Vec<Stage>, bool) {
    let partition = fields.partition_path();
    let partition = partition.filter(|path| is_untouched(path, &fields.modified()));
    push_parts(Stage::WindowFields(fields), filter, |part| {
        let path = partition.as_deref()?;
        of_equals(part, &|tested| (tested == path).then(|| path.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use crate::pipeline::rewrite::optimise;
    use quire_document::{DocBuf, Value, doc};
    use quire_mql::ParseContext;
    use quire_mql::stage::{StageBody, parse_pipeline};

    /// Returns the names of the stages in the order in which they run.
    fn order(window: DocBuf, filter: DocBuf) -> Vec<&'static str> {
        let pipeline = [doc! { "$setWindowFields": &window }, doc! { "$match": &filter }];
        let stages = pipeline.iter().map(|stage| Value::from(stage.as_doc()));
        let context = ParseContext::default();
        let stages = parse_pipeline(stages, &context).unwrap();
        optimise(stages, &context).unwrap().iter().map(StageBody::name).collect()
    }

    fn window(output: &str) -> DocBuf {
        doc! { "partitionBy": "$a.p", "sortBy": { "n": 1 }, "output": { output: { "$sum": "$n" } } }
    }

    const WINDOW: &str = "$_internalSetWindowFields";

    #[test]
    fn filters_of_whole_partitions_move_first() {
        for filter in [
            doc! { "a.p": 5 },
            doc! { "a.p": { "$in": [1, "x"] } },
            doc! { "a.p": { "$ne": 5 } },
            doc! { "$or": [{ "a.p": { "$lt": 1 } }, { "a.p": "x" }] },
        ] {
            assert_eq!(order(window("s"), filter), ["$match", "$sort", WINDOW]);
        }
        let both = doc! { "a.p": 5, "s": { "$gt": 1 } };
        assert_eq!(order(window("s"), both), ["$match", "$sort", WINDOW, "$match"]);
    }

    #[test]
    fn filters_within_a_partition_stay_behind() {
        for filter in [
            doc! { "s": 5 },
            doc! { "n": 5 },
            doc! { "a": 5 },
            doc! { "a.p.q": 5 },
            doc! { "a.p": Value::Null },
            doc! { "a.p": { "$in": [1, Value::Null] } },
            doc! { "a.p": { "$exists": true } },
            doc! { "a.p": { "$type": "int" } },
            doc! { "$or": [{ "a.p": 1 }, { "n": 1 }] },
        ] {
            assert_eq!(
                order(window("s"), filter.clone()),
                ["$sort", WINDOW, "$match"],
                "{filter:?}"
            );
        }
        assert_eq!(order(window("a.p"), doc! { "a.p": 5 }), ["$sort", WINDOW, "$match"]);
    }
}
