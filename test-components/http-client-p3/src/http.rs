//! Requests through `wasi:http/client`.

use wasip3::http::client;
use wasip3::http::types::{Fields, Method, Request, Response, Scheme};
use wasip3::wit_future;

use crate::failure;

/// Gets what is at a URL. Only where its parts begin is looked at; whether they make sense is for the host to say.
pub async fn get(url: &str) -> Result<String, String> {
    let (scheme, rest) = url.split_once("://").ok_or_else(|| format!("url: no scheme in {url}"))?;
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => Scheme::Other(other.to_owned()),
    };

    let (_, no_trailers) = wit_future::new(|| Ok(None));
    let (request, _sent) = Request::new(Fields::new(), None, no_trailers, None);
    request.set_method(&Method::Get).map_err(|()| "method: refused")?;
    request.set_scheme(Some(&scheme)).map_err(|()| "scheme: refused")?;
    request.set_authority(Some(authority)).map_err(|()| "authority: refused")?;
    request.set_path_with_query(Some(&path)).map_err(|()| "path: refused")?;

    let response = client::send(request).await.map_err(|error| failure("handler", error))?;
    let (_, read) = wit_future::new(|| Ok(()));
    let (body, trailers) = Response::consume_body(response, read);
    let bytes = body.collect().await;
    // Whether the body ended well is told after it.
    trailers.await.map_err(|error| failure("body", error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
