//! The advice about the indexes of one collection: tries the candidates in the laboratory, chooses the
//! best set, tries that, and tries what happens without the indexes that seem superfluous.

use crate::indexes::candidates::{IndexCandidate, WeighedRequest, candidates, joined_candidate};
use crate::indexes::choice::{IndexBudget, Offer, choose};
use crate::indexes::conditions::{Asked, Writes};
use crate::indexes::costs::{
    COST_LEFT_MAX, ENTRY_BYTES, ENTRY_COST, cost_of, extrapolated, is_same_cost,
};
use crate::indexes::definition::{ExistingIndex, IndexDefinition};
use crate::indexes::fields::SeenPaths;
use crate::indexes::laboratory::{CopyShare, Laboratory, LaboratoryCopy};
use crate::indexes::measured::{Measured, ScaledCounts};
use crate::indexes::removal::{DoubtfulIndex, KeptIndex, Reason, doubts};
use crate::scaled::SampleSize;
use quire_document::DocBuf;

/// A command, and how often it runs.
#[derive(Clone, Debug)]
pub struct IndexRequest {
    /// The command, as a client sends it.
    pub command: DocBuf,
    /// How often it ran.
    pub count: f64,
}

/// What a request examined with the indexes of today and with the advised ones.
#[derive(Clone, Debug)]
pub struct AdvisedRequest {
    /// The request that was run.
    pub request: IndexRequest,
    /// With the indexes of today. `None` if the laboratory cannot run it.
    pub before: Option<RequestRun>,
    /// With the advised indexes.
    pub after: Option<RequestRun>,
}

/// A run of a request in the laboratory.
#[derive(Clone, Debug)]
pub struct RequestRun {
    /// What it examined in the copy.
    pub measured: Measured,
    /// What it examines in the collection.
    pub scaled: ScaledCounts,
    /// The cost of a run in the collection.
    pub cost: f64,
    /// How the cost grows with the number of documents: 0 not at all, 1 as that does.
    pub growth: f64,
}

/// An index to create.
#[derive(Clone, Debug)]
pub struct NewIndex {
    /// The index to create.
    pub definition: IndexDefinition,
    /// The name of the hidden index that is it: it is shown in place of creating one.
    pub hidden: Option<String>,
    /// Why its fields are in this order.
    pub reason: String,
    /// The positions of the requests that use it.
    pub requests: Vec<usize>,
    /// The cost of these requests with the indexes of today.
    pub cost_before: f64,
    /// The cost of these requests with the advised indexes.
    pub cost_after: f64,
    /// The entries that the writes of the workload add or remove.
    pub writes: f64,
    /// The bytes of the entries of a document.
    pub bytes_per_document: f64,
    /// The estimate of its bytes.
    pub bytes: u64,
}

/// A candidate that cannot be built.
#[derive(Clone, Debug)]
pub struct RefusedIndex {
    /// The index that was tried.
    pub definition: IndexDefinition,
    /// The error of building it.
    pub error: String,
}

/// The advice about the indexes of a collection.
#[derive(Clone, Debug)]
pub struct IndexAdvice {
    /// The name of the collection.
    pub collection: String,
    /// The documents on which it was measured.
    pub size: SampleSize,
    /// The documents of the smaller copy, which shows how costs grow.
    pub smaller: SampleSize,
    /// The requests that were run.
    pub requests: Vec<AdvisedRequest>,
    /// The indexes to create, the most useful first.
    pub create: Vec<NewIndex>,
    /// The indexes that can go.
    pub remove: Vec<DoubtfulIndex>,
    /// The indexes that requests use.
    pub keep: Vec<KeptIndex>,
    /// The candidates that cannot be built.
    pub refused: Vec<RefusedIndex>,
    /// The number of candidates that were tried.
    pub tried: usize,
}

/// Returns the advice about one collection. `workload` has the commands of the whole database: those
/// on other collections count if they look up documents of this one.
///
/// # Errors
/// Those of the laboratory.
pub fn advise_indexes<L: Laboratory>(
    laboratory: &mut L,
    collection: &str,
    workload: &[IndexRequest],
    budget: IndexBudget,
) -> Result<IndexAdvice, L::Error> {
    let existing = laboratory.indexes(collection)?;
    let task = Task::new(collection, workload, &existing);
    let shown = existing.iter().filter(|index| !index.is_hidden());
    let names: Vec<&str> = shown.map(|index| index.name.as_str()).collect();
    let small = task.measure(laboratory, CopyShare::Fourth, &names)?;
    let whole = task.measure(laboratory, CopyShare::Whole, &names)?;
    let mut advice = IndexAdvice {
        collection: collection.to_owned(),
        size: whole.copy.size,
        smaller: small.copy.size,
        requests: Vec::new(),
        create: Vec::new(),
        remove: Vec::new(),
        keep: Vec::new(),
        refused: task.refused(&whole.copy),
        tried: task.candidates.len(),
    };
    let (costs, offers) = task.offers(&small, &whole);
    let left = IndexBudget { indexes: budget.indexes.saturating_sub(existing.len()), ..budget };
    let mut chosen = choose(&costs, &offers, left);
    let mut after = task.run_with(laboratory, &names, &chosen)?;
    // Only what the planner uses in the end is advised. Of two indexes that cost the same it takes the
    // older one, so they are built in the order in which the advice lists them.
    loop {
        chosen.retain(|at| task.is_used(*at, &after));
        task.rank(&mut chosen, &whole, &after);
        let definitions = task.definitions(&chosen);
        laboratory.rebuild(collection, &names, &definitions)?;
        after = task.run_with(laboratory, &names, &chosen)?;
        if chosen.iter().all(|at| task.is_used(*at, &after)) {
            break;
        }
    }
    let after = task.remove(laboratory, &names, &chosen, after, &mut advice)?;
    task.report_requests(&small, &whole, &after, &mut advice);
    task.report_created(&chosen, &offers, &whole.copy, &mut advice);
    task.report_kept(&after, &mut advice);
    Ok(advice)
}

/// What is asked of one collection.
struct Task<'w> {
    collection: &'w str,
    existing: &'w [ExistingIndex],
    /// The requests that run in the laboratory, with what they ask.
    requests: Vec<(&'w IndexRequest, Asked)>,
    /// All commands that write to the collection.
    writes: Vec<(f64, Writes)>,
    candidates: Vec<IndexCandidate>,
    /// The other collections that the requests read.
    others: Vec<String>,
}

/// The runs on one copy.
struct Measurements {
    copy: LaboratoryCopy,
    /// With the indexes of today.
    today: Vec<Option<Measured>>,
    /// With each candidate, for the requests that it may serve.
    with: Vec<Vec<Option<Measured>>>,
}

impl<'w> Task<'w> {
    fn new(
        collection: &'w str,
        workload: &'w [IndexRequest],
        existing: &'w [ExistingIndex],
    ) -> Task<'w> {
        let (mut requests, mut writes) = (Vec::new(), Vec::new());
        for request in workload {
            let Some(asked) = Asked::of_command(request.command.as_doc()) else { continue };
            let is_own = asked.collection == collection;
            if is_own && asked.writes != Writes::Nothing {
                writes.push((request.count, asked.writes.clone()));
            }
            let joins = asked.joined.iter().any(|(joined, _)| joined == collection);
            let reads = is_own && !matches!(asked.writes, Writes::Inserts(_));
            if reads || joins {
                requests.push((request, asked));
            }
        }
        let complete: Vec<IndexDefinition> = existing
            .iter()
            .filter(|index| index.is_complete())
            .filter_map(ExistingIndex::definition)
            .collect();
        let (positions, weighed): (Vec<usize>, Vec<WeighedRequest>) = requests
            .iter()
            .enumerate()
            .filter(|(_, (_, asked))| asked.collection == collection && asked.can_use_index())
            .map(|(at, (request, asked))| {
                (at, WeighedRequest { asked: asked.clone(), count: request.count })
            })
            .unzip();
        let mut all = candidates(&weighed, &complete);
        for candidate in &mut all {
            let of_all = candidate.requests.iter().filter_map(|at| positions.get(*at).copied());
            candidate.requests = of_all.collect();
        }
        let mut others = Vec::new();
        for (at, (_, asked)) in requests.iter().enumerate() {
            let joined = asked.joined.iter().filter(|(joined, _)| joined == collection);
            for (_, field) in joined {
                all.extend(joined_candidate(field, vec![at], &complete));
            }
            let named = asked.joined.iter().map(|(joined, _)| joined);
            for other in named.chain(std::iter::once(&asked.collection)) {
                if other != collection && !others.contains(other) {
                    others.push(other.clone());
                }
            }
        }
        Task { collection, existing, requests, writes, candidates: distinct(all), others }
    }

    /// Runs the requests on a copy: with the indexes of today, and with each candidate beside them.
    fn measure<L: Laboratory>(
        &self,
        laboratory: &mut L,
        share: CopyShare,
        names: &[&str],
    ) -> Result<Measurements, L::Error> {
        let definitions: Vec<IndexDefinition> =
            self.candidates.iter().map(|candidate| candidate.definition.clone()).collect();
        let copy = laboratory.copy(self.collection, &self.others, share, &definitions)?;
        let today = self.run_with(laboratory, names, &[])?;
        let mut with = Vec::new();
        for (at, candidate) in self.candidates.iter().enumerate() {
            let is_built = copy.built.get(at).is_some_and(|built| built.bytes.is_ok());
            let mut runs = vec![None; self.requests.len()];
            if is_built {
                let name = candidate.definition.name();
                laboratory.show(self.collection, &[names, &[name.as_str()]].concat())?;
                for request in &candidate.requests {
                    if let (Some((request, _)), Some(run)) =
                        (self.requests.get(*request), runs.get_mut(*request))
                    {
                        *run = laboratory.run(request.command.as_doc())?;
                    }
                }
            }
            with.push(runs);
        }
        Ok(Measurements { copy, today, with })
    }

    /// Runs all requests with the indexes of today and with chosen candidates.
    fn run_with<L: Laboratory>(
        &self,
        laboratory: &mut L,
        names: &[&str],
        chosen: &[usize],
    ) -> Result<Vec<Option<Measured>>, L::Error> {
        let chosen = chosen.iter().filter_map(|at| self.candidates.get(*at));
        let chosen: Vec<String> = chosen.map(|candidate| candidate.definition.name()).collect();
        let mut shown = names.to_vec();
        shown.extend(chosen.iter().map(String::as_str));
        laboratory.show(self.collection, &shown)?;
        let runs = self.requests.iter();
        runs.map(|(request, _)| laboratory.run(request.command.as_doc())).collect()
    }

    /// Returns true if a run used the candidate.
    fn is_used(&self, at: usize, runs: &[Option<Measured>]) -> bool {
        let Some(candidate) = self.candidates.get(at) else { return false };
        let name = candidate.definition.name();
        runs.iter().flatten().any(|run| run.indexes.contains(&name))
    }

    /// Sorts candidates by what they save in the requests that use them, the most useful first.
    fn rank(&self, chosen: &mut [usize], whole: &Measurements, after: &[Option<Measured>]) {
        let saved = |at: &usize| -> f64 {
            let Some(candidate) = self.candidates.get(*at) else { return 0.0 };
            let name = candidate.definition.name();
            let requests = self.requests.iter().zip(&whole.today).zip(after);
            let using = requests.filter_map(|(((request, _), before), after)| {
                let after = after.as_ref().filter(|after| after.indexes.contains(&name))?;
                Some((cost_of(before.as_ref()?) - cost_of(after)) * request.count)
            });
            using.sum()
        };
        chosen.sort_by(|left, right| saved(right).total_cmp(&saved(left)));
    }

    fn definitions(&self, chosen: &[usize]) -> Vec<IndexDefinition> {
        let chosen = chosen.iter().filter_map(|at| self.candidates.get(*at));
        chosen.map(|candidate| candidate.definition.clone()).collect()
    }

    /// Returns the costs of the requests with the indexes of today, and what each candidate offers.
    fn offers(&self, small: &Measurements, whole: &Measurements) -> (Vec<f64>, Vec<Offer>) {
        let count = |at: usize| self.requests.get(at).map_or(0.0, |(request, _)| request.count);
        let cost = |small: Option<&Measured>, large: Option<&Measured>, sizes| {
            large.map_or(0.0, |large| extrapolated(small, large, sizes).0)
        };
        let sizes = (small.copy.size, whole.copy.size);
        let today = |at: usize| {
            let small = small.today.get(at).and_then(Option::as_ref);
            cost(small, whole.today.get(at).and_then(Option::as_ref), sizes)
        };
        let costs: Vec<f64> = (0..self.requests.len()).map(|at| today(at) * count(at)).collect();
        let offers = self.candidates.iter().enumerate().map(|(candidate, _)| {
            let run = |all: &'_ Measurements, at: usize| -> Option<Measured> {
                all.with.get(candidate)?.get(at)?.clone()
            };
            let with = |(at, before): (usize, &f64)| match run(whole, at) {
                None => *before,
                Some(large) => {
                    let after = cost(run(small, at).as_ref(), Some(&large), sizes) * count(at);
                    if after <= before * COST_LEFT_MAX { after } else { *before }
                }
            };
            let bytes = whole.copy.built.get(candidate).and_then(|built| built.bytes.clone().ok());
            let bytes =
                bytes.map(|bytes| (bytes as f64 * whole.copy.size.documents_per_sampled()) as u64);
            Offer {
                upkeep: self.writes_of(candidate, &whole.copy) * ENTRY_COST,
                bytes: bytes.unwrap_or(u64::MAX),
                costs: costs.iter().enumerate().map(with).collect(),
            }
        });
        let offers = offers.collect();
        (costs, offers)
    }

    /// Returns the entries of a candidate that the writes of the workload add or remove.
    fn writes_of(&self, candidate: usize, copy: &LaboratoryCopy) -> f64 {
        let Some(definition) = self.candidates.get(candidate).map(|found| &found.definition) else {
            return 0.0;
        };
        let entries = match copy.built.get(candidate) {
            Some(built) if built.most_keys > 1 => {
                let bytes = built.bytes.clone().unwrap_or(0) / copy.size.sampled.max(1);
                (bytes / ENTRY_BYTES).clamp(1, built.most_keys) as f64
            }
            _ => 1.0,
        };
        let touches = |paths: &Option<Vec<String>>| {
            let overlaps = |left: &str, right: &str| {
                let inside = |outer: &str, inner: &str| {
                    inner
                        .strip_prefix(outer)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                };
                inside(left, right) || inside(right, left)
            };
            paths.as_ref().is_none_or(|paths| {
                paths.iter().any(|path| definition.key.iter().any(|(own, _)| overlaps(path, own)))
            })
        };
        let of_write = |(count, writes): &(f64, Writes)| match writes {
            Writes::Nothing => 0.0,
            Writes::Inserts(documents) => count * *documents as f64,
            // The old entry goes, a new one comes.
            Writes::Updates(paths) => {
                if touches(paths) {
                    count * 2.0
                } else {
                    0.0
                }
            }
            Writes::Deletes => *count,
        };
        self.writes.iter().map(of_write).sum::<f64>() * entries
    }

    fn refused(&self, copy: &LaboratoryCopy) -> Vec<RefusedIndex> {
        let built = self.candidates.iter().zip(&copy.built);
        let refused = built.filter_map(|(candidate, built)| {
            let error = built.bytes.as_ref().err()?.clone();
            Some(RefusedIndex { definition: candidate.definition.clone(), error })
        });
        refused.collect()
    }

    fn report_requests(
        &self,
        small: &Measurements,
        whole: &Measurements,
        after: &[Option<Measured>],
        advice: &mut IndexAdvice,
    ) {
        let sizes = (small.copy.size, whole.copy.size);
        let most_keys = whole
            .copy
            .built
            .iter()
            .map(|built| built.most_keys)
            .max()
            .unwrap_or(1)
            .max(whole.copy.most_keys);
        for (at, (request, asked)) in self.requests.iter().enumerate() {
            let small_today = small.today.get(at).and_then(Option::as_ref);
            let run = |small: Option<&Measured>, measured: &Measured| {
                let (cost, growth) = extrapolated(small, measured, sizes);
                let size = match asked.collection == self.collection {
                    true => sizes.1,
                    // Its own collection is another one.
                    false => SampleSize { sampled: 1, total: 1 },
                };
                let scaled = measured.scaled(size, most_keys, false);
                RequestRun { measured: measured.clone(), scaled, cost, growth }
            };
            let before =
                whole.today.get(at).and_then(Option::as_ref).map(|run_of| run(small_today, run_of));
            let with_chosen = after.get(at).and_then(Option::as_ref);
            // The small copy was not run with the chosen set; the growth with an index is that of the
            // candidate that the plan uses.
            let small_after = with_chosen.and_then(|run| self.small_run(at, run, small, whole));
            let after = with_chosen.map(|run_of| run(small_after, run_of));
            advice.requests.push(AdvisedRequest { request: (*request).clone(), before, after });
        }
    }

    /// Returns the run on the small copy by the same plan: that with the candidate that the run
    /// uses, or that with the indexes of today.
    fn small_run<'m>(
        &self,
        at: usize,
        after: &Measured,
        small: &'m Measurements,
        whole: &Measurements,
    ) -> Option<&'m Measured> {
        let today = whole.today.get(at).and_then(Option::as_ref);
        if today.is_some_and(|today| today.indexes == after.indexes) {
            return small.today.get(at).and_then(Option::as_ref);
        }
        let used = self
            .candidates
            .iter()
            .position(|candidate| after.indexes.contains(&candidate.definition.name()));
        if let Some(used) = used {
            return small.with.get(used)?.get(at)?.as_ref();
        }
        // Another index of today serves it as well as the one that goes.
        let today = today?;
        let is_same = is_same_cost(today, after) && is_same_cost(after, today);
        small.today.get(at)?.as_ref().filter(|_| is_same)
    }

    fn report_created(
        &self,
        chosen: &[usize],
        offers: &[Offer],
        copy: &LaboratoryCopy,
        advice: &mut IndexAdvice,
    ) {
        for at in chosen {
            let (Some(candidate), Some(offer)) = (self.candidates.get(*at), offers.get(*at)) else {
                continue;
            };
            let name = candidate.definition.name();
            let uses = |request: &&AdvisedRequest| {
                let after = request.after.as_ref();
                after.is_some_and(|after| after.measured.indexes.contains(&name))
            };
            let using = || advice.requests.iter().filter(uses);
            let total = |of: fn(&AdvisedRequest) -> Option<&RequestRun>| {
                let costs = using().filter_map(|one| Some(of(one)?.cost * one.request.count));
                costs.sum::<f64>()
            };
            let positions = advice.requests.iter().enumerate().filter(|(_, one)| uses(one));
            let hidden = self.existing.iter().find(|index| index.would_be(&candidate.definition));
            let created = NewIndex {
                definition: candidate.definition.clone(),
                hidden: hidden.map(|index| index.name.clone()),
                reason: candidate.reason.clone(),
                requests: positions.map(|(at, _)| at).collect(),
                cost_before: total(|one| one.before.as_ref()),
                cost_after: total(|one| one.after.as_ref()),
                // Writes keep a hidden index already.
                writes: if hidden.is_some() { 0.0 } else { self.writes_of(*at, copy) },
                bytes_per_document: offer.bytes as f64 / copy.size.total.max(1) as f64,
                bytes: offer.bytes,
            };
            if let Some(hidden) = &created.hidden {
                let after = advice.requests.iter_mut().filter_map(|one| one.after.as_mut());
                let used = after.flat_map(|after| &mut after.measured.indexes);
                used.filter(|used| **used == name).for_each(|used| used.clone_from(hidden));
            }
            advice.create.push(created);
        }
    }

    /// Says which indexes can go. `after` are the runs with all indexes of today and the chosen ones.
    /// Returns the runs without those that can go.
    fn remove<L: Laboratory>(
        &self,
        laboratory: &mut L,
        names: &[&str],
        chosen: &[usize],
        after: Vec<Option<Measured>>,
        advice: &mut IndexAdvice,
    ) -> Result<Vec<Option<Measured>>, L::Error> {
        let mut seen = SeenPaths::default();
        laboratory.read(self.collection, &mut |document| seen.add(document))?;
        let added = self.definitions(chosen);
        // No request may cost more than in these runs, however many indexes go.
        let mut most = after.clone();
        let mut after = after;
        let mut left = names.to_vec();
        for mut doubt in doubts(self.existing, &added, &seen) {
            let is_unused = matches!(doubt.reason, Reason::Unused);
            if is_unused && !uses(&after, &doubt.name).is_empty() {
                continue;
            }
            let without: Vec<&str> =
                left.iter().copied().filter(|name| *name != doubt.name).collect();
            let runs = self.run_with(laboratory, &without, chosen)?;
            let is_same = most.iter().zip(&runs).all(|(with, without)| match (with, without) {
                (Some(with), Some(without)) => is_same_cost(with, without),
                _ => true,
            });
            if !is_same && !matches!(doubt.reason, Reason::Absent { .. }) {
                continue;
            }
            if !is_same {
                most = runs.clone();
            }
            doubt.is_same_without = is_same;
            doubt.replayed = runs.iter().flatten().count();
            (after, left) = (runs, without);
            advice.remove.push(doubt);
        }
        Ok(after)
    }

    /// Says which indexes stay, and which requests use them in the runs without those that go.
    fn report_kept(&self, after: &[Option<Measured>], advice: &mut IndexAdvice) {
        for index in self.existing {
            if !advice.remove.iter().any(|removed| removed.name == index.name) {
                advice.keep.push(KeptIndex {
                    name: index.name.clone(),
                    requests: uses(after, &index.name),
                    uses: index.uses,
                });
            }
        }
    }
}

/// Returns the positions of the runs that used an index.
fn uses(runs: &[Option<Measured>], name: &str) -> Vec<usize> {
    let runs = runs.iter().enumerate();
    let using = runs.filter(|(_, run)| {
        run.as_ref().is_some_and(|run| run.indexes.iter().any(|used| used == name))
    });
    using.map(|(at, _)| at).collect()
}

/// Removes candidates with the same definition.
fn distinct(all: Vec<IndexCandidate>) -> Vec<IndexCandidate> {
    let mut kept: Vec<IndexCandidate> = Vec::new();
    for candidate in all {
        match kept.iter_mut().find(|known| known.definition == candidate.definition) {
            Some(known) => {
                known.requests.extend(candidate.requests);
                known.requests.sort_unstable();
                known.requests.dedup();
            }
            None => kept.push(candidate),
        }
    }
    kept
}
