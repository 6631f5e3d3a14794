//! Chooses a set of indexes: the one with the least cost of all requests and of keeping the indexes,
//! within the budgets. The search is exact (branch and bound) until it has taken [`STEPS_MAX`] steps;
//! then the best set so far is the answer.

/// A candidate, as far as the choice depends on it.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// The cost of keeping it.
    pub upkeep: f64,
    /// The bytes that it takes.
    pub bytes: u64,
    /// The cost of each request with it; the cost without it if it does not serve the request.
    pub costs: Vec<f64>,
}

/// The limits of the indexes that are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexBudget {
    /// The number of indexes.
    pub indexes: usize,
    /// The bytes together.
    pub bytes: u64,
}

/// The steps of the search, each of which looks at one candidate.
pub const STEPS_MAX: usize = 1 << 20;

/// Returns the positions of the chosen offers, ascending. `costs` are those of the requests without
/// any of them: the best offer of a request serves it. Of sets with equal costs, the smallest in the
/// order of the positions is chosen.
pub fn choose(costs: &[f64], offers: &[Offer], budget: IndexBudget) -> Vec<usize> {
    let mut order: Vec<usize> = (0..offers.len()).collect();
    // The most useful first, so that a good set is found soon and bounds the others.
    let gain = |at: &usize| gain_of(costs, offers.get(*at));
    order.sort_by(|left, right| gain(right).total_cmp(&gain(left)));
    order.retain(|at| gain(at) > 0.0);
    let mut search = Search {
        offers: order.iter().filter_map(|at| offers.get(*at)).collect(),
        best: costs.iter().sum(),
        chosen: Vec::new(),
        taken: Vec::new(),
        steps: 0,
    };
    search.greedy(costs, budget);
    search.descend(0, costs.to_vec(), 0.0, budget);
    let mut chosen: Vec<usize> =
        search.chosen.iter().filter_map(|at| order.get(*at).copied()).collect();
    chosen.sort_unstable();
    chosen
}

/// Returns what an offer alone saves.
fn gain_of(costs: &[f64], offer: Option<&Offer>) -> f64 {
    let Some(offer) = offer else { return 0.0 };
    let saved = costs.iter().zip(&offer.costs).map(|(before, after)| (before - after).max(0.0));
    saved.sum::<f64>() - offer.upkeep
}

/// Returns the costs of the requests with one more offer.
fn with(costs: &[f64], offer: &Offer) -> Vec<f64> {
    costs.iter().zip(&offer.costs).map(|(before, after)| before.min(*after)).collect()
}

struct Search<'o> {
    /// The offers that save anything, the most useful first.
    offers: Vec<&'o Offer>,
    /// The cost of the best set so far.
    best: f64,
    /// The best set so far.
    chosen: Vec<usize>,
    /// The set that is being built.
    taken: Vec<usize>,
    steps: usize,
}

impl Search<'_> {
    /// Finds a first set: always the offer that saves the most beside those that are taken.
    fn greedy(&mut self, costs: &[f64], mut budget: IndexBudget) {
        let (mut costs, mut upkeep, mut taken) = (costs.to_vec(), 0.0, Vec::new());
        while budget.indexes > 0 {
            let fits = |(_, offer): &(usize, &&Offer)| offer.bytes <= budget.bytes;
            let gains = self.offers.iter().enumerate().filter(fits);
            let gains = gains.map(|(at, offer)| (at, gain_of(&costs, Some(offer))));
            let best = gains.max_by(|left, right| left.1.total_cmp(&right.1));
            let Some((at, gain)) = best.filter(|(_, gain)| *gain > 0.0) else { break };
            let Some(offer) = self.offers.get(at).filter(|_| gain > 0.0) else { break };
            costs = with(&costs, offer);
            upkeep += offer.upkeep;
            budget.indexes -= 1;
            budget.bytes -= offer.bytes;
            taken.push(at);
        }
        let cost = costs.iter().sum::<f64>() + upkeep;
        if cost < self.best {
            self.best = cost;
            self.chosen = taken;
        }
    }

    /// Decides about the offers from `at` on.
    fn descend(&mut self, at: usize, costs: Vec<f64>, upkeep: f64, budget: IndexBudget) {
        self.steps += 1;
        let cost = costs.iter().sum::<f64>() + upkeep;
        if cost < self.best {
            self.best = cost;
            self.chosen.clone_from(&self.taken);
        }
        if self.steps > STEPS_MAX
            || budget.indexes == 0
            || self.bound(at, &costs, budget) + upkeep >= self.best
        {
            return;
        }
        let Some(offer) = self.offers.get(at).copied() else { return };
        if offer.bytes <= budget.bytes {
            let left =
                IndexBudget { indexes: budget.indexes - 1, bytes: budget.bytes - offer.bytes };
            self.taken.push(at);
            self.descend(at + 1, with(&costs, offer), upkeep + offer.upkeep, left);
            self.taken.pop();
        }
        self.descend(at + 1, costs, upkeep, budget);
    }

    /// Returns a lower bound of the cost with any of the offers from `at` on: each request at its
    /// best, with the cheapest upkeep of an offer that fits.
    fn bound(&self, at: usize, costs: &[f64], budget: IndexBudget) -> f64 {
        let rest = self.offers.get(at..).unwrap_or_default();
        let fitting = || rest.iter().filter(|offer| offer.bytes <= budget.bytes);
        let Some(cheapest) = fitting().map(|offer| offer.upkeep).min_by(f64::total_cmp) else {
            return f64::INFINITY;
        };
        let least = |(request, cost): (usize, &f64)| {
            let costs = fitting().filter_map(|offer| offer.costs.get(request).copied());
            costs.fold(*cost, f64::min)
        };
        costs.iter().enumerate().map(least).sum::<f64>() + cheapest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the least cost over all sets within the budget.
    fn exhaustive(costs: &[f64], offers: &[Offer], budget: IndexBudget) -> f64 {
        let of_set = |set: usize| {
            let taken = offers.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
            let taken: Vec<&Offer> = taken.map(|(_, offer)| offer).collect();
            let bytes: u64 = taken.iter().map(|offer| offer.bytes).sum();
            let fits = taken.len() <= budget.indexes && bytes <= budget.bytes;
            fits.then(|| cost(costs, &taken))
        };
        (0..1 << offers.len()).filter_map(of_set).fold(f64::INFINITY, f64::min)
    }

    fn cost(costs: &[f64], taken: &[&Offer]) -> f64 {
        let with_all = taken.iter().fold(costs.to_vec(), |costs, offer| with(&costs, offer));
        with_all.iter().sum::<f64>() + taken.iter().map(|offer| offer.upkeep).sum::<f64>()
    }

    #[test]
    fn the_chosen_set_is_the_best_of_all_sets() {
        let mut state = 1_u64;
        let mut below = move |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % end
        };
        for round in 0..300 {
            let requests = 1 + below(6) as usize;
            let costs: Vec<f64> = (0..requests).map(|_| below(1000) as f64).collect();
            let offers: Vec<Offer> = (0..1 + below(9))
                .map(|_| Offer {
                    upkeep: below(400) as f64,
                    bytes: below(100),
                    costs: costs.iter().map(|cost| (below(1200) as f64).min(*cost)).collect(),
                })
                .collect();
            let budget = IndexBudget { indexes: below(5) as usize, bytes: below(250) };
            let chosen = choose(&costs, &offers, budget);
            let taken: Vec<&Offer> = chosen.iter().map(|at| &offers[*at]).collect();
            assert!(taken.len() <= budget.indexes, "round {round}");
            assert!(taken.iter().map(|offer| offer.bytes).sum::<u64>() <= budget.bytes);
            let (found, least) = (cost(&costs, &taken), exhaustive(&costs, &offers, budget));
            assert!((found - least).abs() < 1e-9, "round {round}: {found} and not {least}");
        }
    }

    #[test]
    fn two_cheap_indexes_can_be_better_than_the_most_useful_one() {
        let offer = |bytes, costs: [f64; 2]| Offer { upkeep: 1.0, bytes, costs: costs.to_vec() };
        let offers = [offer(10, [40.0, 40.0]), offer(5, [1.0, 100.0]), offer(5, [100.0, 1.0])];
        let budget = IndexBudget { indexes: 2, bytes: 10 };
        assert_eq!(choose(&[100.0, 100.0], &offers, budget), [1, 2]);
        let budget = IndexBudget { indexes: 1, bytes: 10 };
        assert_eq!(choose(&[100.0, 100.0], &offers, budget), [0]);
        assert!(choose(&[100.0, 100.0], &offers, IndexBudget { indexes: 0, bytes: 10 }).is_empty());
    }
}
