//! The complete options of a collation, and their representation in documents.

use quire_document::DocBuf;

/// The version of ICU that MongoDB shows and requires. It is not the version of this server's
/// library, which is stored in the catalog with the keys.
pub const VERSION: &str = "57.1";

/// Whether upper or lower case comes first on the tertiary level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum CaseFirst {
    Upper,
    Lower,
    Off,
}

/// Whether spaces and punctuation are compared like other characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Alternate {
    NonIgnorable,
    Shifted,
}

/// The characters to which `Alternate::Shifted` applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MaxVariable {
    Punct,
    Space,
}

/// The options of a collation, with the defaults of its locale. Two collations with equal options
/// order strings in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CollationSpec {
    /// The locale, with its variant if it has one: `de@collation=phonebook`.
    pub locale: Box<str>,
    /// True if a separate case level comes between the secondary and the tertiary level.
    pub case_level: bool,
    /// Which case comes first.
    pub case_first: CaseFirst,
    /// The number of levels that are compared, 1 to 5.
    pub strength: u8,
    /// True if digits are compared as numbers.
    pub numeric_ordering: bool,
    /// Whether spaces and punctuation are compared.
    pub alternate: Alternate,
    /// The characters to which `alternate` applies.
    pub max_variable: MaxVariable,
    /// Shown in replies only: strings are always compared as if they were normalized.
    pub normalization: bool,
    /// True if accents are compared from the end of the string.
    pub backwards: bool,
}

impl CaseFirst {
    /// Returns the spelling in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            CaseFirst::Upper => "upper",
            CaseFirst::Lower => "lower",
            CaseFirst::Off => "off",
        }
    }
}

impl Alternate {
    /// Returns the spelling in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Alternate::NonIgnorable => "non-ignorable",
            Alternate::Shifted => "shifted",
        }
    }
}

impl MaxVariable {
    /// Returns the spelling in documents.
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
