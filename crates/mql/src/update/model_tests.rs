//! An update on BSON bytes gives the result of a simple update of a tree of values, and its
//! description contains everything that it changed.

use super::{ChangedPath, PathStep, Update, UpdateDescription, UpdateSpec, describe, path};
use crate::context::{EvalContext, ParseContext, Shared};
use bumpalo::Bump;
use quire_document::literal::print;
use quire_document::testing::Generator;
use quire_document::{ArrayWriter, Doc, DocBuf, DocWriter, Value, ValueBuf};

#[derive(Clone, Debug)]
enum Tree {
    Doc(Vec<(String, Tree)>),
    Array(Vec<Tree>),
    Other(ValueBuf),
}

impl Tree {
    fn of(value: Value<'_>) -> Tree {
        match value {
            Value::Document(doc) => {
                let fields = doc.fields().map(|(name, value)| (name.to_owned(), Tree::of(value)));
                Tree::Doc(fields.collect())
            }
            Value::Array(array) => Tree::Array(array.iter().map(Tree::of).collect()),
            other => Tree::Other(ValueBuf::new(other)),
        }
    }

    fn write_field(&self, name: &str, writer: &mut DocWriter<'_>) {
        match self {
            Tree::Doc(fields) => write_fields(fields, &mut writer.document(name)),
            Tree::Array(items) => write_items(items, &mut writer.array(name)),
            Tree::Other(value) => {
                writer.append(name, value);
            }
        }
    }

    /// Returns the place of a path, which is created if `create` is true; `None` if it does not
    /// exist.
    fn place(&mut self, parts: &[&str], create: bool) -> Result<Option<&mut Tree>, ()> {
        let Some((first, rest)) = parts.split_first() else { return Ok(Some(self)) };
        let empty =
            if rest.is_empty() { Tree::Other(ValueBuf::new("new")) } else { Tree::Doc(vec![]) };
        match self {
            Tree::Doc(fields) => {
                let at = match fields.iter().position(|(name, _)| name == first) {
                    Some(at) => at,
                    None if !create => return Ok(None),
                    None => {
                        fields.push((first.to_string(), empty));
                        fields.len() - 1
                    }
                };
                fields[at].1.place(rest, create)
            }
            Tree::Array(items) => {
                let Some(at) = path::index(first).map(|at| at as usize) else {
                    return if create { Err(()) } else { Ok(None) };
                };
                if at >= items.len() {
                    if !create {
                        return Ok(None);
                    }
                    items.resize(at, Tree::Other(ValueBuf::new(Value::Null)));
                    items.push(empty);
                }
                items[at].place(rest, create)
            }
            Tree::Other(_) => {
                if create {
                    Err(())
                } else {
                    Ok(None)
                }
            }
        }
    }

    /// Compares the value with another one.
    fn order(&self, other: &ValueBuf) -> std::cmp::Ordering {
        let own = DocBuf::build(|writer| self.write_field("", writer));
        quire_document::compare(own.get("").unwrap_or(Value::Null), other.as_value(), None)
    }

    /// Returns the text of the document with the fields of each document sorted by name.
    fn sorted(&self) -> String {
        fn sort(tree: &mut Tree) {
            match tree {
                Tree::Doc(fields) => {
                    fields.sort_by(|one, other| one.0.cmp(&other.0));
                    fields.iter_mut().for_each(|(_, tree)| sort(tree));
                }
                Tree::Array(items) => items.iter_mut().for_each(sort),
                Tree::Other(_) => {}
            }
        }
        let mut sorted = self.clone();
        sort(&mut sorted);
        print(DocBuf::build(|writer| sorted.write_field("", writer)).as_doc())
    }

    /// Calls `change` with the parent of a path and the path's last step.
    fn at(&mut self, path: &ChangedPath, change: impl FnOnce(&mut Tree, &PathStep)) {
        let (last, inner) = path.steps.split_last().unwrap();
        let mut tree = self;
        for step in inner {
            tree = match (tree, step) {
                (Tree::Doc(fields), PathStep::Field(name)) => {
                    &mut fields.iter_mut().find(|(known, _)| known == name).unwrap().1
                }
                (Tree::Array(items), PathStep::Index(at)) => &mut items[*at as usize],
                (tree, step) => panic!("{step:?} of {tree:?}"),
            };
        }
        change(tree, last);
    }

    /// Applies a description to the document.
    fn apply(&mut self, description: &UpdateDescription) {
        for (path, value) in &description.updated {
            let value = Tree::of(value.as_value());
            self.at(path, |parent, step| match (parent, step) {
                (Tree::Doc(fields), PathStep::Field(name)) => {
                    fields.retain(|(known, _)| known != name);
                    fields.push((name.clone(), value));
                }
                (Tree::Array(items), PathStep::Index(at)) => {
                    items.splice((*at as usize)..items.len().min(*at as usize + 1), [value]);
                }
                (parent, step) => panic!("{step:?} of {parent:?}"),
            });
        }
        for path in &description.removed {
            self.at(path, |parent, step| match (parent, step) {
                (Tree::Doc(fields), PathStep::Field(name)) => {
                    fields.retain(|(known, _)| known != name);
                }
                (parent, step) => panic!("{step:?} of {parent:?}"),
            });
        }
        for (path, length) in &description.truncated {
            self.at(path, |parent, step| match (parent, step) {
                (Tree::Doc(fields), PathStep::Field(name)) => {
                    let field = fields.iter_mut().find(|(known, _)| known == name);
                    let Some((_, Tree::Array(items))) = field else { panic!("no array") };
                    items.truncate(*length as usize);
                }
                (Tree::Array(arrays), PathStep::Index(at)) => {
                    let Tree::Array(items) = &mut arrays[*at as usize] else { panic!("no array") };
                    items.truncate(*length as usize);
                }
                (parent, step) => panic!("{step:?} of {parent:?}"),
            });
        }
    }

    fn exists(&mut self, parts: &[&str]) -> bool {
        matches!(self.place(parts, false), Ok(Some(_)))
    }
}

fn write_fields(fields: &[(String, Tree)], writer: &mut DocWriter<'_>) {
    fields.iter().for_each(|(name, tree)| tree.write_field(name, writer));
}

fn write_items(items: &[Tree], writer: &mut ArrayWriter<'_>) {
    for item in items {
        match item {
            Tree::Doc(fields) => write_fields(fields, &mut writer.document()),
            Tree::Array(items) => write_items(items, &mut writer.array()),
            Tree::Other(value) => {
                writer.push(value);
            }
        }
    }
}

const OPERATORS: &[&str] =
    &["$set", "$unset", "$push", "$inc", "$addToSet", "$pull", "$pop", "$min", "$max"];

/// An operator on a path.
#[derive(Clone, Debug)]
struct Step {
    operator: &'static str,
    path: String,
    value: ValueBuf,
}

fn apply_step(tree: &mut Tree, step: &Step) -> Result<(), ()> {
    let parts: Vec<&str> = step.path.split('.').collect();
    let existed = tree.exists(&parts);
    match step.operator {
        "$unset" => {
            let Some((last, inner)) = parts.split_last() else { return Ok(()) };
            match tree.place(inner, false)? {
                Some(Tree::Doc(fields)) => fields.retain(|(name, _)| name != last),
                Some(Tree::Array(items)) => {
                    if let Some(item) = path::index(last).and_then(|at| items.get_mut(at as usize))
                    {
                        *item = Tree::Other(ValueBuf::new(Value::Null));
                    }
                }
                _ => {}
            }
            Ok(())
        }
        "$set" => {
            let place = tree.place(&parts, true)?.ok_or(())?;
            *place = Tree::of(step.value.as_value());
            Ok(())
        }
        "$push" => {
            let place = tree.place(&parts, true)?.ok_or(())?;
            if !existed {
                *place = Tree::Array(Vec::new());
            }
            let Tree::Array(items) = place else { return Err(()) };
            items.push(Tree::of(step.value.as_value()));
            Ok(())
        }
        "$addToSet" => {
            let place = tree.place(&parts, true)?.ok_or(())?;
            if !existed {
                *place = Tree::Array(Vec::new());
            }
            let Tree::Array(items) = place else { return Err(()) };
            if !items.iter().any(|item| item.order(&step.value).is_eq()) {
                items.push(Tree::of(step.value.as_value()));
            }
            Ok(())
        }
        // These operators create nothing, but it must be possible to create the path.
        "$pull" | "$pop" if !existed => tree.clone().place(&parts, true).map(|_| ()),
        "$pull" => {
            let Some(Tree::Array(items)) = tree.place(&parts, false)? else { return Err(()) };
            items.retain(|item| !item.order(&step.value).is_eq());
            Ok(())
        }
        "$pop" => {
            let Some(Tree::Array(items)) = tree.place(&parts, false)? else { return Err(()) };
            items.pop();
            Ok(())
        }
        "$min" | "$max" => {
            let place = tree.place(&parts, true)?.ok_or(())?;
            let order = place.order(&step.value);
            let wins = if step.operator == "$min" { order.is_gt() } else { order.is_lt() };
            if !existed || wins {
                *place = Tree::of(step.value.as_value());
            }
            Ok(())
        }
        _ => {
            let place = tree.place(&parts, true)?.ok_or(())?;
            let sum = match (existed, &*place) {
                (false, _) => 1,
                (true, Tree::Other(value)) => match value.as_value() {
                    Value::Int32(number) => number.checked_add(1).ok_or(())?,
                    _ => return Err(()),
                },
                _ => return Err(()),
            };
            *place = Tree::Other(ValueBuf::new(sum));
            Ok(())
        }
    }
}

fn value(random: &mut Generator, depth: u32) -> ValueBuf {
    match random.below(if depth == 0 { 2 } else { 6 }) {
        0 | 1 => ValueBuf::new(random.below(9) as i32),
        2 => ValueBuf::new("text"),
        3 => {
            let items: Vec<ValueBuf> =
                (0..random.below(3)).map(|_| value(random, depth - 1)).collect();
            items.iter().collect::<quire_document::ArrayBuf>().into()
        }
        _ => document(random, depth - 1).into(),
    }
}

fn document(random: &mut Generator, depth: u32) -> DocBuf {
    DocBuf::build(|writer| {
        for name in ["a", "b", "c", "1"] {
            if random.one_in(2) {
                writer.append(name, &value(random, depth));
            }
        }
    })
}

fn step(random: &mut Generator) -> Step {
    let operator = *random.pick(OPERATORS).unwrap();
    let names = ["a", "b", "c", "0", "1", "10"];
    let mut path = random.pick(&["a", "b", "c", "d", "1"]).unwrap().to_string();
    for _ in 0..random.below(3) {
        path = format!("{path}.{}", random.pick(&names).unwrap());
    }
    let value = match operator {
        "$inc" | "$pop" => ValueBuf::new(1),
        "$pull" => ValueBuf::new(random.below(9) as i32),
        _ => value(random, 1),
    };
    Step { operator, path, value }
}

/// The order in which mongod applies operators: by path, component by component.
fn order(left: &Step, right: &Step) -> std::cmp::Ordering {
    let (mut left, mut right) = (left.path.split('.'), right.path.split('.'));
    loop {
        match (left.next(), right.next()) {
            (Some(left), Some(right)) => match path::order(left, right) {
                std::cmp::Ordering::Equal => {}
                other => return other,
            },
            (left, right) => return left.is_some().cmp(&right.is_some()),
        }
    }
}

fn update_of(steps: &[Step]) -> DocBuf {
    DocBuf::build(|writer| {
        for operator in OPERATORS.iter().copied() {
            if !steps.iter().any(|step| step.operator == operator) {
                continue;
            }
            let mut inner = writer.document(operator);
            for step in steps.iter().filter(|step| step.operator == operator) {
                inner.append(&step.path, &step.value);
            }
        }
    })
}

#[test]
fn updates_of_bytes_are_updates_of_trees() {
    let mut random = Generator::new(20);
    let (arena, shared) = (Bump::new(), Shared::default());
    let (mut compared, mut failed) = (0, 0);
    for _ in 0..6_000 {
        let doc = document(&mut random, 3);
        let steps: Vec<Step> = (0..=random.below(4)).map(|_| step(&mut random)).collect();
        let update = update_of(&steps);
        let update = Value::Document(update.as_doc());
        let spec = UpdateSpec { update, array_filters: &[], multi: false };
        let Ok(compiled) = Update::parse(spec, &ParseContext::default()) else { continue };
        let cx = EvalContext::new(&arena, doc.as_doc(), &shared);
        let mut out = Vec::new();
        let outcome = compiled.apply(doc.as_doc(), None, &cx, &mut out);

        let mut tree = Tree::of(Value::Document(doc.as_doc()));
        let mut sorted = steps.clone();
        sorted.sort_by(order);
        let model = sorted.iter().try_for_each(|step| apply_step(&mut tree, step));
        let shown = || format!("{} on {}", print(update), print(doc.as_doc()));
        match (outcome, model) {
            (Ok(outcome), Ok(())) => {
                let wanted = DocBuf::build(|writer| {
                    let Tree::Doc(fields) = &tree else { return };
                    write_fields(fields, writer);
                });
                let found = Doc::from_valid_bytes(&out);
                assert_eq!(print(found), print(wanted.as_doc()), "{}", shown());
                assert_eq!(found.as_bytes(), wanted.as_bytes(), "{}", shown());
                assert!(outcome.changed || found.as_bytes() == doc.as_bytes(), "{}", shown());
                let described = compiled.describe(doc.as_doc(), found).unwrap();
                let different = describe::by_difference(doc.as_doc(), found);
                for description in [described, different] {
                    let mut rebuilt = Tree::of(Value::Document(doc.as_doc()));
                    rebuilt.apply(&description);
                    assert_eq!(rebuilt.sorted(), tree.sorted(), "{}: {description:?}", shown());
                }
                compared += 1;
            }
            (Err(_), Err(())) => failed += 1,
            (outcome, model) => panic!("{outcome:?} but {model:?}: {}", shown()),
        }
    }
    assert!(compared > 1500 && failed > 300, "{compared} compared, {failed} failed");
}
