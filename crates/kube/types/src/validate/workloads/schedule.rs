//! Cron schedules: five fields or a name.

/// The fields and their ranges. Months and days of the week also have names.
const FIELDS: [(u32, u32, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

/// Says what is wrong.
pub fn check(schedule: &str) -> Result<(), String> {
    if let Some(name) = schedule.strip_prefix('@') {
        let known =
            ["yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly"].contains(&name);
        let every = name
            .strip_prefix("every ")
            .is_some_and(|period| period.starts_with(|c: char| c.is_ascii_digit()));
        return if known || every { Ok(()) } else { Err(format!("unrecognized descriptor: {schedule}")) };
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    fields
        .iter()
        .zip(FIELDS)
        .try_for_each(|(field, range)| field.split(',').try_for_each(|part| check_part(part, range)))
}

fn check_part(part: &str, (least, most, names): (u32, u32, &[&str])) -> Result<(), String> {
    let mut steps = part.split('/');
    let (range, step, extra) = (steps.next().unwrap_or_default(), steps.next(), steps.next());
    if extra.is_some() {
        return Err(format!("too many slashes: {part}"));
    }
    let number = |text: &str| {
        let named = names.iter().position(|name| name.eq_ignore_ascii_case(text)).map(|at| at as u32 + least);
        let parsed = || {
            text.parse::<u32>().map_err(|_| {
                format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")
            })
        };
        named.map_or_else(parsed, Ok)
    };
    let (start, end) = match range.split_once('-') {
        _ if range == "*" || range == "?" => (least, most),
        None => {
            let at = number(range)?;
            (at, if step.is_some() { most } else { at })
        }
        Some((_, end)) if end.contains('-') => return Err(format!("too many hyphens: {part}")),
        Some((start, end)) => (number(start)?, number(end)?),
    };
    if let Some(step) = step {
        let step = step.parse::<u32>().map_err(|_| {
            format!("failed to parse int from {step}: strconv.Atoi: parsing {step:?}: invalid syntax")
        })?;
        if step == 0 {
            return Err(format!("step of range should be a positive number: {part}"));
        }
    }
    if start < least {
        return Err(format!("beginning of range ({start}) below minimum ({least}): {part}"));
    }
    if end > most {
        return Err(format!("end of range ({end}) above maximum ({most}): {part}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {part}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_told_from_other_texts() {
        for good in ["* * * * *", "*/5 1-3 1,15 jan-mar MON", "@daily", "0 0 * * 0", "@every 1h"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("x", "expected exactly 5 fields, found 1: [x]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("@x", "unrecognized descriptor: @x"),
        ] {
            assert_eq!(check(bad), Err(why.to_owned()), "{bad}");
        }
    }
}
