//! Checks a history of transactions over lists, after Kingsbury and Alvaro, "Elle: Inferring
//! Isolation Anomalies from Experimental Observations" (VLDB 2020). Each value is appended once, so
//! the longest list that was read of a key shows the order of its versions, and so the dependencies
//! of transactions.

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub type Key = i32;
pub type Value = i64;

/// The outcome of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Committed,
    Aborted,
    /// The commit was sent and its outcome is unknown.
    Unknown,
}

/// The writes and reads of a transaction.
#[derive(Clone, Debug)]
pub enum Op {
    Append(Key, Value),
    Read(Key, Vec<Value>),
}

#[derive(Clone, Debug)]
pub struct Txn {
    pub status: Status,
    pub ops: Vec<Op>,
}

/// An anomaly that snapshot isolation forbids, with its transactions or values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// A cycle of writes.
    G0(usize),
    /// A value of an aborted transaction was read.
    G1a(Value),
    /// A value was read that its transaction replaced.
    G1b(Value),
    /// A cycle of writes and reads.
    G1c(usize),
    /// A cycle with one read of a value that the next transaction replaced: a lost update, a read
    /// skew.
    GSingle(usize, usize),
    /// Two reads of a key that no order of its versions explains.
    Incompatible(Key),
    /// A transaction did not see its own writes, or a key changed under it.
    Internal(usize),
    /// A part of a transaction's writes is missing, or all of one that was acknowledged.
    Lost(usize),
}

type Edges = Vec<BTreeSet<usize>>;

/// Returns the anomalies of a history whose last transaction has read every key.
pub fn anomalies(history: &[Txn]) -> BTreeSet<Anomaly> {
    let mut found = BTreeSet::new();
    let orders = orders(history, &mut found);
    let mut writer: HashMap<Value, usize> = HashMap::new();
    for (number, txn) in history.iter().enumerate() {
        for op in &txn.ops {
            if let Op::Append(_, value) = op {
                assert_eq!(writer.insert(*value, number), None, "{value} was appended twice");
            }
        }
    }
    let visible: BTreeSet<Value> = orders.values().flatten().copied().collect();
    for value in &visible {
        let is_aborted = |writer: &usize| history[*writer].status == Status::Aborted;
        if writer.get(value).is_none_or(is_aborted) {
            found.insert(Anomaly::G1a(*value));
        }
    }
    for (number, txn) in history.iter().enumerate() {
        let appended = txn.ops.iter().filter_map(|op| match op {
            Op::Append(_, value) => Some(visible.contains(value)),
            Op::Read(..) => None,
        });
        let seen: BTreeSet<bool> = appended.collect();
        if seen.len() > 1 || (txn.status == Status::Committed && seen.contains(&false)) {
            found.insert(Anomaly::Lost(number));
        }
    }
    let (writes, reads, anti) = dependencies(history, &orders, &writer, &mut found);
    found.extend(cycle(&writes).map(Anomaly::G0));
    let both: Edges = writes.iter().zip(&reads).map(|(a, b)| a | b).collect();
    found.extend(cycle(&both).map(Anomaly::G1c));
    for (from, targets) in anti.iter().enumerate() {
        for to in targets.iter().filter(|to| reaches(&both, **to, from)) {
            found.insert(Anomaly::GSingle(from, *to));
        }
    }
    found
}

/// Returns true if a transaction's reads are checked.
fn counts(txn: &Txn) -> bool {
    txn.status == Status::Committed
}

/// Returns the order of each key's versions.
fn orders(history: &[Txn], found: &mut BTreeSet<Anomaly>) -> BTreeMap<Key, Vec<Value>> {
    let mut orders: BTreeMap<Key, Vec<Value>> = BTreeMap::new();
    for txn in history.iter().filter(|txn| counts(txn)) {
        for op in &txn.ops {
            let Op::Read(key, list) = op else { continue };
            let order = orders.entry(*key).or_default();
            let common = order.len().min(list.len());
            if order[..common] != list[..common] {
                found.insert(Anomaly::Incompatible(*key));
            }
            if list.len() > order.len() {
                order.clone_from(list);
            }
        }
    }
    orders
}

/// Returns the dependencies: writes after writes, reads of writes, and writes that replaced a read
/// value.
fn dependencies(
    history: &[Txn],
    orders: &BTreeMap<Key, Vec<Value>>,
    writer: &HashMap<Value, usize>,
    found: &mut BTreeSet<Anomaly>,
) -> (Edges, Edges, Edges) {
    let none = || vec![BTreeSet::new(); history.len()];
    let (mut writes, mut reads, mut anti) = (none(), none(), none());
    let link = |edges: &mut Edges, from: usize, to: usize| {
        if from != to {
            edges[from].insert(to);
        }
    };
    let of = |value: Option<&Value>| value.and_then(|value| writer.get(value)).copied();
    for order in orders.values() {
        for pair in order.windows(2) {
            if let (Some(from), Some(to)) = (of(pair.first()), of(pair.last())) {
                link(&mut writes, from, to);
            }
        }
    }
    for (number, txn) in history.iter().enumerate().filter(|(_, txn)| counts(txn)) {
        let mut own: BTreeMap<Key, Vec<Value>> = BTreeMap::new();
        let mut first: BTreeMap<Key, &[Value]> = BTreeMap::new();
        for op in &txn.ops {
            let (key, list) = match op {
                Op::Append(key, value) => {
                    own.entry(*key).or_default().push(*value);
                    continue;
                }
                Op::Read(key, list) => (key, list),
            };
            let mine = own.get(key).map_or(&[][..], Vec::as_slice);
            let Some(external) = list.strip_suffix(mine) else {
                found.insert(Anomaly::Internal(number));
                continue;
            };
            if *first.entry(*key).or_insert(external) != external {
                found.insert(Anomaly::Internal(number));
            }
            let order = orders.get(key).map_or(&[][..], Vec::as_slice);
            let (last, next) = (of(external.last()), of(order.get(external.len())));
            if let Some(last) = last {
                link(&mut reads, last, number);
                if last != number && next == Some(last) {
                    found.extend(external.last().copied().map(Anomaly::G1b));
                }
            }
            if let Some(next) = next {
                link(&mut anti, number, next);
            }
        }
    }
    (writes, reads, anti)
}

/// Returns a transaction on a cycle.
fn cycle(edges: &Edges) -> Option<usize> {
    let mut incoming = vec![0; edges.len()];
    edges.iter().flatten().for_each(|to| incoming[*to] += 1);
    let mut free: Vec<usize> = (0..edges.len()).filter(|number| incoming[*number] == 0).collect();
    while let Some(number) = free.pop() {
        for to in &edges[number] {
            incoming[*to] -= 1;
            if incoming[*to] == 0 {
                free.push(*to);
            }
        }
    }
    // The remaining transactions are on a cycle or after one.
    (0..edges.len()).find(|number| incoming[*number] > 0 && reaches(edges, *number, *number))
}

/// Returns true if edges lead from one transaction to another.
fn reaches(edges: &Edges, from: usize, to: usize) -> bool {
    let (mut seen, mut open) = (vec![false; edges.len()], vec![from]);
    while let Some(number) = open.pop() {
        for next in &edges[number] {
            if *next == to {
                return true;
            }
            if !std::mem::replace(&mut seen[*next], true) {
                open.push(*next);
            }
        }
    }
    false
}

/// A register as a list: a write appends to the value that it replaced. Two writes that replaced
/// the same value are detected by their reads: no list explains the second order.
#[derive(Default)]
pub struct Registers(HashMap<Value, (Key, Option<Value>)>);

impl Registers {
    /// Notes that a write replaced a value.
    pub fn wrote(&mut self, key: Key, value: Value, before: Option<Value>) {
        self.0.insert(value, (key, before));
    }

    /// Returns the list that ends with a value.
    pub fn list(&self, value: Option<Value>) -> Vec<Value> {
        let (mut list, mut at) = (Vec::new(), value);
        while let Some(value) = at {
            list.push(value);
            at = self.0.get(&value).and_then(|(_, before)| *before);
        }
        list.reverse();
        list
    }
}

fn txn(status: Status, ops: &[Op]) -> Txn {
    Txn { status, ops: ops.to_vec() }
}

fn committed(ops: &[Op]) -> Txn {
    txn(Status::Committed, ops)
}

fn found(history: &[Txn]) -> Vec<Anomaly> {
    anomalies(history).into_iter().collect()
}

/// The checker must find each anomaly.
#[test]
fn each_anomaly_is_found() {
    use Op::{Append as A, Read as R};
    let last = |x: &[Value], y: &[Value]| committed(&[R(1, x.to_vec()), R(2, y.to_vec())]);
    let serial = [committed(&[A(1, 1)]), committed(&[R(1, vec![1]), A(1, 2)]), last(&[1, 2], &[])];
    assert_eq!(found(&serial), []);
    let writes =
        [committed(&[A(1, 1), A(2, 3)]), committed(&[A(1, 2), A(2, 4)]), last(&[1, 2], &[4, 3])];
    assert!(found(&writes).contains(&Anomaly::G0(0)));
    let aborted = [txn(Status::Aborted, &[A(1, 1)]), last(&[1], &[])];
    assert_eq!(found(&aborted), [Anomaly::G1a(1)]);
    let middle = [committed(&[A(1, 1), A(1, 2)]), committed(&[R(1, vec![1])]), last(&[1, 2], &[])];
    assert!(found(&middle).contains(&Anomaly::G1b(1)));
    let circle = [
        committed(&[A(1, 1), R(2, vec![2])]),
        committed(&[A(2, 2), R(1, vec![1])]),
        last(&[1], &[2]),
    ];
    assert!(found(&circle).contains(&Anomaly::G1c(0)));
    let lost = [
        committed(&[R(1, vec![]), A(1, 1)]),
        committed(&[R(1, vec![]), A(1, 2)]),
        last(&[1, 2], &[]),
    ];
    assert_eq!(found(&lost), [Anomaly::GSingle(1, 0)]);
    let skew = [
        committed(&[A(1, 1), A(2, 2)]),
        committed(&[R(1, vec![]), R(2, vec![2])]),
        last(&[1], &[2]),
    ];
    assert_eq!(found(&skew), [Anomaly::GSingle(1, 0)]);
    let half = [txn(Status::Unknown, &[A(1, 1), A(2, 2)]), last(&[1], &[])];
    assert_eq!(found(&half), [Anomaly::Lost(0)]);
    let gone = [committed(&[A(1, 1)]), last(&[], &[])];
    assert_eq!(found(&gone), [Anomaly::Lost(0)]);
    let blind = [committed(&[A(1, 1), R(1, vec![])]), last(&[1], &[])];
    assert!(found(&blind).contains(&Anomaly::Internal(0)));
    let split = [
        committed(&[A(1, 1)]),
        committed(&[A(1, 2)]),
        committed(&[R(1, vec![2])]),
        last(&[1, 2], &[]),
    ];
    assert!(found(&split).contains(&Anomaly::Incompatible(1)));
}

/// Snapshot isolation allows write skew: each transaction reads what the other writes.
#[test]
fn write_skew_is_no_anomaly_of_snapshot_isolation() {
    use Op::{Append as A, Read as R};
    let skew = [
        committed(&[R(1, vec![]), R(2, vec![]), A(1, 1)]),
        committed(&[R(1, vec![]), R(2, vec![]), A(2, 2)]),
        committed(&[R(1, vec![1]), R(2, vec![2])]),
    ];
    assert_eq!(found(&skew), []);
}
