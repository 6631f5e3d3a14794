//! `$year`, `$month`, `$week`, `$hour` and the other parts of a date, each in a time zone.

use super::arguments::{date, present, zone};
use super::moment::Moment;
use crate::context::{EvalContext, ParseContext};
use crate::expression::operator::{Arity, Call, Field, Fields, Operator};
use crate::expression::tree::{Expression, ExpressionNode};
use quire_document::Value;
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(in crate::expression) const OPERATORS: &[Operator] = &[
    component("$year").doc("The year of a date."),
    component("$month").doc("The month of a date, 1 to 12."),
    component("$dayOfMonth").doc("The day of the month of a date."),
    component("$dayOfWeek").doc("The day of the week of a date, 1 for Sunday."),
    component("$dayOfYear").doc("The day of the year of a date."),
    component("$hour").doc("The hour of a date."),
    component("$minute").doc("The minute of a date."),
    component("$second").doc("The second of a date."),
    component("$millisecond").doc("The millisecond of a date."),
    component("$week").doc("The week of the year of a date; weeks begin on Sundays."),
    component("$isoWeek").doc("The ISO 8601 week of a date.").since("3.4"),
    component("$isoWeekYear").doc("The year to which a date's ISO 8601 week belongs.").since("3.4"),
    component("$isoDayOfWeek").doc("The day of the week of a date, 1 for Monday.").since("3.4"),
];

const fn component(name: &'static str) -> Operator {
    let mut operator = Operator::form(name, parse);
    // The arity with which explain prints it.
    operator.arity = Arity::Named(&FIELDS);
    operator
}

const FIELDS: Fields = Fields {
    fields: &[Field::required("date", 40539), Field::optional("timezone")],
    not_object: 40536,
    unknown: 40535,
};

/// Parses a date, a list of one date, or `{date, timezone}`.
fn parse(operator: &'static Operator, value: Value<'_>, cx: &ParseContext) -> Result<Expression> {
    let name = operator.name;
    let absent = || Expression::from_node(ExpressionNode::Absent);
    let (date, timezone) = match value {
        Value::Array(list) => match (list.count(), list.get(0)) {
            (1, Some(only)) => (Expression::parse(only, cx)?, absent()),
            (given, _) => {
                let message = format!(
                    "{name} accepts exactly one argument if given an array, but was given {given}"
                );
                return Err(Error::location(40536, message));
            }
        },
        Value::Document(spec)
            if !spec.first().is_some_and(|first| first.key().starts_with('$')) =>
        {
            let (mut date, mut timezone) = (None, absent());
            for (field, value) in spec.fields() {
                match field {
                    "date" => date = Some(Expression::parse(value, cx)?),
                    "timezone" => timezone = Expression::parse(value, cx)?,
                    _ => {
                        let message = format!("unrecognized option to {name}: \"{field}\"");
                        return Err(Error::location(40535, message));
                    }
                }
            }
            let missing = || Error::location(40539, format!("missing 'date' argument to {name}"));
            (date.ok_or_else(missing)?, timezone)
        }
        value => (Expression::parse(value, cx)?, absent()),
    };
    let args = Box::new([date, timezone]);
    Ok(Expression::from_node(ExpressionNode::Call(Call { operator, args, run })))
}

fn run<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let value = present(call, 0, cx)?;
    let Some(value) = value else { return Ok(Some(Value::Null)) };
    let millis = date(value)?;
    let Some(zone) = zone(call, 1, cx)? else { return Ok(Some(Value::Null)) };
    let moment = Moment::new(millis, &zone);
    let civil = moment.civil;
    let number = match call.name() {
        "$year" => civil.year,
        "$month" => i64::from(civil.month),
        "$dayOfMonth" => i64::from(civil.day),
        "$dayOfWeek" => moment.weekday() + 1,
        "$dayOfYear" => moment.day_of_year(),
        "$hour" => i64::from(civil.hour),
        "$minute" => i64::from(civil.minute),
        "$second" => i64::from(civil.second),
        "$millisecond" => i64::from(civil.millisecond),
        "$week" => moment.week(),
        "$isoWeek" => moment.iso_week().1,
        "$isoWeekYear" => return Ok(Some(Value::Int64(moment.iso_week().0))),
        _ => moment.iso_weekday(),
    };
    Ok(Some(Value::Int32(number as i32)))
}
