//! The variables of a URI template (RFC 6570).

/// Their names in the order of the template, each once.
pub(crate) fn variables(template: &str) -> Result<Vec<String>, String> {
    let mut variables: Vec<String> = Vec::new();
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        let unbalanced = || format!("`{template}` is no URI template: a brace has no partner");
        if literal.contains('}') {
            return Err(unbalanced());
        }
        let (expression, after) = after.split_once('}').ok_or_else(unbalanced)?;
        // An operator says how the values are joined, as in `{?page,size}`.
        let names = expression.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
        for name in names.split(',') {
            // `{path*}` takes a list, `{name:3}` the first characters.
            let name = name.trim_end_matches('*');
            let name = name.split_once(':').map_or(name, |(name, _)| name);
            if name.is_empty() {
                return Err(format!("`{template}` is no URI template: a variable has no name"));
            }
            if !variables.iter().any(|known| known == name) {
                variables.push(name.to_owned());
            }
        }
        rest = after;
    }
    if rest.contains('}') {
        return Err(format!("`{template}` is no URI template: a brace has no partner"));
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::variables;

    #[test]
    fn every_variable_is_named_once() {
        let cases: &[(&str, &[&str])] = &[
            ("file:///logs", &[]),
            ("file:///{path}", &["path"]),
            (
                "db://{schema}/{table}{?limit,offset}",
                &["schema", "table", "limit", "offset"],
            ),
            ("x:{+path*}/{id:3}/{path}", &["path", "id"]),
        ];
        for (template, expected) in cases {
            assert_eq!(variables(template).unwrap(), *expected, "{template}");
        }
        for broken in ["x:{", "x:}", "x:{a}{b", "x:{}", "x:{a,,b}", "{a}}"] {
            assert!(variables(broken).is_err(), "{broken}");
        }
    }
}
