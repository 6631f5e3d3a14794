//! The help texts of `quire serve`: the usual options on one screen, and all of them.

use super::options::{OPTIONS, ServeOption, Status, Takes};

/// The columns of a line: those of the narrowest terminal in use.
const WIDTH: usize = 80;
/// The column at which the sentences begin.
const SENTENCE: usize = 31;

/// Returns the usual options, on one screen.
pub(super) fn short(program: &str) -> String {
    let mut text = format!("Usage: {program} [OPTIONS]\n\nOptions:\n");
    for option in OPTIONS.iter().filter(|option| option.usual) {
        append(&mut text, option, option.summary);
    }
    text.push_str(&format!(
        "\n'{program} --help-all' shows the others; docs/options.md has a table of them."
    ));
    text
}

/// Returns every option: those that work, those without effect, and those that are refused, the
/// last two with their reason.
pub(super) fn all(program: &str) -> String {
    let mut text = format!("Usage: {program} [OPTIONS]\n\nOptions:\n");
    for option in OPTIONS.iter().filter(|option| option.status == Status::Works) {
        append(&mut text, option, option.summary);
    }
    text.push_str("\nAccepted without effect, because what they request is true anyway:\n");
    for option in OPTIONS {
        if let Status::NoEffect(why) = option.status {
            append(&mut text, option, &sentence(why));
        }
    }
    text.push_str("\nRefused:\n");
    for option in OPTIONS {
        if let Status::Refused(why) = option.status {
            append(&mut text, option, &sentence(why));
        }
    }
    text
}

/// Returns `text` with a capital letter at its beginning and a full stop at its end.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

/// Appends an option and its sentences, which are wrapped in a column of their own.
fn append(text: &mut String, option: &ServeOption, sentences: &str) {
    let letter = option.short.map_or_else(|| "   ".to_owned(), |letter| format!("-{letter},"));
    let value = match option.takes {
        Takes::Flag => String::new(),
        Takes::Text(value) | Takes::Number(value) | Takes::Pair(value) => format!(" {value}"),
    };
    let mut line = format!("  {letter} --{}{value}", option.name);
    if line.len() + 2 > SENTENCE {
        text.push_str(&line);
        text.push('\n');
        line.clear();
    }
    for word in sentences.split(' ') {
        if line.len() > SENTENCE && line.len() + 1 + word.len() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line.clear();
        }
        let gap = SENTENCE.saturating_sub(line.len()).max(1);
        line.extend(std::iter::repeat_n(' ', gap));
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_help_fits_on_one_screen_and_the_long_one_is_whole() {
        let short = short("quire serve");
        assert!(short.lines().count() <= 40, "{short}");
        assert!(short.lines().all(|line| line.len() <= WIDTH), "{short}");
        let all = all("quire serve");
        for option in OPTIONS {
            assert!(all.contains(&format!("--{}", option.name)), "{}", option.name);
        }
        assert!(all.contains("The storage engine has no such knob."), "{all}");
    }
}
