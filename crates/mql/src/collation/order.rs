//! The order of strings by a collation, computed with ICU4X.

use super::key_thread::{OWN_THREAD_BYTES_MAX, on_own_thread};
use super::long_key::LongKey;
use super::marks::divided;
use super::spec::{Alternate, CaseFirst, CollationSpec, MaxVariable};
use crate::context::work::units;
use crate::context::work_or_unwind;
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::provider::{
    Baked, CollationDiacriticsV1, CollationJamoV1, CollationMetadata, CollationMetadataV1,
    CollationReorderingV1, CollationRootV1, CollationSpecialPrimariesV1, CollationTailoringV1,
};
use icu_collator::{CollationKeySink, Collator, CollatorBorrowed, CollatorPreferences};
use icu_locale_core::Locale;
use icu_normalizer::provider::{Baked as Normalizer, NormalizerNfdDataV1, NormalizerNfdTablesV1};
use icu_provider::{DataError, DataPayload, DataProvider, DataRequest, DataResponse};
use quire_error::{Error, Result};
use std::cmp::Ordering;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The longest string in bytes that is compared, or whose key is made, without checks of the
/// interrupt meanwhile. It takes 3 ms at most, for a letter of Tibetan with marks.
pub const SHORT_BYTES_MAX: usize = 2 << 10;

/// The longest string whose comparisons are not counted as work: those who compare many strings
/// count the comparisons.
const UNCOUNTED_BYTES_MAX: usize = 32;

/// The bytes of the first prefixes of keys that a comparison makes. Each step makes four times as
/// many, so that all prefixes together take a third more time than the last.
const FIRST_PREFIX_BYTES: usize = 64;

/// The bytes at the beginning of a string in which letters are looked for.
const BEGINNING_BYTES_MAX: usize = 64 << 10;

/// The letters that make at least one byte of a key: some pairs of letters have one weight together.
const LETTERS_FOR_BYTE: usize = 4;

/// Compares strings and makes sort keys. Both have the same order, on which indexes depend.
pub(super) struct Order {
    collator: Arc<Data>,
    /// True if comparisons compare sort keys.
    by_keys: bool,
}

/// The library's collator.
enum Data {
    /// Uses the library's data unchanged.
    Compiled(CollatorBorrowed<'static>),
    /// Compares accents from the end of the string, for a locale whose data does not have this.
    Backwards(Box<Collator>),
}

impl Order {
    /// Returns the order of a specification that was checked.
    pub fn new(spec: &CollationSpec) -> Result<Self> {
        let (preferences, options) = (preferences(spec)?, options(spec));
        let collator = if spec.backwards && &*spec.locale != "fr_CA" {
            let made = Collator::try_new_unstable(&BackwardsData, preferences, options);
            Data::Backwards(Box::new(made.map_err(no_data)?))
        } else {
            Data::Compiled(Collator::try_new(preferences, options).map_err(no_data)?)
        };
        Ok(Order { collator: Arc::new(collator), by_keys: compares_by_keys(spec) })
    }

    #[inline]
    pub fn compare(&self, a: &str, b: &str) -> Ordering {
        if a.len().max(b.len()) > UNCOUNTED_BYTES_MAX {
            return self.compare_counted(a, b);
        }
        self.compare_short(a, b)
    }

    /// Compares, and counts the work before it begins.
    fn compare_counted(&self, a: &str, b: &str) -> Ordering {
        if a == b {
            return Ordering::Equal;
        }
        let longer = a.len().max(b.len());
        work_or_unwind(comparison_units(longer));
        let (a, b) = (divided(a), divided(b));
        match longer > SHORT_BYTES_MAX {
            true => self.compare_long(&a, &b),
            false => self.compare_short(&a, &b),
        }
    }

    fn compare_short(&self, a: &str, b: &str) -> Ordering {
        if self.by_keys {
            return self.compare_keys(a, b);
        }
        match &*self.collator {
            Data::Compiled(collator) => collator.compare(a, b),
            Data::Backwards(collator) => collator.as_borrowed().compare(a, b),
        }
    }

    fn compare_keys(&self, a: &str, b: &str) -> Ordering {
        if a == b {
            return Ordering::Equal;
        }
        let (mut left, mut right) = (Vec::new(), Vec::new());
        self.short_key(a, &mut left);
        self.short_key(b, &mut right);
        left.cmp(&right)
    }

    /// Compares prefixes of the keys, which get longer until they differ. The interrupt is checked
    /// meanwhile.
    #[cold]
    pub(super) fn compare_long(&self, a: &str, b: &str) -> Ordering {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let mut bytes = FIRST_PREFIX_BYTES;
        loop {
            let left_ended = self.key_prefix(a, bytes, &mut left);
            let right_ended = self.key_prefix(b, bytes, &mut right);
            let order = left.cmp(&right);
            if order.is_ne() || (left_ended && right_ended) {
                return order;
            }
            bytes = bytes.saturating_mul(4);
        }
    }

    /// Replaces `key` by the first `bytes` bytes of a string's key. Returns true if it is the
    /// whole key.
    fn key_prefix(&self, text: &str, bytes: usize, key: &mut Vec<u8>) -> bool {
        key.clear();
        let ended = self.long_key(text, bytes, key);
        ended && key.len() <= bytes || {
            key.truncate(bytes);
            false
        }
    }

    pub fn sort_key(&self, text: &str, key: &mut Vec<u8>) {
        if text.len() <= UNCOUNTED_BYTES_MAX {
            return self.short_key(text, key);
        }
        work_or_unwind(comparison_units(text.len()));
        let text = divided(text);
        if text.len() > SHORT_BYTES_MAX {
            // It does not end early, since no key has `usize::MAX` bytes.
            self.long_key(&text, usize::MAX, key);
            return;
        }
        self.short_key(&text, key);
    }

    /// Appends `bytes` bytes or more of a string's key, with checks of the interrupt. Returns true if
    /// it is the whole key.
    fn long_key(&self, text: &str, bytes: usize, key: &mut Vec<u8>) -> bool {
        if text.len() > OWN_THREAD_BYTES_MAX
            && !begins_with_letters(text, bytes)
            && let Some((made, ended)) = self.key_from_thread(text, bytes)
        {
            key.extend_from_slice(&made);
            return ended;
        }
        self.collator.write_key(text, &mut LongKey::new(key, bytes)).is_ok()
    }

    fn key_from_thread(&self, text: &str, bytes: usize) -> Option<(Vec<u8>, bool)> {
        on_own_thread(|| {
            work_or_unwind(units(text.len()));
            let (collator, text) = (Arc::clone(&self.collator), text.to_owned());
            move |abandoned: &AtomicBool| {
                let mut key = Vec::new();
                let mut sink = LongKey::new(&mut key, bytes).until(abandoned);
                let ended = collator.write_key(&text, &mut sink).is_ok();
                (key, ended)
            }
        })
    }

    /// Appends the key of a string, without checks of the interrupt. Its sequences of marks are
    /// divided already.
    pub fn short_key(&self, text: &str, key: &mut Vec<u8>) {
        let written: Result<(), Infallible> = self.collator.write_key(text, key);
        match written {
            Ok(()) => {}
        }
    }
}

/// Returns the units of a comparison of strings of at most `bytes` bytes, or of making the key of one,
/// up to the first check within it. The time of both can grow with the square of the bytes.
fn comparison_units(bytes: usize) -> u32 {
    let bytes = u32::try_from(bytes.min(SHORT_BYTES_MAX)).unwrap_or(u32::MAX);
    bytes.saturating_mul(bytes) / 16
}

impl Data {
    fn write_key<S>(&self, text: &str, sink: &mut S) -> Result<S::Output, S::Error>
    where
        S: CollationKeySink,
        S::State: Default,
    {
        match self {
            Data::Compiled(collator) => collator.write_sort_key_to(text, sink),
            Data::Backwards(collator) => collator.as_borrowed().write_sort_key_to(text, sink),
        }
    }
}

/// Returns true if the first `bytes` bytes of a string's key come from its beginning, because that
/// has many letters: each has a primary weight, which is written at once.
fn begins_with_letters(text: &str, bytes: usize) -> bool {
    let beginning = text.as_bytes().iter().take(BEGINNING_BYTES_MAX);
    beginning.filter(|byte| byte.is_ascii_alphabetic()).count() / LETTERS_FOR_BYTE >= bytes
}

/// Returns true if the library's comparison may differ from the order of sort keys. A comparison
/// skips the common prefix of both strings, and then ignores its effect on the rest: combining
/// marks before the rest (identical level, accents from the end), and ignorable characters after a
/// shifted one. On the case level with upper case first, runs of more than 13 letters of one case
/// have keys that are out of order, as in ICU4C. MongoDB sorts and indexes by sort keys.
fn compares_by_keys(spec: &CollationSpec) -> bool {
    spec.strength == 5
        || spec.backwards
        || spec.alternate == Alternate::Shifted
        || (spec.case_level && spec.case_first == CaseFirst::Upper)
}

fn no_data(error: DataError) -> Error {
    Error::internal(format!("no collation data: {error}"))
}

/// Returns the locale in the spelling of BCP 47, with the specification's case and digit options.
fn preferences(spec: &CollationSpec) -> Result<CollatorPreferences> {
    let (name, variant) = match spec.locale.split_once("@collation=") {
        Some((name, variant)) => (name, Some(variant)),
        None => (&*spec.locale, None),
    };
    // The data of fr_CA equals that of fr except for `backwards`.
    let name = match name {
        "en_US_POSIX" => "en-US-posix".to_owned(),
        "fr_CA" if !spec.backwards => "fr".to_owned(),
        name => name.replace('_', "-"),
    };
    let tag = match variant {
        None => name,
        Some("traditional") => format!("{name}-u-co-trad"),
        Some("phonebook") => format!("{name}-u-co-phonebk"),
        Some("dictionary") => format!("{name}-u-co-dict"),
        Some(variant) => format!("{name}-u-co-{variant}"),
    };
    let locale: Locale =
        tag.parse().map_err(|_| Error::internal(format!("no locale has the tag {tag}")))?;
    let mut preferences = CollatorPreferences::from(&locale);
    preferences.case_first = Some(match spec.case_first {
        CaseFirst::Upper => CollationCaseFirst::Upper,
        CaseFirst::Lower => CollationCaseFirst::Lower,
        CaseFirst::Off => CollationCaseFirst::False,
    });
    preferences.numeric_ordering = Some(match spec.numeric_ordering {
        true => CollationNumericOrdering::True,
        false => CollationNumericOrdering::False,
    });
    Ok(preferences)
}

fn options(spec: &CollationSpec) -> CollatorOptions {
    let mut options = CollatorOptions::default();
    options.strength = Some(match spec.strength {
        1 => Strength::Primary,
        2 => Strength::Secondary,
        3 => Strength::Tertiary,
        4 => Strength::Quaternary,
        _ => Strength::Identical,
    });
    options.alternate_handling = Some(match spec.alternate {
        Alternate::NonIgnorable => AlternateHandling::NonIgnorable,
        Alternate::Shifted => AlternateHandling::Shifted,
    });
    options.max_variable = Some(match spec.max_variable {
        MaxVariable::Punct => icu_collator::options::MaxVariable::Punctuation,
        MaxVariable::Space => icu_collator::options::MaxVariable::Space,
    });
    options.case_level = Some(if spec.case_level { CaseLevel::On } else { CaseLevel::Off });
    options
}

/// The library's data with an additional bit. The library has no option for the direction of
/// accents; its data has it only for Canadian French.
struct BackwardsData;

/// The bit of a backward secondary level in the library's `CollationMetadata`.
const BACKWARD_SECONDARY: u32 = 1 << 7;

impl DataProvider<CollationMetadataV1> for BackwardsData {
    fn load(
        &self,
        request: DataRequest<'_>,
    ) -> Result<DataResponse<CollationMetadataV1>, DataError> {
        let response = DataProvider::<CollationMetadataV1>::load(&Baked, request)?;
        let bits = response.payload.get().bits | BACKWARD_SECONDARY;
        let payload = DataPayload::from_owned(CollationMetadata { bits });
        Ok(DataResponse { metadata: response.metadata, payload })
    }
}

macro_rules! unchanged {
    ($data:ident: $($marker:ty),*) => {
        $(impl DataProvider<$marker> for BackwardsData {
            fn load(&self, request: DataRequest<'_>) -> Result<DataResponse<$marker>, DataError> {
                DataProvider::<$marker>::load(&$data, request)
            }
        })*
    };
}
unchanged!(Baked: CollationSpecialPrimariesV1, CollationRootV1, CollationTailoringV1);
unchanged!(Baked: CollationDiacriticsV1, CollationJamoV1, CollationReorderingV1);
unchanged!(Normalizer: NormalizerNfdDataV1, NormalizerNfdTablesV1);
