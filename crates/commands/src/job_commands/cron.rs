//! The cron expressions of schedules. A library reads them; the sentence that says which field of a wrong
//! one is wrong, and why, is made here.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use quire_error::{Error, Result};

/// The fields of an expression with the least and the greatest value of each. The first may be left out.
const FIELDS: &[(&str, u32, u32)] = &[
    ("second", 0, 59),
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of the month", 1, 31),
    ("month", 1, 12),
    ("day of the week", 0, 7),
];

/// Parses an expression of five fields, or of six with the second first.
///
/// # Errors
/// 2 BadValue, with the expression, the field that is wrong, and what is wrong with it.
pub(super) fn parse_cron(pattern: &str) -> Result<Cron> {
    read(pattern).ok_or_else(|| {
        let text = format!("'{pattern}' is not a cron expression: {}", fault(pattern));
        Error::bad_value(text)
    })
}

fn read(pattern: &str) -> Option<Cron> {
    let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
    parser.parse(pattern).ok()
}

/// Returns what is wrong with an expression that cannot be read.
fn fault(pattern: &str) -> String {
    let parts: Vec<&str> = pattern.split_whitespace().collect();
    if pattern.contains('@') {
        let names = "@yearly, @annually, @monthly, @weekly, @daily and @hourly";
        return format!("the names of expressions are {names}");
    }
    let Some(left_out) = FIELDS.len().checked_sub(parts.len()).filter(|left_out| *left_out < 2)
    else {
        let names: Vec<&str> = FIELDS.iter().skip(1).map(|(name, ..)| *name).collect();
        let (count, names) = (parts.len(), names.join(", "));
        return format!("it has {count} fields, not five ({names}) or six, the second first");
    };
    let fields = FIELDS.iter().skip(left_out).zip(&parts).enumerate();
    let mut faults = fields.filter_map(|(at, (field, part))| {
        let others = (0..parts.len()).map(|other| if other == at { *part } else { "*" });
        let alone: Vec<&str> = others.collect();
        read(&alone.join(" ")).is_none().then(|| fault_of(*field, part))
    });
    faults.next().unwrap_or_else(|| "its fields exclude each other".to_owned())
}

/// Returns what is wrong with one field.
fn fault_of((name, least, greatest): (&str, u32, u32), part: &str) -> String {
    let beyond = numbers(part).find(|number| !(least..=greatest).contains(number));
    match beyond {
        Some(number) => {
            format!("the {name} '{part}' has {number}, which is not between {least} and {greatest}")
        }
        None => format!(
            "the {name} '{part}' is not *, or a value, a range, a list or a step of values from {least} to \
             {greatest}"
        ),
    }
}

/// Returns the numbers of a field that are values, without the widths of its steps.
fn numbers(part: &str) -> impl Iterator<Item = u32> {
    let values = part.split(',').filter_map(|item| item.split(['/', '#']).next());
    values.flat_map(|item| item.split('-')).filter_map(|number| number.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_the_expression_the_field_and_the_fault() {
        let form = "is not *, or a value, a range, a list or a step of values from";
        let names =
            "(minute, hour, day of the month, month, day of the week) or six, the second first";
        for (pattern, fault) in [
            ("61 * * * *", "the minute '61' has 61, which is not between 0 and 59".to_owned()),
            ("0 61 * * * *", "the minute '61' has 61, which is not between 0 and 59".to_owned()),
            ("* 1,22-25/2 * * *", "the hour '1,22-25/2' has 25, which is not between 0 and 23".to_owned()),
            ("0 0 0 * *", "the day of the month '0' has 0, which is not between 1 and 31".to_owned()),
            ("0 0 * * 8", "the day of the week '8' has 8, which is not between 0 and 7".to_owned()),
            ("*/0 * * * *", format!("the minute '*/0' {form} 0 to 59")),
            ("0 0 * JANUARY *", format!("the month 'JANUARY' {form} 1 to 12")),
            ("0 ? * * *", format!("the hour '?' {form} 0 to 23")),
            ("every day", format!("it has 2 fields, not five {names}")),
            ("", format!("it has 0 fields, not five {names}")),
            (
                "@fortnightly",
                "the names of expressions are @yearly, @annually, @monthly, @weekly, @daily and @hourly"
                    .to_owned(),
            ),
        ] {
            let error = parse_cron(pattern).expect_err(pattern);
            let expected = format!("'{pattern}' is not a cron expression: {fault}");
            assert_eq!(error.message(), expected);
        }
        for pattern in ["@daily", "*/15 * * * *", "30 0 3 * * MON-FRI", "0 0 L * *", "0 0 * jan 7"]
        {
            assert!(parse_cron(pattern).is_ok(), "{pattern}");
        }
    }
}
