//! The stop words of each language: words that are neither indexed nor searched.
//!
//! The English list is the one of the Snowball project (<https://snowballstem.org>, BSD licence). Those of
//! the other languages are in the crate `stop-words`, from the same project by way of PostgreSQL and
//! NLTK; its English list has other words.

use foldhash::fast::RandomState;
use std::collections::HashSet;
use std::sync::OnceLock;

/// The stop words of English.
const ENGLISH: &str = "i me my myself we our ours ourselves you your yours yourself yourselves he him his himself \
    she her hers herself it its itself they them their theirs themselves what which who whom \
    this that these those am is are was were be been being have has had having do does did doing \
    would should could ought i'm you're he's she's it's we're they're i've you've we've they've \
    i'd you'd he'd she'd we'd they'd i'll you'll he'll she'll we'll they'll isn't aren't wasn't \
    weren't hasn't haven't hadn't doesn't don't didn't won't wouldn't shan't shouldn't can't \
    cannot couldn't mustn't let's that's who's what's here's there's when's where's why's how's \
    a an the and but if or because as until while of at by for with about against between into \
    through during before after above below to from up down in out on off over under again \
    further then once here there when where why how all any both each few more most other some \
    such no nor not only own same so than too very";

/// Returns the stop words of a language, by its code.
pub(super) fn list(code: &str) -> impl Iterator<Item = &'static str> + use<> {
    let (english, other) = match code {
        "en" => (ENGLISH, None),
        // The crate has the code of the whole language and not of its written form.
        "nb" => ("", stop_words::lookup("no")),
        code => ("", stop_words::lookup(code)),
    };
    english.split(' ').filter(|word| !word.is_empty()).chain(other.into_iter().flatten().copied())
}

/// The stop words of one language.
type Words = HashSet<&'static str, RandomState>;

/// The codes of the languages that have stop words.
const CODES: [&str; 15] =
    ["da", "nl", "en", "fi", "fr", "de", "hu", "it", "nb", "pt", "ro", "ru", "es", "sv", "tr"];

/// Returns true for a stop word of a language, by its code. The word is in lower case.
pub(super) fn contains(code: &str, word: &str) -> bool {
    static ALL: [OnceLock<Words>; CODES.len()] = [const { OnceLock::new() }; CODES.len()];
    let at = CODES.iter().position(|known| *known == code);
    let words = at.map(|at| ALL[at].get_or_init(|| list(code).collect()));
    words.is_some_and(|words| words.contains(word))
}
