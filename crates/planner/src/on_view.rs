//! Converts a request on a view to a pipeline: the stages of the view, then stages for the request.
//! The planner sees one pipeline on a collection, so that filters of the request move into the
//! view's stages and below them. (MongoDB manual, "Views".)

use crate::request::{
    AggregateRequest, CountRequest, DistinctRequest, FindRequest, Hint, ReadRequest,
};
use quire_catalog::ResolvedView;
use quire_document::{Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::collation::AskedCollation;
use quire_mql::stage::ViewStages;

/// The field with the number in the only document of a `count` on a view.
pub const COUNT_FIELD: &str = "count";

/// Returns the pipeline that answers a request on a view.
///
/// # Errors
/// 167 OptionNotSupportedOnView for a collation that is not the view's; 168 InvalidPipelineOperator
/// for an option that a pipeline does not have; 166 for a write.
pub fn on_view(request: &ReadRequest<'_>, view: &ResolvedView) -> Result<AggregateRequest> {
    let (_, asked) = request.target();
    if let AskedCollation::Own(own) = asked
        && *own != view.collation
    {
        let text = "Cannot override a view's default collation";
        return Err(Error::new(ErrorCode::OptionNotSupportedOnView, text));
    }
    let mut answer = match request {
        ReadRequest::Find(find) => of_find(find)?,
        ReadRequest::Aggregate(aggregate) => AggregateRequest::clone(aggregate),
        ReadRequest::Count(count) => of_count(count),
        ReadRequest::Distinct(distinct) => of_distinct(distinct),
        ReadRequest::Write(..) => {
            let text = format!("Namespace {} is a view, not a collection", view.view);
            return Err(Error::new(ErrorCode::CommandNotSupportedOnView, text));
        }
    };
    answer.view = Some(ViewStages {
        namespace: view.view.to_string(),
        count: view.pipeline.len(),
        ends: view.ends.clone(),
    });
    answer.namespace.clone_from(&view.namespace);
    answer.collation = AskedCollation::Own(view.collation.clone());
    answer.pipeline.splice(0..0, view.pipeline.iter().cloned());
    Ok(answer)
}

/// Refuses the options of a find that a pipeline does not have: MongoDB runs one for a find on a view
/// and on a time-series collection.
///
/// # Errors
/// 168 InvalidPipelineOperator.
pub fn check_find_options(find: &FindRequest) -> Result<()> {
    let refused = [
        ("min", !find.min.as_doc().is_empty()),
        ("max", !find.max.as_doc().is_empty()),
        ("returnKey", find.return_key),
        ("showRecordId", find.show_record_id),
    ];
    match refused.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => {
            let text = format!("Option {option} not supported in aggregation.");
            Err(Error::new(ErrorCode::InvalidPipelineOperator, text))
        }
    }
}

fn of_find(find: &FindRequest) -> Result<AggregateRequest> {
    check_find_options(find)?;
    if let Some(text) = refused_projection(find.projection.as_doc()) {
        return Err(Error::new(ErrorCode::InvalidPipelineOperator, text));
    }
    // `$natural` refers to the order of the collection below the view.
    let natural = find.sort.get("$natural").and_then(|order| order.to_f64());
    let sort = if natural.is_some() { Doc::empty() } else { find.sort.as_doc() };
    let stages = [
        document("$match", find.filter.as_doc()),
        document("$sort", sort),
        number("$skip", find.skip),
        number("$limit", find.limit),
        document("$project", find.projection.as_doc()),
    ];
    Ok(AggregateRequest {
        pipeline: stages.into_iter().flatten().collect(),
        hint: find.hint.clone().or(natural.map(|order| Hint::Natural(order > 0.0))),
        let_vars: find.let_vars.clone(),
        allow_disk_use: find.allow_disk_use,
        comment: find.comment.clone(),
        ..AggregateRequest::default()
    })
}

/// Returns why this projection of a find cannot be a `$project`; `None` if the stage's parser
/// decides.
fn refused_projection(projection: Doc<'_>) -> Option<&'static str> {
    let of_find = |value: Value<'_>| {
        let first = value.as_document().and_then(|value| value.first());
        first.is_some_and(|first| first.key() == "$elemMatch")
    };
    projection.fields().any(|(_, value)| of_find(value)).then_some(
        "Unsupported in view pipeline: Invalid $project :: caused by :: Cannot use $elemMatch in this context",
    )
}

fn of_count(count: &CountRequest) -> AggregateRequest {
    let stages = [
        document("$match", count.filter.as_doc()),
        number("$skip", count.skip),
        number("$limit", count.limit),
        Some(DocBuf::build(|stage| {
            stage.append("$count", COUNT_FIELD);
        })),
    ];
    AggregateRequest {
        pipeline: stages.into_iter().flatten().collect(),
        hint: count.hint.clone(),
        comment: count.comment.clone(),
        ..AggregateRequest::default()
    }
}

fn of_distinct(distinct: &DistinctRequest) -> AggregateRequest {
    AggregateRequest {
        pipeline: document("$match", distinct.filter.as_doc()).into_iter().collect(),
        hint: distinct.hint.clone(),
        comment: distinct.comment.clone(),
        ..AggregateRequest::default()
    }
}

/// Returns the stage with this operand; `None` for an empty operand.
fn document(stage: &str, operand: Doc<'_>) -> Option<DocBuf> {
    let build = || {
        DocBuf::build(|writer| {
            writer.append(stage, operand);
        })
    };
    (!operand.is_empty()).then(build)
}

/// Returns the stage with this number of documents; `None` for 0.
fn number(stage: &str, count: u64) -> Option<DocBuf> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let build = || {
        DocBuf::build(|writer| {
            writer.append(stage, count);
        })
    };
    (count > 0).then(build)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_catalog::Namespace;
    use quire_document::doc;

    fn view() -> ResolvedView {
        ResolvedView {
            view: Namespace::new("d", "v").unwrap(),
            namespace: "d.t".to_owned(),
            pipeline: vec![doc! { "$unwind": "$a" }],
            ends: vec![1],
            collation: None,
        }
    }

    #[test]
    fn a_find_becomes_stages_behind_those_of_the_view() {
        let find = FindRequest {
            namespace: "d.v".to_owned(),
            filter: doc! { "b": 1 },
            sort: doc! { "c": -1 },
            skip: 2,
            limit: 3,
            projection: doc! { "b": 1 },
            ..FindRequest::default()
        };
        let answer = on_view(&ReadRequest::Find(&find), &view()).unwrap();
        assert_eq!(answer.namespace, "d.t");
        let names: Vec<_> =
            answer.pipeline.iter().filter_map(|stage| stage.as_doc().first()).collect();
        let names: Vec<_> = names.iter().map(|first| first.key()).collect();
        assert_eq!(names, ["$unwind", "$match", "$sort", "$skip", "$limit", "$project"]);
    }

    #[test]
    fn natural_order_is_that_of_the_collection_below() {
        let find = FindRequest { sort: doc! { "$natural": -1 }, ..FindRequest::default() };
        let answer = on_view(&ReadRequest::Find(&find), &view()).unwrap();
        assert_eq!((answer.hint, answer.pipeline.len()), (Some(Hint::Natural(false)), 1));
    }

    #[test]
    fn options_that_a_pipeline_lacks_and_another_collation_are_refused() {
        let code = |find: &FindRequest| {
            on_view(&ReadRequest::Find(find), &view()).unwrap_err().code().number()
        };
        assert_eq!(code(&FindRequest { return_key: true, ..FindRequest::default() }), 168);
        let projection = doc! { "a": { "$elemMatch": { "b": 1 } } };
        assert_eq!(code(&FindRequest { projection, ..FindRequest::default() }), 168);
        let french = AskedCollation::parse(doc! { "locale": "fr" }.as_doc()).unwrap();
        assert_eq!(code(&FindRequest { collation: french, ..FindRequest::default() }), 167);
        let simple = AskedCollation::parse(doc! { "locale": "simple" }.as_doc()).unwrap();
        let find = FindRequest { collation: simple, ..FindRequest::default() };
        assert!(on_view(&ReadRequest::Find(&find), &view()).is_ok());
    }
}
