//! What a collation says: its options, complete, and how MongoDB prints them.

use quire_document::DocBuf;

/// The version of ICU that MongoDB prints and demands. Stored keys carry the version of this
/// server's own library in the catalog's format, not this one.
pub const VERSION: &str = "57.1";

/// Whether upper or lower case comes first on the tertiary level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum CaseFirst {
    Upper,
    Lower,
    Off,
}

/// Whether spaces and punctuation are characters like others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Alternate {
    NonIgnorable,
    Shifted,
}

/// What `Alternate::Shifted` applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MaxVariable {
    Punct,
    Space,
}

/// The options of a collation with the defaults of its locale filled in. Two collations with equal
/// options order strings alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CollationSpec {
    /// The locale, with its variant if it has one: `de@collation=phonebook`.
    pub locale: Box<str>,
    /// Case decides between the secondary and the tertiary level.
    pub case_level: bool,
    /// Which case comes first.
    pub case_first: CaseFirst,
    /// The levels that are compared, 1 to 5.
    pub strength: u8,
    /// Digits compare as numbers.
    pub numeric_ordering: bool,
    /// Whether spaces and punctuation count.
    pub alternate: Alternate,
    /// What `alternate` applies to.
    pub max_variable: MaxVariable,
    /// Shown back; strings are always compared as if they were normalized.
    pub normalization: bool,
    /// Accents compare from the end of the string.
    pub backwards: bool,
}

impl CaseFirst {
    /// The spelling in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            CaseFirst::Upper => "upper",
            CaseFirst::Lower => "lower",
            CaseFirst::Off => "off",
        }
    }
}

impl Alternate {
    /// The spelling in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Alternate::NonIgnorable => "non-ignorable",
            Alternate::Shifted => "shifted",
        }
    }
}

impl MaxVariable {
    /// The spelling in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            MaxVariable::Punct => "punct",
            MaxVariable::Space => "space",
        }
    }
}

impl CollationSpec {
    /// Returns the document that `listCollections`, `listIndexes` and `explain` show.
    pub fn to_document(&self) -> DocBuf {
        DocBuf::build(|writer| {
            writer
                .append("locale", &*self.locale)
                .append("caseLevel", self.case_level)
                .append("caseFirst", self.case_first.as_str())
                .append("strength", i32::from(self.strength))
                .append("numericOrdering", self.numeric_ordering)
                .append("alternate", self.alternate.as_str())
                .append("maxVariable", self.max_variable.as_str())
                .append("normalization", self.normalization)
                .append("backwards", self.backwards)
                .append("version", VERSION);
        })
    }
}
