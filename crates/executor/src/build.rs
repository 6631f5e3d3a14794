//! Builds the operators for the nodes of a plan.

use std::sync::Arc;

use quire_document::DocBuf;
use quire_error::{Error, Result};
use quire_mql::filter::{Filter, Node as Condition};
use quire_mql::sort::SortPattern;
use quire_mql::stage::{Stage, StageBody};
use quire_planner::explain::NodeStats;
use quire_planner::{BranchHead, Inner, Kept, Node, PointOrder, Reshape, RowNeeds};

use crate::columns::Grouping;
use crate::env::Env;
use crate::grouping::group::GroupOp;
use crate::joins::facet::{FacetOp, Heads};
use crate::joins::facet_heads::{Collected, Head};
use crate::joins::graph_lookup::GraphLookupOp;
use crate::joins::lookup::LookupOp;
use crate::joins::union_with::UnionWith;
use crate::operators::bucket_auto::BucketAutoOp;
use crate::operators::chain::{Chain, ChainOp};
use crate::operators::densify::DensifyOp;
use crate::operators::feed::{Feed, FeedOp, ServedOp};
use crate::operators::fetch::Fetch;
use crate::operators::intersection::Intersection;
use crate::operators::metadata::{HiddenMetadata, SortKeys};
use crate::operators::points::{Merged, OneByOne, SortedBy};
use crate::operators::projection::{Project, Shaper};
use crate::operators::sample::Sample;
use crate::operators::scores::{FusionInputs, Scores};
use crate::operators::simple::{ClusteredScan, Count, Limit, ReturnKey, Skip, Subplan};
use crate::operators::sort::{Presorted, Sort};
use crate::operators::union::{Merge, Union};
use crate::operators::windows::{Input, Windows};
use crate::operators::would_write::WouldWrite;
use crate::operators::{BoxedOperator, Eof};
use crate::scans::bucket_scan::Buckets;
use crate::scans::collection_scan::CollectionScan;
use crate::scans::distinct_scan::DistinctScan;
use crate::scans::fast_count::FastCount;
use crate::scans::id_lookup::{IdLookup, IdLookups};
use crate::scans::index_scan::IndexScanOp;
use crate::scans::random_picks::RandomPicks;
use crate::scans::search::{Check, Gather};
use crate::scans::tail_scan::TailScan;
use crate::table::Table;

/// Builds the operators of a plan. `feed` provides the documents of a leaf without a collection.
pub(crate) fn build(root: &Node, feed: Option<Box<dyn Feed>>) -> Result<BoxedOperator> {
    let leaf = feed.map(|feed| Box::new(FeedOp::new(feed)) as BoxedOperator);
    Builder { leaf, head: None }.node(root, RowNeeds::default())
}

/// Builds the operators of stages above `leaf`, which replaces their `Node::Feed`.
pub(crate) fn build_over(root: &Node, leaf: BoxedOperator) -> Result<BoxedOperator> {
    Builder { leaf: Some(leaf), head: None }.node(root, RowNeeds::default())
}

/// Builds the operators of a branch of a `$facet` whose head has read the whole input. `leaf` has the counters
/// of the input.
pub(crate) fn build_above(
    branch: &Node,
    head: (Head, Collected),
    leaf: NodeStats,
    env: &Env,
) -> Result<BoxedOperator> {
    let head = TakenHead { head, leaf, env };
    Builder { leaf: None, head: Some(head) }.node(branch, RowNeeds::default())
}

/// Makes the head of a branch of a `$facet`. `None` if the branch needs the documents themselves.
pub(crate) fn head_of(branch: &Node) -> Result<Option<Head>> {
    let Some(BranchHead { before, stage, kept }) = branch.branch_head() else { return Ok(None) };
    let chain = chain_of(Chain::default(), before)?;
    Ok(match (kept, stage) {
        (Kept::First(count), _) => Some(Head::first(chain, count)),
        (Kept::Groups, Stage::Group(group)) => {
            Some(Head::Group(Grouping::new(chain, Arc::clone(group))))
        }
        (Kept::Best, Stage::Sort(sort)) => Head::best(chain, &sort.pattern, sort.limit),
        _ => return Err(Error::internal(format!("{} heads no branch", stage.name()))),
    })
}

/// Returns the chain with more stages at its end.
fn chain_of<'s>(mut chain: Chain, stages: impl IntoIterator<Item = &'s Stage>) -> Result<Chain> {
    for stage in stages {
        if let Some(stage) = chain.push(stage.clone()) {
            return Err(Error::internal(format!("{} does not stream", stage.name())));
        }
    }
    Ok(chain)
}

struct Builder<'e> {
    /// The operator that replaces the leaf without a collection.
    leaf: Option<BoxedOperator>,
    /// Replaces that leaf and the stages above it that are the head of a branch.
    head: Option<TakenHead<'e>>,
}

/// The head of a branch that has taken all of its input.
struct TakenHead<'e> {
    head: (Head, Collected),
    /// The counters of the input.
    leaf: NodeStats,
    env: &'e Env,
}

impl Builder<'_> {
    /// Returns the operator of the head if it stands at a stage with this input: between the stage and the leaf
    /// there are only stages that stream.
    fn head_above(&mut self, input: &Node, needs: RowNeeds) -> Result<Option<BoxedOperator>> {
        let (leaf, _) = input.chain();
        let head = self.head.take_if(|_| matches!(leaf, Node::Feed { .. }));
        let finish = |TakenHead { head: (head, collected), leaf, env }: TakenHead<'_>| {
            collected.finish(head, leaf, needs.sort_keys, env)
        };
        head.map(finish).transpose()
    }

    fn node(&mut self, node: &Node, needs: RowNeeds) -> Result<BoxedOperator> {
        let stats = NodeStats::default();
        let below = || needs.below(node);
        Ok(match node {
            Node::Stage { stage, input, .. } => return self.stage(stage, input, node, needs),
            Node::Projection { spec, input, .. } => {
                return self.projection(spec, node, input, needs);
            }
            Node::Feed { name } => match self.leaf.take() {
                Some(leaf) => leaf,
                None => return Err(Error::internal(format!("nothing feeds {name}"))),
            },
            Node::OneDocument => Box::new(FeedOp::new(Box::new(vec![DocBuf::new()].into_iter()))),
            Node::Served(stage) => Box::new(ServedOp::new(stage)),
            Node::Eof => Box::new(Eof),
            Node::CollScan { .. }
            | Node::ClusteredScan { .. }
            | Node::Buckets(_)
            | Node::RandomPicks { .. }
            | Node::IdHack { .. }
            | Node::IdLookups(_)
            | Node::IndexScan(_)
            | Node::CountScan(_)
            | Node::DistinctScan { .. }
            | Node::RecordStoreFastCount { .. } => return self.leaf(node, needs),
            Node::Fetch { filter: rest, input } => {
                let Some(collection) = input.collection() else { return Ok(Box::new(Eof)) };
                let input = self.node(input, below())?;
                Box::new(Fetch::new(collection, input, compile(rest.as_ref())))
            }
            Node::Gather { search, inputs } => {
                Box::new(Gather::new(search, self.nodes(inputs, below())?))
            }
            Node::Check { search, input } => {
                Box::new(Check::new(search, self.node(input, below())?))
            }
            Node::Or { inputs } => Box::new(Union::new(self.nodes(inputs, below())?)),
            Node::Points { order, pattern, inputs } => {
                self.points(*order, pattern.as_ref(), inputs, below())?
            }
            Node::AndSorted { inputs } => Box::new(Intersection::new(self.nodes(inputs, below())?)),
            Node::SortMerge { pattern, inputs } => {
                Box::new(Merge::new(self.nodes(inputs, below())?, Arc::clone(pattern)))
            }
            Node::Sort { presorted: true, pattern, limit, input, .. } => {
                let input = self.node(input, below())?;
                Box::new(Presorted::new(input, Arc::clone(pattern), *limit, needs.sort_keys))
            }
            Node::Sort { .. } => Box::new(self.sort(node, needs)?),
            Node::Skip { count, input } => Box::new(Skip::new(self.node(input, below())?, *count)),
            Node::Limit { count, input } => {
                Box::new(Limit::new(self.node(input, below())?, *count))
            }
            Node::SortKeys { pattern, input } => {
                Box::new(SortKeys::new(self.node(input, below())?, Arc::clone(pattern)))
            }
            Node::ReturnKey { sort_keys, input } => {
                let input = self.node(input, below())?;
                Box::new(ReturnKey { input, sort_keys: sort_keys.clone(), stats })
            }
            Node::Subplan { input } => {
                Box::new(Subplan { input: self.node(input, below())?, stats })
            }
            Node::Count { skip, limit, input } => {
                let input = self.node(input, below())?;
                Box::new(Count { input, skip: *skip, limit: *limit, stats })
            }
            Node::Write { kind, input } => {
                Box::new(WouldWrite { input: self.node(input, below())?, kind: *kind, stats })
            }
        })
    }

    /// Builds the union of records and buckets of a time-series collection.
    fn points(
        &mut self,
        order: PointOrder,
        pattern: Option<&Arc<SortPattern>>,
        inputs: &[Node],
        needs: RowNeeds,
    ) -> Result<BoxedOperator> {
        let collection = inputs.iter().find_map(Node::collection);
        let series = collection.and_then(|collection| collection.options.time_series());
        let built = self.nodes(inputs, needs)?;
        let by = match (order, series, pattern) {
            (PointOrder::Time { backward }, Some(series), _) => {
                Some(SortedBy::Time { field: series.time_field.clone(), backward })
            }
            (PointOrder::Sources { .. }, _, Some(pattern)) => {
                Some(SortedBy::Pattern(Arc::clone(pattern)))
            }
            _ => None,
        };
        Ok(match by {
            Some(by) => Box::new(Merged::new(built, by)),
            None => Box::new(OneByOne::new(built)),
        })
    }

    fn nodes(&mut self, nodes: &[Node], needs: RowNeeds) -> Result<Vec<BoxedOperator>> {
        nodes.iter().map(|node| self.node(node, needs)).collect()
    }

    /// Builds a sort of the query or of the pipeline.
    fn sort(&mut self, node: &Node, needs: RowNeeds) -> Result<Sort> {
        let (pattern, limit, input) = match node {
            Node::Sort { pattern, limit, input, .. } => (pattern, *limit, input),
            Node::Stage { stage: Stage::Sort(sort), input, .. } => {
                (&sort.pattern, sort.limit, input)
            }
            _ => return Err(Error::internal(format!("{} does not sort", node.name()))),
        };
        let input = self.node(input, needs.below(node))?;
        Ok(Sort::new(input, Arc::clone(pattern), limit, needs.sort_keys))
    }

    /// Builds a node that reads a collection.
    fn leaf(&mut self, node: &Node, needs: RowNeeds) -> Result<BoxedOperator> {
        Ok(match node {
            Node::RandomPicks { collection, size, scan } => {
                Box::new(RandomPicks::new(collection, self.node(scan, needs)?, *size))
            }
            Node::IdHack { collection, id } => {
                let clustered = collection.clustered_index().is_some();
                let table = Table::new(collection);
                Box::new(IdLookup { table, id: id.clone(), clustered, found: None, bytes: 0 })
            }
            Node::IdLookups(found) => Box::new(IdLookups::new(found)?),
            Node::IndexScan(scan) => {
                let filter = compile(scan.filter.as_ref());
                Box::new(IndexScanOp::new(scan.clone(), filter, needs.keys, false))
            }
            Node::ClusteredScan { scan, filter } => {
                let keys = Box::new(IndexScanOp::new(scan.clone(), None, needs.keys, false));
                let documents = Fetch::new(&scan.collection, keys, compile(filter.as_ref()));
                Box::new(ClusteredScan(Box::new(documents)))
            }
            Node::Buckets(scan) => {
                let compile =
                    |condition: &Condition| Filter::from_node(condition.without_implied());
                Box::new(Buckets::new(scan, compile))
            }
            Node::CountScan(scan) => Box::new(IndexScanOp::new(scan.clone(), None, false, true)),
            Node::DistinctScan { scan, field, missing_too, each } => {
                let filter = compile(scan.filter.as_ref());
                let scan = IndexScanOp::distinct(scan.clone(), filter, *field);
                Box::new(DistinctScan::new(scan, *field, *missing_too, *each))
            }
            Node::RecordStoreFastCount { collection, skip, limit } => {
                Box::new(FastCount::new(collection, *skip, *limit))
            }
            Node::CollScan { collection, filter, tails: true, .. } => {
                Box::new(TailScan::new(collection, compile(filter.as_ref())))
            }
            other => match collection_scan(other) {
                Some(scan) => Box::new(scan),
                None => return Err(Error::internal(format!("{} is no leaf", other.name()))),
            },
        })
    }

    /// Builds a projection; `node` is the projection with its input.
    fn projection(
        &mut self,
        spec: &Reshape,
        node: &Node,
        input: &Node,
        needs: RowNeeds,
    ) -> Result<BoxedOperator> {
        let Some(projection) = &spec.projection else {
            return self.node(input, needs.below(node));
        };
        if let (Some(scan), Some(shaper)) = (collection_scan(input), Shaper::new(spec)) {
            return Ok(Box::new(scan.shaping(shaper)));
        }
        let input = self.node(input, needs.below(node))?;
        Ok(Box::new(Project::new(input, Arc::clone(projection), spec)))
    }

    /// Builds a stage of a pipeline; `node` is the stage with its input.
    fn stage(
        &mut self,
        stage: &Stage,
        input: &Node,
        node: &Node,
        needs: RowNeeds,
    ) -> Result<BoxedOperator> {
        let head = match stage {
            Stage::Group(_) | Stage::Sort(_) | Stage::Limit(_) | Stage::Skip(_) => {
                self.head_above(input, needs)?
            }
            _ => None,
        };
        Ok(match (stage, head) {
            (Stage::Group(_) | Stage::Sort(_), Some(head)) => head,
            (Stage::Limit(limit), Some(input)) => Box::new(Limit::new(input, limit.0)),
            (Stage::Skip(skip), Some(input)) => Box::new(Skip::new(input, skip.0)),
            _ => return self.stage_over(stage, input, node, needs),
        })
    }

    /// Builds a stage that is not the head of a branch.
    fn stage_over(
        &mut self,
        stage: &Stage,
        input: &Node,
        node: &Node,
        needs: RowNeeds,
    ) -> Result<BoxedOperator> {
        let below = needs.below(node);
        Ok(match stage {
            Stage::Match(_) | Stage::Transform(_) | Stage::Unwind(_) | Stage::Redact(_) => {
                let (source, chain) = self.source(node, needs)?;
                if chain.is_empty() { source } else { ChainOp::over(source, chain) }
            }
            Stage::Group(group) => {
                let (source, chain) = self.source(input, below)?;
                Box::new(GroupOp::new(source, Grouping::new(chain, Arc::clone(group))))
            }
            Stage::Limit(limit) => Box::new(Limit::new(self.node(input, below)?, limit.0)),
            Stage::Skip(skip) => Box::new(Skip::new(self.node(input, below)?, skip.0)),
            Stage::Densify(stage) => {
                Box::new(DensifyOp::new(self.node(input, below)?, Arc::clone(stage)))
            }
            Stage::WindowFields(stage) => {
                let owned = input.owns_rows();
                let input = match input {
                    Node::Sort { presorted: false, .. }
                    | Node::Stage { stage: Stage::Sort(_), .. } => {
                        Input::Sort(Box::new(self.sort(input, below)?))
                    }
                    _ => Input::Rows(self.node(input, below)?),
                };
                Box::new(Windows::new(input, owned, Arc::clone(stage)))
            }
            Stage::FusionInput(stage) => {
                Box::new(FusionInputs::new(self.node(input, below)?, Arc::clone(stage)))
            }
            Stage::SetScore(stage) => {
                Box::new(Scores::new(self.node(input, below)?, Arc::clone(stage)))
            }
            Stage::HideMetadata(_) => Box::new(HiddenMetadata::new(self.node(input, below)?)),
            Stage::BucketAuto(stage) => {
                let input = self.node(input, below)?;
                Box::new(BucketAutoOp::new(input, Arc::clone(stage)))
            }
            Stage::Sample(sample) => Box::new(Sample::new(self.node(input, below)?, sample.0)),
            Stage::Sort(_) => Box::new(self.sort(node, needs)?),
            Stage::Facet(_) => return self.facet(node, input, below),
            Stage::UnionWith(_) | Stage::Lookup(_) | Stage::GraphLookup(_) => {
                let owned = input.owns_rows();
                let input = self.node(input, below)?;
                return with_inner(node, input, owned);
            }
            // `write_results` takes the documents; an explain writes nothing.
            Stage::Out(_) | Stage::Merge(_) => self.node(input, below)?,
            Stage::OneDocument(_) | Stage::Served(_) => {
                return Err(Error::internal(format!("{} is a leaf", stage.name())));
            }
        })
    }

    fn facet(&mut self, node: &Node, input: &Node, below: RowNeeds) -> Result<BoxedOperator> {
        let Node::Stage { stage: Stage::Facet(stage), inner: Inner::Branches(branches), .. } = node
        else {
            return Err(Error::internal(format!("{} was not planned", node.name())));
        };
        let heads = Heads::of(branches)?;
        // Heads read only the fields that they need. Copies with fewer fields pay only if they are kept.
        let (input, owned) = match bare_scan(input).filter(|_| !heads.keep_rows()) {
            Some((scan, narrowing)) if !below.metadata => {
                let narrows = narrowing.is_some_and(|spec| spec.projection.is_some());
                let scan: BoxedOperator =
                    if narrows { Box::new(scan.unshaped()) } else { Box::new(scan) };
                (scan, false)
            }
            _ => (self.node(input, below)?, input.owns_rows()),
        };
        Ok(Box::new(FacetOp::new(input, owned, stage, (branches, heads))))
    }

    /// Splits off the stages at the top of `node` that process each document separately, as one
    /// chain. Returns the input of the chain, and the chain.
    fn source(&mut self, node: &Node, needs: RowNeeds) -> Result<(BoxedOperator, Chain)> {
        let needs = needs.below_chain(node);
        let (node, stages) = node.chain();
        let mut chain = Chain::default();
        chain.reads_metadata = needs.metadata;
        let source: BoxedOperator = match bare_scan(node).filter(|_| !needs.metadata) {
            Some((scan, kept)) => {
                if let Some(kept) = kept.and_then(|spec| spec.projection.as_ref()) {
                    chain.keep(Arc::clone(kept));
                }
                Box::new(scan)
            }
            None => self.node(node, needs)?,
        };
        Ok((source, chain_of(chain, stages)?))
    }
}

/// Builds a stage that has inner plans. `owned` is true if the rows of its input own their bytes.
fn with_inner(node: &Node, input: BoxedOperator, owned: bool) -> Result<BoxedOperator> {
    let Node::Stage { stage, inner, .. } = node else {
        return Err(Error::internal(format!("{} is no stage", node.name())));
    };
    Ok(match (stage, inner) {
        (Stage::UnionWith(_), Inner::Union(others)) => Box::new(UnionWith::new(input, others)),
        (Stage::Lookup(lookup), Inner::Foreign(foreign)) => {
            Box::new(LookupOp::new(input, owned, lookup, foreign))
        }
        (Stage::GraphLookup(graph), Inner::Foreign(foreign)) => {
            Box::new(GraphLookupOp::new(input, graph, foreign))
        }
        _ => return Err(Error::internal(format!("{} was not planned", stage.name()))),
    })
}

/// Makes the operator of a scan that the stages above it run in, with the projection that only keeps
/// the fields that they read.
fn bare_scan(node: &Node) -> Option<(CollectionScan, Option<&Reshape>)> {
    let (scan, kept) = node.bare_scan()?;
    Some((collection_scan(scan)?, kept))
}

fn collection_scan(node: &Node) -> Option<CollectionScan> {
    let Node::CollScan { collection, filter, backward, tails: false } = node else { return None };
    Some(CollectionScan::new(collection, *backward, compile(filter.as_ref())))
}

/// Compiles a part of the request's filter.
fn compile(condition: Option<&Condition>) -> Option<Filter> {
    condition.map(|condition| Filter::from_node(condition.without_implied()))
}
