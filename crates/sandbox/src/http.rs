//! Bounds that `wasmtime-wasi-http` does not have: what a guest writes into a request it has not sent stays with the host, outside
//! the guest's memory, so the texts in it must be short.

use wasmtime::component::{Linker, Resource};
use wasmtime_wasi_http::WasiHttpView;
use wasmtime_wasi_http::p2::bindings::http::types as p2;
use wasmtime_wasi_http::p3::bindings::http::types as p3;

use crate::guest::Guest;

/// No name of a method, scheme or host is longer.
const MAX_TEXT: usize = 8 << 10;

/// The setters of both generations of `wasi:http` that keep a text, each refusing one that is too long before it is kept.
macro_rules! guarded {
    ($linker:expr, $instance:literal, $resource:literal, $types:ident, $request:ident, $host:ident) => {{
        let mut instance = $linker.instance($instance)?;
        instance.func_wrap(
            concat!("[method]", $resource, ".set-method"),
            |mut store, (request, method): (Resource<$types::$request>, $types::Method)| match &method {
                $types::Method::Other(text) if text.len() > MAX_TEXT => Ok((Err(()),)),
                _ => Ok(($types::$host::set_method(&mut store.data_mut().http(), request, method)?,)),
            },
        )?;
        instance.func_wrap(
            concat!("[method]", $resource, ".set-scheme"),
            |mut store, (request, scheme): (Resource<$types::$request>, Option<$types::Scheme>)| match &scheme {
                Some($types::Scheme::Other(text)) if text.len() > MAX_TEXT => Ok((Err(()),)),
                _ => Ok(($types::$host::set_scheme(&mut store.data_mut().http(), request, scheme)?,)),
            },
        )?;
        instance.func_wrap(
            concat!("[method]", $resource, ".set-authority"),
            |mut store, (request, authority): (Resource<$types::$request>, Option<String>)| match &authority {
                Some(text) if text.len() > MAX_TEXT => Ok((Err(()),)),
                _ => Ok(($types::$host::set_authority(
                    &mut store.data_mut().http(),
                    request,
                    authority,
                )?,)),
            },
        )?;
    }};
}

/// Replaces the unbounded setters in a linker that has `wasi:http` already.
pub(crate) fn bound_requests(linker: &mut Linker<Guest>, concurrency: bool) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    guarded!(
        linker,
        "wasi:http/types@0.2.12",
        "outgoing-request",
        p2,
        OutgoingRequest,
        HostOutgoingRequest
    );
    if concurrency {
        guarded!(linker, "wasi:http/types@0.3.0", "request", p3, Request, HostRequest);
    }
    linker.allow_shadowing(false);
    Ok(())
}
