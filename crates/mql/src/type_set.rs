//! Sets of BSON types, as `$type` and `$jsonSchema` name them.

use quire_document::{ArrayWriter, Type, Value};

/// A set of BSON types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeSet {
    numbers: bool,
    types: Vec<Type>,
}

/// All types, in ascending order of their numbers.
const TYPES: [Type; 21] = [
    Type::MinKey,
    Type::Double,
    Type::String,
    Type::Document,
    Type::Array,
    Type::Binary,
    Type::Undefined,
    Type::ObjectId,
    Type::Bool,
    Type::Date,
    Type::Null,
    Type::Regex,
    Type::DbPointer,
    Type::Code,
    Type::Symbol,
    Type::CodeWithScope,
    Type::Int32,
    Type::Timestamp,
    Type::Int64,
    Type::Decimal,
    Type::MaxKey,
];

/// Returns the type with this alias.
pub fn type_by_alias(alias: &str) -> Option<Type> {
    TYPES.into_iter().find(|kind| kind.alias() == alias)
}

/// The type with this number.
pub(crate) fn type_by_number(number: i64) -> Option<Type> {
    TYPES.into_iter().find(|kind| i64::from(kind.number()) == number)
}

impl TypeSet {
    /// Returns the set of one type.
    pub fn one(kind: Type) -> TypeSet {
        TypeSet { numbers: false, types: vec![kind] }
    }

    /// Returns the set of the four numeric types.
    pub fn numbers() -> TypeSet {
        TypeSet { numbers: true, types: Vec::new() }
    }

    /// Returns true if the type is in the set.
    #[inline]
    pub fn contains(&self, kind: Type) -> bool {
        (self.numbers && kind.is_number()) || self.types.contains(&kind)
    }

    /// Returns true if the set has the alias "number".
    pub fn has_numbers(&self) -> bool {
        self.numbers
    }

    /// Returns the types in ascending order of their numbers, without those that only "number"
    /// adds.
    pub fn types(&self) -> &[Type] {
        &self.types
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        !self.numbers && self.types.is_empty()
    }

    /// Returns the type of a set with only one.
    pub fn single(&self) -> Option<Type> {
        match (self.numbers, self.types.as_slice()) {
            (false, [only]) => Some(*only),
            _ => None,
        }
    }

    /// Adds the type or types of an alias. Returns false if the alias is unknown.
    pub fn insert_alias(&mut self, alias: &str) -> bool {
        match type_by_alias(alias) {
            _ if alias == "number" => self.numbers = true,
            Some(kind) => self.insert(kind),
            None => return false,
        }
        true
    }

    /// Adds the type or types that a `$type` names, by alias or by number. Returns false if there is
    /// no such type.
    pub(crate) fn insert_named(&mut self, named: Value<'_>) -> bool {
        let number = || named.as_number()?.exact_i64().and_then(type_by_number);
        match (named, number()) {
            (Value::String(alias), _) => return self.insert_alias(alias),
            (_, Some(kind)) => self.insert(kind),
            (_, None) => return false,
        }
        true
    }

    /// Adds a type.
    pub fn insert(&mut self, kind: Type) {
        if !self.types.contains(&kind) {
            self.types.push(kind);
            self.types.sort_by_key(|kind| kind.number());
        }
    }

    /// Writes the set as mongod shows it: "number" first, then the types' numbers.
    pub fn write(&self, writer: &mut ArrayWriter<'_>) {
        if self.numbers {
            writer.push("number");
        }
        for kind in &self.types {
            writer.push(kind.number());
        }
    }
}
