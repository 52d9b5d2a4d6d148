//! A whole number and its unit, as in `512MiB` or `30 s`: the form that sizes and times share.

/// Splits a text in its number and its unit, which may be empty. `None` where it does not start with digits.
///
/// More digits than fit give the largest number, which no 64-bit quantity can hold: too large is not malformed.
pub(crate) fn split(text: &str) -> Option<(u128, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    (!digits.is_empty()).then(|| (digits.parse().unwrap_or(u128::MAX), unit.trim_start()))
}
