//! Plans the pipelines inside of stages: those over other collections, and the branches of a
//! `$facet`.

use crate::indexes::choose::Statistics;
use crate::indexes::keys::Keys;
use crate::pipeline::joined_fields::keeping_fields;
use crate::pipeline::resolve::resolve;
use crate::pipeline::rewrite::optimise;
use crate::pipeline::{above, plan_stages, plan_with_keys};
use crate::plan::{Foreign, ForeignKey, IndexScan, Inner, Node, Plan, Source};
use crate::request::Hint;
use quire_document::ValueBuf;
use quire_document::path::Path;
use quire_error::{Error, Result};
use quire_mql::ParseContext;
use quire_mql::collation::AskedCollation;
use quire_mql::expression::Expression;
use quire_mql::filter::{InList, KeyTypes, Node as Condition, PathNode, Test};
use quire_mql::stage::{
    From, GraphLookup, HideMetadata, Inside, Lookup, OneDocument, OtherPipeline, Stage, StageBody,
    check_search_place, first_only,
};
use std::sync::Arc;

/// The most keys of one look-up that are sorted without a check of the interrupt.
const UNCOUNTED_KEYS_MAX: usize = 100;

impl ForeignKey {
    fn path(&self) -> Path {
        match self {
            ForeignKey::Field(path) => path.clone(),
            ForeignKey::Value(_, path) => Path::new(&path.to_string()),
        }
    }
}

/// The facts about the outer pipeline that planning an inner pipeline needs.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub context: &'a ParseContext,
    pub stats: &'a dyn Statistics,
    /// The collation of the whole request.
    pub collation: &'a AskedCollation,
}

/// Plans the pipelines inside of a stage. The stages of `behind` follow that stage.
///
/// # Errors
/// 232 MaxSubPipelineDepthExceeded for more than 20 nested pipelines, those of views included; the
/// interrupt's error, because a few views can expand to very many plans.
pub(crate) fn plan_inner(stage: &Stage, behind: &[Stage], around: Around<'_>) -> Result<Inner> {
    around.stats.check_interrupt()?;
    Ok(match stage {
        Stage::UnionWith(union) => {
            let plan = |other: &OtherPipeline| {
                let ForeignSource { source, mut stages, context } =
                    foreign_source(&other.from, &other.pipeline, Inside::Union, around)?;
                stages.extend(other.pipeline.iter().cloned());
                if source.of_view && passes_metadata(behind, around.context) {
                    stages.push(Stage::HideMetadata(HideMetadata));
                }
                plan_stages(&source, stages, &context, around.stats)
            };
            Inner::Union(union.others.iter().map(plan).collect::<Result<_>>()?)
        }
        Stage::Facet(facet) => {
            let branch = |(_, stages): &(Box<str>, Vec<Stage>)| {
                let stages = optimise(stages.clone(), around.context)?.into();
                above(Node::Feed { name: "$teeConsumer" }, stages, around)
            };
            Inner::Branches(facet.branches.iter().map(branch).collect::<Result<_>>()?)
        }
        Stage::Lookup(lookup) => Inner::Foreign(Arc::new(plan_lookup(lookup, behind, around)?)),
        Stage::GraphLookup(graph) => Inner::Foreign(Arc::new(plan_graph(graph, around)?)),
        Stage::Match(_)
        | Stage::Transform(_)
        | Stage::Unwind(_)
        | Stage::Redact(_)
        | Stage::Limit(_)
        | Stage::Skip(_)
        | Stage::Sample(_)
        | Stage::Sort(_)
        | Stage::Group(_)
        | Stage::BucketAuto(_)
        | Stage::Densify(_)
        | Stage::WindowFields(_)
        | Stage::FusionInput(_)
        | Stage::SetScore(_)
        | Stage::HideMetadata(_)
        | Stage::OneDocument(_)
        | Stage::Served(_)
        | Stage::Out(_)
        | Stage::Merge(_) => Inner::Nothing,
    })
}

/// Returns true if the metadata of a `$unionWith`'s documents may be read: by one of the stages that
/// follow it, or, if its pipeline is one inside of another stage, by those of an outer pipeline.
fn passes_metadata(behind: &[Stage], context: &ParseContext) -> bool {
    let depth = context.place.as_deref().map_or(0, |place| place.depth);
    depth > 0 || HideMetadata::is_needed_before(behind)
}

/// The collection that a stage reads beside its input.
struct ForeignSource {
    source: Source,
    /// The stages of a view.
    stages: Vec<Stage>,
    /// The context of the pipeline over it.
    context: ParseContext,
}

/// Returns the collection and the view stages of a stage's `from`. `own` are the stages over it that
/// the client wrote.
fn foreign_source(
    from: &From,
    own: &[Stage],
    inside: Inside,
    around: Around<'_>,
) -> Result<ForeignSource> {
    let context = around.context.below(inside, &from.namespace)?;
    let resolved = resolve(&from.namespace, around.collation, &context, around.stats)?;
    let source = Source {
        namespace: resolved.namespace,
        hint: None::<Hint>,
        collation: around.collation.clone(),
        fed_by: None,
        of_view: resolved.of_view,
        gives_metadata: false,
    };
    let mut stages = resolved.stages;
    check_search_place(&stages, own)?;
    if source.of_view && HideMetadata::is_needed_before(own) {
        stages.push(Stage::HideMetadata(HideMetadata));
    }
    Ok(ForeignSource { source, stages, context })
}

fn plan_lookup(lookup: &Lookup, behind: &[Stage], around: Around<'_>) -> Result<Foreign> {
    let mut foreign = foreign_source(&lookup.from, &lookup.pipeline, Inside::Lookup, around)?;
    let own = &lookup.pipeline;
    let shared = shared_stages(lookup)?;
    let equality = lookup.equality.as_ref().filter(|_| shared == 0 && !own.is_empty());
    let key = match (&lookup.fields, equality) {
        (Some((_, foreign)), _) => Some(ForeignKey::Field(foreign.clone())),
        (None, Some(equality)) => Some(ForeignKey::Value(
            Arc::new(Expression::path(&equality.foreign.to_string())?),
            equality.foreign.clone(),
        )),
        (None, None) => None,
    };
    foreign.stages.extend(own.iter().take(shared).cloned());
    let mut tail: Vec<Stage> = own.iter().skip(shared).cloned().collect();
    let filter = lookup.filter.clone().map(Stage::Match);
    if tail.is_empty() && !around.context.as_written {
        foreign.stages.extend(filter);
    } else {
        tail.extend(filter);
    }
    // Without stages behind it, any field of the joined documents may be read.
    let may_narrow = !behind.is_empty() && !around.context.as_written;
    if may_narrow && foreign.stages.iter().all(keeps_record) {
        let path = key.as_ref().map(ForeignKey::path);
        let key = path.as_ref().map(Path::as_str);
        foreign.stages.extend(keeping_fields(lookup, key, &tail, behind, &foreign.context)?);
    }
    let variables = lookup.outer_variables + lookup.variables.len();
    let foreign = Foreign::new(foreign, key, tail, around)?;
    Ok(Foreign { variables, ..foreign })
}

/// Returns how many stages of the pipeline come before the first stage whose result differs between
/// documents of the input.
fn shared_stages(lookup: &Lookup) -> Result<usize> {
    let uncorrelated = lookup.uncorrelated();
    match (&lookup.fields, lookup.pipeline.first()) {
        (None, _) => Ok(uncorrelated),
        // The fields are those of the documents in the `$documents` stage.
        (Some(_), Some(Stage::OneDocument(_))) if uncorrelated >= OneDocument::STAGES => {
            Ok(OneDocument::STAGES)
        }
        (Some(_), Some(Stage::OneDocument(_))) => {
            Err(Error::not_built("$lookup by fields of $documents that read its variables"))
        }
        // The equality of fields comes before it.
        (Some(_), Some(Stage::Served(stage))) => Err(first_only(stage.name)),
        // After an equality of fields the pipeline runs for each document, but a filter gives the
        // same result before it.
        (Some(_), _) => {
            let first = lookup.pipeline.iter().take(uncorrelated);
            Ok(first.take_while(|stage| is_plain_filter(stage) || has_search(stage)).count())
        }
    }
}

/// Returns true for a filter that can fail on no document, so that it may read more documents.
fn is_plain_filter(stage: &Stage) -> bool {
    matches!(stage, Stage::Match(filter) if !filter.is_held() && !filter.filter().root().can_fail())
}

/// Returns true for a filter with a search, which only an index of the foreign collection answers.
fn has_search(stage: &Stage) -> bool {
    matches!(stage, Stage::Match(filter) if filter.filter().root().search().is_some())
}

/// Returns true if the stage returns documents of the collection, each at most once and in the same
/// order. A search has an order of its own.
fn keeps_record(stage: &Stage) -> bool {
    let keeps = matches!(stage, Stage::Match(_) | Stage::Transform(_) | Stage::Redact(_));
    keeps && !has_search(stage)
}

fn plan_graph(graph: &GraphLookup, around: Around<'_>) -> Result<Foreign> {
    let mut foreign = foreign_source(&graph.from, &[], Inside::Lookup, around)?;
    foreign.stages.extend(graph.restriction.clone().map(Stage::Match));
    let key = Some(ForeignKey::Field(graph.connect_to.clone()));
    Foreign::new(foreign, key, Vec::new(), around)
}

impl Foreign {
    /// Returns true if the foreign documents are documents of the collection, each at most once: no
    /// stage between the collection and the join creates other documents.
    pub fn keeps_records(&self) -> bool {
        self.stages.iter().all(keeps_record)
    }

    fn new(
        foreign: ForeignSource,
        key: Option<ForeignKey>,
        tail: Vec<Stage>,
        around: Around<'_>,
    ) -> Result<Self> {
        let ForeignSource { mut source, stages, context } = foreign;
        source.gives_metadata = tail.iter().any(|stage| !stage.needs().reads.metadata.is_empty());
        let whole = plan_whole(&source, &stages, key.as_ref(), &context, around.stats)?;
        let tail = match tail.is_empty() {
            true => None,
            false => {
                let feed = Node::Feed { name: "$lookup" };
                let inner = Around { context: &context, ..around };
                Some(above(feed, optimise(tail, &context)?.into(), inner)?)
            }
        };
        let varies = stages.iter().any(|stage| {
            let reads = stage.needs().reads;
            !reads.variables.is_empty() || reads.volatile
        });
        Ok(Foreign { whole, key, tail, variables: 0, varies, stages, source, context })
    }

    /// Plans the foreign side again, after the catalog has changed. The tail stays: the joins inside of it
    /// are planned again on their own.
    ///
    /// # Errors
    /// The errors of planning the pipeline.
    pub fn renewed(&self, stats: &dyn Statistics) -> Result<Foreign> {
        let context = self.context.restarted();
        let whole = plan_whole(&self.source, &self.stages, self.key.as_ref(), &context, stats)?;
        Ok(Foreign { whole, ..self.clone() })
    }

    /// Returns the nodes that search for the documents with one of these keys; `None` if the whole plan
    /// must find them.
    ///
    /// # Errors
    /// The interrupt's error.
    pub fn with_keys(&self, keys: Vec<ValueBuf>) -> Result<Option<Node>> {
        if self.whole.by_keys.is_none() {
            return Ok(None);
        }
        let collator = self.context.collator.clone();
        let list = match keys.len() {
            0..=UNCOUNTED_KEYS_MAX => InList::new(keys, Vec::new(), collator),
            // The limits on the constants of a request hold for each look-up.
            _ => InList::checked(keys, Vec::new(), collator, &self.context.restarted())?,
        };
        Ok(Keys::new(list, self.whole.collation.clone()).bind(&self.whole))
    }

    /// Returns the collection that is read, `database.collection`.
    pub fn namespace(&self) -> &str {
        &self.source.namespace
    }

    /// Returns the types of the keys for which an index has all documents; `None` if no index finds
    /// documents by keys.
    pub fn served_types(&self) -> Option<KeyTypes> {
        Some(self.keyed_scan()?.keyed?.types)
    }

    /// Returns the scan of the index that finds documents by a few keys; `None` if there is none.
    pub fn keyed_scan(&self) -> Option<&IndexScan> {
        self.whole.by_keys.as_deref()?.below_stages().keyed_scan()
    }
}

/// Plans the stages over a foreign collection, with the condition on the keys as a parameter.
fn plan_whole(
    source: &Source,
    stages: &[Stage],
    key: Option<&ForeignKey>,
    context: &ParseContext,
    stats: &dyn Statistics,
) -> Result<Plan> {
    let Some(key) = key else { return plan_stages(source, stages.to_vec(), context, stats) };
    let list = InList::placeholder(KeyTypes::All, context.collator.clone());
    let keys = Condition::Path(PathNode::new(key.path(), Test::In(list)));
    plan_with_keys(source, stages, keys, context, stats)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::AggregateRequest;
    use quire_catalog::{Collection, Namespace, ResolvedView};
    use quire_document::{DocBuf, Value, doc};
    use quire_error::ErrorCode;
    use quire_mql::stage::{Place, parse_pipeline};
    use std::cell::Cell;

    /// Views `db.v0`, `db.v1` and so on; each joins its collection with the next view.
    struct Nested {
        joins: usize,
        depth: usize,
        looked_up: Cell<usize>,
        looked_up_max: usize,
    }

    impl Statistics for Nested {
        fn collection(&self, _: &str) -> Result<Option<Arc<Collection>>> {
            Ok(None)
        }

        fn view(&self, namespace: &str) -> Result<Option<ResolvedView>> {
            let level: usize = namespace.trim_start_matches("db.v").parse().unwrap();
            self.looked_up.set(self.looked_up.get() + 1);
            let next = format!("v{}", level + 1);
            let join = doc! { "$lookup": {
                "from": next.as_str(), "localField": "a", "foreignField": "b", "as": "c"
            } };
            Ok((level < self.depth).then(|| ResolvedView {
                view: Namespace::parse(namespace).unwrap(),
                namespace: "db.c".into(),
                pipeline: vec![join; self.joins],
                ends: vec![self.joins],
                collation: None,
            }))
        }

        fn check_interrupt(&self) -> Result<()> {
            match self.looked_up.get() > self.looked_up_max {
                true => Err(Error::new(ErrorCode::Interrupted, "killed")),
                false => Ok(()),
            }
        }

        fn documents(&self, _: &Collection) -> u64 {
            0
        }

        fn keys(&self, _: &IndexScan, _: u64) -> u64 {
            0
        }

        fn draws(&self, _: &Collection, _: u64) -> bool {
            false
        }
    }

    /// Plans a join with `db.v0`. Returns how many times a view was looked up.
    fn planned(joins: usize, depth: usize) -> Result<usize> {
        let stats = Nested { joins, depth, looked_up: Cell::new(0), looked_up_max: 10_000 };
        let lookup = doc! { "$lookup": {
            "from": "v0", "localField": "a", "foreignField": "b", "as": "c"
        } };
        let pipeline: Vec<DocBuf> = vec![lookup];
        let namespace = "db.c".to_owned();
        let request = AggregateRequest { namespace, pipeline, ..AggregateRequest::default() };
        crate::plan(&(&request).into(), &ParseContext::default(), &stats)?;
        Ok(stats.looked_up.get())
    }

    /// A view that joins another view, whose pipeline has many parts.
    struct LargeView;

    impl Statistics for LargeView {
        fn collection(&self, _: &str) -> Result<Option<Arc<Collection>>> {
            Ok(None)
        }

        fn view(&self, namespace: &str) -> Result<Option<ResolvedView>> {
            let fields = |writer: &mut quire_document::DocWriter<'_>| {
                let mut set = writer.document("$set");
                for number in 0..5000 {
                    set.append(&format!("f{number}"), "$a");
                }
            };
            let stage = match namespace {
                "db.outer" => doc! { "$lookup": {
                    "from": "large", "localField": "a", "foreignField": "b", "as": "c"
                } },
                _ => DocBuf::build(fields),
            };
            Ok(Some(ResolvedView {
                view: Namespace::parse(namespace).unwrap(),
                namespace: "db.c".into(),
                pipeline: vec![stage],
                ends: vec![1],
                collation: None,
            }))
        }

        fn documents(&self, _: &Collection) -> u64 {
            0
        }

        fn keys(&self, _: &IndexScan, _: u64) -> u64 {
            0
        }

        fn draws(&self, _: &Collection, _: u64) -> bool {
            false
        }
    }

    /// All searches of a join together had the limit of one request.
    #[test]
    fn each_search_of_a_join_has_the_limits_of_a_request() {
        let lookup = doc! { "$lookup": {
            "from": "outer", "localField": "a", "foreignField": "b", "as": "c"
        } };
        let pipeline = [Value::from(lookup.as_doc())];
        let context = ParseContext::default().at(Place::of("db.c"));
        let stages = parse_pipeline(pipeline.into_iter(), &context).unwrap();
        let collation = AskedCollation::default();
        let around = Around { context: &context, stats: &LargeView, collation: &collation };
        let Ok(Inner::Foreign(foreign)) = plan_inner(&stages[0], &[], around) else {
            panic!("the join is not planned")
        };
        for key in 0..30 {
            foreign.with_keys(vec![ValueBuf::new(key)]).unwrap();
            foreign.renewed(&LargeView).unwrap();
        }
    }

    #[test]
    fn each_view_of_a_chain_of_joins_is_planned_once() {
        assert_eq!(planned(1, 15).unwrap(), 16);
    }

    #[test]
    fn views_that_join_views_nest_as_deep_as_pipelines() {
        assert_eq!(planned(1, 19).unwrap(), 20);
        let error = planned(1, 20).unwrap_err();
        assert_eq!(error.code(), ErrorCode::MaxSubPipelineDepthExceeded);
    }

    #[test]
    fn planning_very_many_joins_can_be_interrupted() {
        assert_eq!(planned(2, 19).unwrap_err().code(), ErrorCode::Interrupted);
    }
}
