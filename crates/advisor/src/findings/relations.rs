//! Embed or refer: the answer for each relation that the profile found, with all inputs of the
//! formula (docs/rules.md, "Embed or refer").
//!
//! The costs are bytes each second. A read of a joined collection has a fixed cost, too, which stands
//! for the round trip and the look-up in an index.

use super::{Evidence, Input, Statement, Value};
use crate::profile::PathProfile;
use crate::references::Reference;

/// The bytes that a look-up of one document by an index costs as much as. An assumption: a look-up
/// takes about 2 microseconds, and so does copying 4 KB of documents to a reply.
const LOOKUP_BYTES: f64 = 4_096.0;
/// The bytes of an index entry and of the reference.
const ENTRY_BYTES: f64 = 60.0;
/// The elements that stay in the document of a subset.
const SUBSET: f64 = 10.0;
/// The share of reads that need the whole list, where a subset is kept: an assumption.
const NEEDS_ALL: f64 = 0.1;
/// Embedded data may bring a document to this size at most: half of the hard limit.
const EMBEDDED_MAX: f64 = 8_388_608.0;
/// Embedded data should bring a document to this size at most.
const EMBEDDED_SOFT_MAX: f64 = 1_048_576.0;
/// Costs that differ by less are equal.
const TIE: f64 = 0.2;
/// Copied fields of a referred document have this size at most.
const COPIED_MAX: f64 = 1_024.0;

/// A form of a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationForm {
    /// The children are in the parent.
    Embed,
    /// The children refer to the parent.
    Refer,
    /// The newest children are in the parent, too.
    Subset,
    /// The children refer to the parent and copy a few of its fields.
    ReferAndCopy,
}

impl RelationForm {
    /// Returns the name in the report.
    pub fn name(self) -> &'static str {
        match self {
            RelationForm::Embed => "embed",
            RelationForm::Refer => "refer",
            RelationForm::Subset => "subset",
            RelationForm::ReferAndCopy => "refer and copy",
        }
    }
}

/// The answer for a relation.
#[derive(Clone, Debug)]
pub struct Relation {
    /// The collection that refers: the children. For an array, the collection that has it.
    pub from: String,
    /// Its path that refers, or that has the array.
    pub path: String,
    /// The collection that is referred to: the parents.
    pub to: String,
    /// Its field that is referred to; empty for an array.
    pub field: String,
    /// Children for one parent: median, 90 %, 99 %, most.
    pub fan_out: [u64; 4],
    /// The form in the data.
    pub present: RelationForm,
    /// The cheapest form that no hard rule forbids; the present one if the costs tell nothing.
    pub best: RelationForm,
    /// True if the best form saves less than 20 %: the present one is as good.
    pub is_tie: bool,
    /// The cost of each form in bytes a second. Empty without a workload.
    pub costs: Vec<(RelationForm, f64)>,
    /// Joins along the relation each second.
    pub joins: f64,
    /// The inputs of the formula.
    pub inputs: Vec<Evidence>,
    /// The hard rules that forbid to embed.
    pub forbidden: Vec<&'static str>,
}

impl Relation {
    /// Returns the cost of a form.
    pub fn cost_of(&self, form: RelationForm) -> Option<f64> {
        self.costs.iter().find(|(known, _)| *known == form).map(|(_, cost)| *cost)
    }

    /// Returns the answer in one word: `better`, `tie`, `right`, or `unknown` without a workload.
    pub fn answer(&self) -> &'static str {
        match () {
            () if self.costs.is_empty() => "unknown",
            () if self.is_tie => "tie",
            () if self.best == self.present => "right",
            () => "better",
        }
    }

    /// Returns one line: `orders.customer -> customers._id`, or `orders.lines[]` for an array.
    pub fn title(&self) -> String {
        match self.present {
            RelationForm::Embed => format!("{}.{}[]", self.from, self.path),
            _ => format!("{}.{} -> {}.{}", self.from, self.path, self.to, self.field),
        }
    }
}

/// Decides each relation of the profile: the references, and the arrays of subdocuments.
pub fn decide(input: &Input<'_>) -> Vec<Relation> {
    let references = input.profile.references.iter();
    let of_documents = references.filter(|one| !one.in_array && one.from != one.to);
    let mut relations: Vec<Relation> = of_documents
        .filter_map(|one| Numbers::of(input, one).map(|numbers| numbers.decide_reference(one)))
        .collect();
    for (source, profile) in input.collections() {
        profile.for_each_path(&mut |path, values, _| {
            let has_documents = values.items().is_some_and(|items| items.fields().next().is_some());
            if has_documents && !path.contains("[]") {
                let numbers = Numbers::of_array(input, &source.name, path, values);
                relations.extend(numbers.map(|numbers| numbers.decide_array(&source.name, path)));
            }
        });
    }
    relations
}

/// The inputs of the formula.
struct Numbers {
    /// Reads of parents each second.
    r: f64,
    /// The share of these that join the children.
    a: f64,
    /// Reads of children each second.
    i: f64,
    /// The share of these that join the parent.
    up: f64,
    /// Writes of children each second.
    w: f64,
    /// Writes of parents each second.
    u: f64,
    /// Children for one parent, on average and at most.
    f: f64,
    f_max: f64,
    /// Bytes of a parent and of a child.
    p: f64,
    c: f64,
    /// The bytes of the parent's fields that a child would copy.
    copied: f64,
    has_workload: bool,
    other_referrers: bool,
    /// True if the children of a parent become more with its age.
    grows: bool,
    /// Children for one parent: median, 90 %, 99 %, most.
    fan_out: [u64; 4],
}

impl Numbers {
    fn of(input: &Input<'_>, one: &Reference) -> Option<Numbers> {
        let (children, parents) = (input.documents(&one.from), input.documents(&one.to));
        if children == 0.0 || parents == 0.0 {
            return None;
        }
        let joins = |collection: &str, other: &str, matches: &dyn Fn(&Statement<'_>) -> bool| {
            let statements = input.statements(collection).iter();
            let joining = statements.filter(|statement| {
                statement.reads()
                    && matches(statement)
                    && statement.parts.joined.iter().any(|joined| joined.from == other)
            });
            joining.map(|statement| statement.per_second).sum::<f64>()
        };
        let down = joins(&one.to, &one.from, &|_| true);
        let up = joins(&one.from, &one.to, &|_| true);
        let (r, reads) = (input.reads(&one.to), input.reads(&one.from));
        let p = input.mean_bytes(&one.to);
        let referrers = input.profile.references.iter();
        let other_referrers =
            referrers.filter(|other| other.to == one.from && other.from != one.from).count() > 0;
        Some(Numbers {
            r,
            a: if r > 0.0 { (down / r).min(1.0) } else { 0.0 },
            i: reads,
            up: if reads > 0.0 { (up / reads).min(1.0) } else { 0.0 },
            w: input.writes(&one.from),
            u: input.writes(&one.to),
            f: children / parents,
            // A sample of the children has few of each parent; one parent has at least the mean.
            f_max: (one.fan_out.last().copied().unwrap_or(1) as f64).max(children / parents),
            p,
            c: input.mean_bytes(&one.from),
            copied: p.min(COPIED_MAX),
            has_workload: input.seconds.is_some(),
            other_referrers,
            grows: false,
            fan_out: one.fan_out,
        })
    }

    /// Returns the inputs for an array of subdocuments, which are children in their parent.
    fn of_array(
        input: &Input<'_>,
        name: &str,
        path: &str,
        values: &PathProfile,
    ) -> Option<Numbers> {
        let lengths = values.lengths()?;
        let below = format!("{path}.");
        let rate = |is_one: &dyn Fn(&Statement<'_>) -> bool| {
            let statements = input.statements(name).iter().filter(|one| is_one(one));
            statements.map(|one| one.per_second).sum::<f64>()
        };
        let alone = rate(&|one| {
            one.reads() && one.parts.filtered.iter().any(|test| test.path.starts_with(&below))
        });
        let r = (input.reads(name) - alone).max(0.0);
        let with = (rate(&|one| one.reads() && one.returns(path)) - alone).max(0.0);
        let writes = rate(&|one| {
            let mut written = one.parts.written.iter();
            written.any(|one| one.path == path || one.path.starts_with(&below))
        });
        let arrays = values.of_type("array").max(1) as f64;
        let of_all = values.bytes() as f64 * input.scale(name) / input.documents(name).max(1.0);
        let f = lengths.mean();
        Some(Numbers {
            r,
            a: if r > 0.0 { (with / r).min(1.0) } else { 0.0 },
            i: alone,
            up: 0.0,
            w: writes,
            u: 0.0,
            f,
            f_max: lengths.at(1.0),
            p: (input.mean_bytes(name) - of_all).max(0.0),
            c: values.bytes() as f64 / arrays / f.max(1.0),
            copied: 0.0,
            has_workload: input.seconds.is_some(),
            other_referrers: false,
            grows: lengths
                .growth()
                .is_some_and(|growth| growth.per_day > 0.0 && growth.correlation >= 0.5),
            fan_out: [0.5, 0.9, 0.99, 1.0].map(|rank| lengths.at(rank).round() as u64),
        })
    }

    /// Returns the cost of each form that can be in bytes a second.
    fn costs(&self) -> Vec<(RelationForm, f64)> {
        let Numbers { r, a, i, up, w, u, f, p, c, copied, .. } = *self;
        let kept = SUBSET.min(f);
        let whole = p + f * c;
        let refer = r * p
            + r * a * (LOOKUP_BYTES + f * (c + ENTRY_BYTES))
            + i * (c + up * (LOOKUP_BYTES + p))
            + w * (c + ENTRY_BYTES);
        let copy = r * p
            + r * a * (LOOKUP_BYTES + f * (c + copied + ENTRY_BYTES))
            + i * (c + copied)
            + w * (c + copied + ENTRY_BYTES)
            + u * f * (LOOKUP_BYTES + c + copied);
        let subset = r * (p + kept * c)
            + r * a * NEEDS_ALL * (LOOKUP_BYTES + f * c)
            + i * (c + up * (LOOKUP_BYTES + p))
            + w * (c + ENTRY_BYTES + LOOKUP_BYTES + p + kept * c);
        let embed = r * whole + i * (LOOKUP_BYTES + whole) + w * whole;
        let mut costs = vec![(RelationForm::Embed, embed), (RelationForm::Refer, refer)];
        // With as few children the subset is all of them.
        if f > SUBSET && a > 0.0 {
            costs.push((RelationForm::Subset, subset));
        }
        if up > 0.0 {
            costs.push((RelationForm::ReferAndCopy, copy));
        }
        costs
    }

    fn forbidden(&self) -> Vec<&'static str> {
        let size = self.p + self.f_max * self.c;
        let mut forbidden = Vec::new();
        if size > EMBEDDED_MAX {
            forbidden.push("tooLarge");
        } else if size > EMBEDDED_SOFT_MAX {
            forbidden.push("large");
        }
        if self.other_referrers {
            forbidden.push("referredTo");
        }
        if self.grows && self.f_max >= 250.0 {
            forbidden.push("grows");
        }
        forbidden
    }

    fn decide_reference(&self, one: &Reference) -> Relation {
        let names = [&one.from, &one.path, &one.to, &one.field].map(String::as_str);
        self.decide(names, RelationForm::Refer)
    }

    fn decide_array(&self, name: &str, path: &str) -> Relation {
        self.decide([name, path, name, ""], RelationForm::Embed)
    }

    fn decide(&self, [from, path, to, field]: [&str; 4], present: RelationForm) -> Relation {
        let forbidden = self.forbidden();
        // Without requests on the two collections all forms cost nothing.
        let is_asked = self.has_workload && self.r + self.i + self.w + self.u > 0.0;
        let costs = if is_asked { self.costs() } else { Vec::new() };
        let allowed =
            costs.iter().filter(|(form, _)| *form != RelationForm::Embed || forbidden.is_empty());
        let best = allowed.min_by(|left, right| left.1.total_cmp(&right.1)).copied();
        let now = costs.iter().find(|(form, _)| *form == present).map(|(_, cost)| *cost);
        let is_allowed = present != RelationForm::Embed || forbidden.is_empty();
        let (best, is_tie) = match (best, now) {
            (Some((form, cost)), Some(now)) => (form, is_allowed && cost > now * (1.0 - TIE)),
            _ => (present, false),
        };
        Relation {
            from: from.to_owned(),
            path: path.to_owned(),
            to: to.to_owned(),
            field: field.to_owned(),
            fan_out: self.fan_out,
            present,
            best,
            is_tie: is_tie && best != present,
            joins: self.r * self.a + self.i * self.up,
            costs,
            inputs: self.inputs(),
            forbidden,
        }
    }

    fn inputs(&self) -> Vec<Evidence> {
        vec![
            ("parentReads", Value::PerSecond(self.r)),
            ("parentReadsWithChildren", Value::Share(self.a)),
            ("childReads", Value::PerSecond(self.i)),
            ("childReadsWithParent", Value::Share(self.up)),
            ("childWrites", Value::PerSecond(self.w)),
            ("parentWrites", Value::PerSecond(self.u)),
            ("childrenOfParent", Value::Count(self.f)),
            ("childrenMax", Value::Count(self.f_max)),
            ("parentBytes", Value::Bytes(self.p)),
            ("childBytes", Value::Bytes(self.c)),
        ]
    }
}
