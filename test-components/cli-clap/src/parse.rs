//! Values that clap has no parser for.

use std::net::IpAddr;

use serde_json::Value;

/// `KEY=VALUE`; the value may be empty and may contain further `=`.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("must be KEY=VALUE".to_owned()),
    }
}

/// A duration such as `1h30m` or `250ms`, in milliseconds.
pub fn milliseconds(text: &str) -> Result<u64, String> {
    let wrong = || "must be a duration such as 90s or 1h30m".to_owned();
    let mut total: u64 = 0;
    let mut rest = text;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, after) = rest.split_at(digits);
        let unit_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let scale = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(wrong()),
        };
        let part = number.parse::<u64>().ok().and_then(|number| number.checked_mul(scale));
        total = part.and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        if after.is_empty() {
            return Ok(total);
        }
        rest = after;
    }
}

/// A network such as `10.0.0.0/8`, as it was written.
pub fn network(text: &str) -> Result<String, String> {
    let wrong = || "must be a network such as 10.0.0.0/8".to_owned();
    let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    match bits.parse::<u8>() {
        Ok(bits) if bits <= most => Ok(text.to_owned()),
        _ => Err(wrong()),
    }
}

/// Any JSON.
pub fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}
