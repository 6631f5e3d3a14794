//! Date operators. Read in this order: `zone` (time zones), `early` (their offsets before 1970), `moment` (a point in local time,
//! weeks), `arguments` (the common arguments of the operators), then `components` (`$year` and
//! similar operators), `parts` (`$dateToParts`, `$dateFromParts`), `text` (`$dateToString`),
//! `format` and `lenient` (`$dateFromString` with and without a format), `units`, `arithmetic`
//! (`$dateAdd`, `$dateDiff`, `$dateTrunc`).

mod arguments;
mod arithmetic;
mod components;
mod early;
mod format;
mod lenient;
mod moment;
mod parts;
mod read;
mod text;
mod units;
mod zone;

#[cfg(test)]
mod tests;

pub(crate) use arguments::millis;
pub(crate) use arithmetic::moved_date;
pub(crate) use lenient::parse_text;

#[cfg(test)]
pub(crate) use early::find as own_history;

pub(super) use arithmetic::OPERATORS as ARITHMETIC;
pub(super) use components::OPERATORS as COMPONENTS;
pub(super) use parts::OPERATORS as PARTS;
pub(super) use read::OPERATORS as READ;
pub(super) use text::OPERATORS as TEXT;
pub use units::Unit;
